/* A member that writes random words into everything that it shares, while two others talk, and a third talks with it.
 *
 * The two must not get a wrong message, and each of their calls must end; calls towards the scribbler may fail, and must end too.
 *
 * usage: scribbler SECONDS
 */
#define _GNU_SOURCE
#include <m3ipc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static time_t end;

static void server(void)
{
    message m;
    for (;;) {
        int got = mnx_receive_T(3, &m, 5000);
        if (got == EMOLSRCDIED)
            exit(0);
        if (got == EMOLLOCKED || got == EMOLWOKENUP)
            continue;
        if (got != 0)
            exit(printf("server: receive -> %d\n", got));
        m.m1_i1++;
        got = mnx_send_T(3, &m, 5000);
        if (got == EMOLDSTDIED)
            exit(0);
    }
}

static void client(void)
{
    long wrong = 0, good = 0;
    for (int i = 1; time(NULL) < end; i++) {
        message m;
        memset(&m, 0, sizeof m);
        m.m1_i1 = i;
        // A forged desk may make a call fail; what succeeds must be right.
        if (mnx_sendrec_T(2, &m, 2000) != 0)
            continue;
        good++;
        wrong += m.m_source != 2 || m.m1_i1 > i + 1;
    }
    printf("client: %s, %ld wrong\n", good > 10 ? "many answers" : "few answers", wrong);
    exit(wrong != 0);
}

static void victim(void)
{
    while (time(NULL) < end) {
        message m;
        memset(&m, 0, sizeof m);
        mnx_sendrec_T(4, &m, 50);
        mnx_receive_T(4, &m, 10);
        mnx_notify(4);
    }
    exit(0);
}

static unsigned long state = 88172645463325252ul;

static unsigned long next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void scribble(void)
{
    struct {
        unsigned long *words;
        unsigned long count;
    } areas[64];
    int count = 0;
    char line[512];
    message m;
    memset(&m, 0, sizeof m);
    // A call with each of the others, so that there are boxes.
    mnx_send_T(2, &m, 10);
    mnx_send_T(3, &m, 10);
    mnx_receive_T(ANY, &m, 200);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps) && count < 64) {
        unsigned long from, to;
        char rights[8];
        if (strstr(line, "m3ipc") && sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[1] == 'w') {
            areas[count].words = (unsigned long *)from;
            areas[count++].count = (to - from) / 8;
        }
    }
    printf("scribbler: %s\n", count >= 2 ? "desks and boxes" : "too little to write to");
    fflush(stdout);
    while (time(NULL) < end + 1)
        for (int i = 0; i < 1000; i++) {
            int area = next_random() % count;
            unsigned long value = next_random(), word = next_random() % areas[area].count;
            // Small numbers mean more than large ones.
            areas[area].words[word] = value & 1 ? value : (value >> 32 & 0xff) | (value >> 8 & 0x1ff00);
        }
    exit(0);
}

static pid_t spawn(int p_nr, void (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        mnx_wait4bind();
        for (int other = 2; other <= 5; other++)
            mnx_wait4bindep(other);
        body();
    }
    mnx_lclbind(0, pid, p_nr);
    return pid;
}

int main(int argc, char **argv)
{
    int bad = 0, status;
    VM_usr_t vm = {.vm_vmid = 0, .vm_name = "scribbler"};
    end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 3);
    mnx_drvs_init(0, NULL);
    mnx_vm_init(&vm);
    mnx_bind(0, 1);
    pid_t pids[] = {spawn(2, server), spawn(3, client), spawn(5, victim), spawn(4, scribble)};
    for (int i = 0; i < 4; i++) {
        waitpid(pids[i], &status, 0);
        if (status != 0) {
            printf("process %d ended with %x\n", i, status);
            bad++;
        }
    }
    printf("%s\n", bad ? "bad" : "good");
    return bad != 0;
}
