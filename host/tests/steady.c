/* Requests with numbers, answered by a server that counts them, for so many seconds: none is lost, doubled or delayed for long, whatever happens to
 * the broker meanwhile; and processes are bound and end all the time.
 *
 * usage: steady SECONDS
 */
#define _GNU_SOURCE
#include <m3ipc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 3 };

static time_t end;

static void server(void)
{
    int last[CLIENTS] = {0};
    message m;
    while (mnx_receive(ANY, &m) == 0) {
        int from = m.m_source - 10;
        if (m.m_type == 9)
            exit(0);
        if (from < 0 || from >= CLIENTS || m.m1_i1 != last[from] + 1) {
            printf("request %d of %d after %d\n", m.m1_i1, m.m_source, from >= 0 && from < CLIENTS ? last[from] : -1);
            exit(1);
        }
        last[from]++;
        if (mnx_send(m.m_source, &m) != 0)
            exit(2);
    }
    exit(3);
}

static void client(void)
{
    int number = 0;
    while (time(NULL) < end) {
        message m;
        memset(&m, 0, sizeof m);
        m.m1_i1 = ++number;
        int got = mnx_sendrec(2, &m);
        if (got != 0 || m.m1_i1 != number) {
            printf("answer to %d: result %d, number %d\n", number, got, m.m1_i1);
            exit(1);
        }
    }
    printf("%s", number > 1000 ? "" : "few requests\n");
    exit(0);
}

static pid_t spawn(int p_nr, void (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        int got = mnx_wait4bind();
        if (got != p_nr)
            exit(10);
        body();
    }
    int got = mnx_lclbind(0, pid, p_nr);
    if (got != p_nr)
        printf("bound to %d instead of %d\n", got, p_nr);
    return pid;
}

static void passer_by(void)
{
    exit(0);
}

int main(int argc, char **argv)
{
    int bad = 0, status, bound = 0;
    message m = {.m_type = 9};
    VM_usr_t vm = {.vm_vmid = 0, .vm_name = "steady"};
    end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 2);
    mnx_drvs_init(0, NULL);
    mnx_vm_init(&vm);
    mnx_bind(0, 1);
    pid_t serving = spawn(2, server), pids[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        pids[i] = spawn(10 + i, client);
    while (time(NULL) < end) {
        pid_t pid = spawn(30, passer_by);
        waitpid(pid, &status, 0);
        bad += status != 0;
        bad += mnx_wait4unbind(30) != 30;
        bound++;
    }
    for (int i = 0; i < CLIENTS; i++) {
        waitpid(pids[i], &status, 0);
        bad += status != 0;
    }
    bad += mnx_send(2, &m) != 0;
    waitpid(serving, &status, 0);
    bad += status != 0;
    printf("%s, %s\n", bad ? "bad" : "good", bound > 10 ? "many bound meanwhile" : "few bound meanwhile");
    return bad != 0;
}
