/* What the module must bear: deaths at each step, copies at every alignment, crowds, fork bombs, other users, namespaces, stops, memory that goes
 * away, and random calls. Prints "good" or what was not. This file is long because the attacks share how they start and judge processes.
 *
 * usage: attack NAME [COUNT]
 */
#include "../m3ipc/m3test.h"
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int bad;

#define CHECK(condition, ...)                  \
    do {                                       \
        if (!(condition)) {                    \
            printf("line %d: ", __LINE__);     \
            printf(__VA_ARGS__);               \
            puts("");                          \
            bad++;                             \
        }                                      \
    } while (0)

static unsigned long seed = 88172645463325252ul;

static unsigned long any(unsigned long limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % limit;
}

static void expect(int got, int wanted, const char *what)
{
    if (got != wanted) {
        printf("%s -> %s instead of ", what, result(got));
        printf("%s\n", result(wanted));
        bad++;
    }
}

#define EXPECT(call, wanted) expect(call, wanted, #call)

/* Ends the caller with what it has found wrong as status. */
static void finish(void)
{
    fflush(stdout);
    _exit(bad ? 1 : 0);
}

static pid_t start(int vmid, int p_nr, void (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        seed += 977 * getpid();
        mnx_wait4bind();
        body();
        finish();
    }
    expect(_ENDPOINT_P(mnx_lclbind(vmid, pid, p_nr)), p_nr, "lclbind");
    return pid;
}

static void join(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "process %d ended with %x", pid, status);
}

/* Deaths: of the process in slot 2, in each state, while those in 3 to 5 wait for it, or it for them. */

static message m;
static char block[1 << 20];
static int step;

static void idle(void)
{
    pause();
}

static void victim(void)
{
    memset(block, 1, sizeof block);
    switch (step) {
    case 0:
        idle();
        break;
    case 1:
        mnx_receive(ANY, &m);
        break;
    case 2:
        mnx_receive(6, &m);
        break;
    case 3:
        mnx_send(6, &m);
        break;
    case 4:
        mnx_sendrec(6, &m);
        break;
    case 5:
        m.m1_p1 = block;
        mnx_sendrec(1, &m);
        break;
    case 6:
        mnx_receive_T(6, &m, 50000);
        break;
    case 7:
        mnx_wait4unbind(6);
        break;
    }
}

static void sender(void)
{
    EXPECT(mnx_send(2, &m), EMOLDSTDIED);
}

static void receiver(void)
{
    EXPECT(mnx_receive(2, &m), EMOLSRCDIED);
}

static void asker(void)
{
    EXPECT(mnx_sendrec(2, &m), EMOLDEADSRCDST);
}

static void copier(void)
{
    int got;
    do
        got = mnx_vcopy(2, m.m1_p1, SELF, block, sizeof block);
    while (got == sizeof block);
    CHECK(got == EMOLPROCSTS || got == EMOLDSTDIED, "vcopy -> %s", result(got));
}

static void deaths(int count)
{
    unsigned states[] = {0, RTS_RECEIVING, RTS_RECEIVING, RTS_SENDING, RTS_SENDING, 0, RTS_RECEIVING, 0};
    for (int i = 0; i < count; i++) {
        step = i % 8;
        pid_t other = start(0, 6, idle);
        int own = step;
        pid_t dying = start(0, 2, victim);
        until(2, states[own]);
        memset(&m, 0, sizeof m);
        if (own == 5)
            EXPECT(mnx_receive(2, &m), 0);
        void (*bodies[])(void) = {own == 2 || own == 1 || own == 6 ? receiver : own == 5 ? copier : sender, receiver, own == 1 ? receiver : asker};
        pid_t peers[3];
        // Who receives from anybody would take what they send.
        for (int peer = 0; peer < 3; peer++)
            peers[peer] = start(0, 3 + peer, own == 1 ? receiver : bodies[peer]);
        if (own != 5)
            for (int peer = 0; peer < 3; peer++)
                until(3 + peer, own == 1 || bodies[peer] == receiver ? RTS_RECEIVING : RTS_SENDING);
        if (i % 3)
            usleep(any(2000));
        kill(dying, SIGKILL);
        for (int peer = 0; peer < 3; peer++)
            join(peers[peer]);
        waitpid(dying, NULL, 0);
        proc_usr_t p;
        EXPECT(mnx_getprocinfo(0, 2, &p), 0);
        CHECK(p.p_rts_flags == RTS_SLOT_FREE, "the slot is not free: %x", p.p_rts_flags);
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
    }
}

/* Copies: by the caller from and to another one, at alignments around the edges of pages and words, with what lies beside them. */

enum { COPY = MAXCOPYLEN, EDGE = 16 };
static unsigned char *area;

static void has_area(void)
{
    m.m1_p1 = (char *)area;
    mnx_sendrec(1, &m);
}

static unsigned char *new_area(void)
{
    unsigned char *new = mmap(NULL, COPY + 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < (COPY + 3 * 4096) / 4; i++)
        ((unsigned *)new)[i] = i * 2654435761u;
    return new;
}

static void copies(int count)
{
    static const int offsets[] = {0, 1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 2048, 4080, 4088, 4092, 4093, 4094, 4095};
    enum { OFFSETS = sizeof offsets / sizeof *offsets };
    area = new_area();
    pid_t one = start(0, 2, has_area), other = start(0, 3, has_area);
    message two, three;
    EXPECT(mnx_receive(2, &two), 0);
    EXPECT(mnx_receive(3, &three), 0);
    unsigned char *own = new_area();
    for (int i = 0; i < count && !bad; i++) {
        // Each pair, or some of them.
        int pair = count < OFFSETS * OFFSETS ? (int)any(OFFSETS * OFFSETS) : i;
        int from = offsets[pair / OFFSETS % OFFSETS], to = offsets[pair % OFFSETS];
        memset(own, i, COPY + 3 * 4096);
        if (i % 2) {
            EXPECT(mnx_vcopy(2, two.m1_p1 + from, SELF, own + EDGE + to, COPY), COPY);
        } else {
            // By way of a third, between two others, and back.
            EXPECT(mnx_vcopy(2, two.m1_p1 + from, 3, three.m1_p1 + to, COPY), COPY);
            EXPECT(mnx_vcopy(3, three.m1_p1 + to, SELF, own + EDGE + to, COPY), COPY);
            EXPECT(mnx_vcopy(SELF, area + to, 3, three.m1_p1 + to, COPY), COPY);
        }
        CHECK(!memcmp(own + EDGE + to, area + from, COPY), "%d to %d: wrong bytes", from, to);
        CHECK(own[EDGE + to - 1] == (unsigned char)i && own[EDGE + to + COPY] == (unsigned char)i, "%d to %d: too many bytes", from, to);
    }
    mnx_reply(2, &two);
    mnx_reply(3, &three);
    join(one);
    join(other);
}

/* Crowd: 256 processes in 32 containers; in each, four clients ask four servers. */

static int rounds, vm_of;

static void crowd_server(void)
{
    for (;;) {
        if (mnx_receive(ANY, &m) != 0 || m.m2_i1 != vm_of) {
            CHECK(0, "a message of container %d in %d", m.m2_i1, vm_of);
            return;
        }
        m.m2_l1 += m.m_source;
        if (m.m_type == 9)
            return;
        EXPECT(mnx_send(m.m_source, &m), 0);
    }
}

static void crowd_client(void)
{
    for (int i = 0; i < rounds && !bad; i++) {
        int server = any(4);
        m.m2_i1 = vm_of;
        m.m2_l1 = i;
        EXPECT(mnx_wait4bindep(server), server);
        EXPECT(mnx_sendrec(server, &m), 0);
        CHECK(m.m_source == server && m.m2_l1 >= i && m.m2_i1 == vm_of, "a wrong answer");
    }
}

static void crowd(int count)
{
    static pid_t pids[NR_VMS][8];
    rounds = count;
    for (vm_of = 1; vm_of < NR_VMS; vm_of++)
        EXPECT(container(vm_of), 0);
    for (vm_of = 0; vm_of < NR_VMS; vm_of++)
        for (int i = 0; i < 8; i++)
            pids[vm_of][i] = start(vm_of, i < 4 ? i : 60 + i, i < 4 ? crowd_server : crowd_client);
    for (vm_of = 0; vm_of < NR_VMS; vm_of++)
        for (int i = 4; i < 8; i++)
            join(pids[vm_of][i]);
    for (vm_of = 0; vm_of < NR_VMS; vm_of++) {
        EXPECT(mnx_bind(vm_of, 50), 50);
        for (int i = 0; i < 4; i++) {
            m.m_type = 9;
            m.m2_i1 = vm_of;
            EXPECT(mnx_send(i, &m), 0);
            join(pids[vm_of][i]);
        }
        EXPECT(mnx_unbind(vm_of, SELF), 0);
    }
}

/* Whoever is told that it is bound has its name, and can make calls. */

static void beginner(void)
{
    int endpoint;
    do
        endpoint = mnx_wait4bind_T(0);
    while (endpoint == EMOLAGAIN);
    EXPECT(mnx_receive_T(ANY, &m, 0), EMOLAGAIN);
    EXPECT(mnx_wait4bind(), endpoint);
    finish();
}

static void beginners(int count)
{
    for (int i = 0; i < count && !bad; i++) {
        pid_t pid = fork();
        if (pid == 0)
            beginner();
        usleep(any(1000));
        int got = _ENDPOINT_P(mnx_lclbind(0, pid, 200));
        /* A beginner that has been bound, as `join` makes sure, may have ended before the call comes back. */
        CHECK(got == 200 || got == EMOLBADPID, "lclbind -> %s", result(got));
        join(pid);
    }
}

/* Fork bombs of binders, while two others talk. */

static void talker(void)
{
    for (int i = 0; i < rounds * 20; i++) {
        EXPECT(mnx_receive(ANY, &m), 0);
        EXPECT(mnx_send(m.m_source, &m), 0);
    }
}

static void asking(void)
{
    for (int i = 0; i < rounds * 20; i++) {
        m.m1_i1 = i;
        EXPECT(mnx_sendrec(2, &m), 0);
        CHECK(m.m1_i1 == i, "a wrong answer");
    }
}

static void binder(void)
{
    for (int i = 0; i < 5; i++) {
        int slot = any(NR_PROCS), got = mnx_bind(1, slot);
        CHECK(got >= 0 || got == EMOLSLOTUSED || got == EMOLBINDTYPE, "bind -> %s", result(got));
        if (any(3) == 0 && fork() == 0) {
            mnx_bind(1, any(NR_PROCS));
            mnx_receive_T(ANY, &m, any(3));
            _exit(0);
        }
        mnx_send_T(any(NR_PROCS), &m, any(2));
        if (any(4) == 0)
            kill(getpid(), SIGKILL);
        if (any(2))
            mnx_unbind(1, SELF);
    }
    while (waitpid(-1, NULL, 0) > 0)
        ;
    finish();
}

static void bombs(int count)
{
    VM_usr_t vm;
    rounds = count;
    EXPECT(container(1), 0);
    pid_t server = start(0, 2, talker), client = start(0, 3, asking);
    for (int i = 0; i < count; i++) {
        pid_t pids[16];
        for (int j = 0; j < 16; j++) {
            pids[j] = fork();
            if (pids[j] == 0) {
                seed += 977 * getpid();
                binder();
            }
        }
        for (int j = 0; j < 16; j++) {
            int status;
            waitpid(pids[j], &status, 0);
            CHECK(status == 0 || status == SIGKILL, "a binder ended with %x", status);
        }
    }
    join(server);
    join(client);
    // Children of children that were killed may be there still.
    for (int i = 0; i < 1000 && mnx_getvminfo(1, &vm) == 0 && vm.vm_bound; i++)
        usleep(1000);
    CHECK(vm.vm_bound == 0, "%d are bound", vm.vm_bound);
}

/* Others: who may join, and what they may not. */

static char set[32];

static void parameter(const char *name, const char *value)
{
    snprintf(set, sizeof set, "%s", value);
    char path[64];
    snprintf(path, sizeof path, "/sys/module/m3ipc/parameters/%s", name);
    int file = open(path, O_WRONLY);
    CHECK(file >= 0 && write(file, set, strlen(set)) > 0, "%s cannot be set", name);
    close(file);
}

/* What `body` returns as another user. */
static int as_user(int uid, int gid, int (*body)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        setgroups(0, NULL);
        if (setgid(gid) != 0 || setuid(uid) != 0)
            _exit(99);
        _exit(body());
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static int may_open(void)
{
    return open(M3IPC_DEVICE, O_RDWR) >= 0 ? 0 : errno;
}

static int try_what_is_for_root(void)
{
    VM_usr_t vm = {.vm_vmid = 9, .vm_name = "mine"};
    priv_usr_t priv;
    EXPECT(mnx_vm_init(&vm), EMOLPERM);
    EXPECT(mnx_vm_end(0), EMOLPERM);
    EXPECT(mnx_drvs_end(), EMOLPERM);
    EXPECT(mnx_bind(0, 10), 10);
    EXPECT(mnx_getpriv(0, 1, &priv), 0);
    EXPECT(mnx_setpriv(0, 1, &priv), EMOLPERM);
    EXPECT(mnx_src_notify(1, 10), EMOLPERM);
    EXPECT(mnx_unbind(0, 1), EMOLPERM);
    EXPECT(mnx_lclbind(0, getppid(), 11), EMOLPERM);
    EXPECT(mnx_vcopy(2, block, SELF, block, 10), EMOLPERM);
    EXPECT(mnx_vcopy(SELF, block, 2, block, 10), EMOLPERM);
    fflush(stdout);
    return bad;
}

static void others(int count)
{
    (void)count;
    EXPECT(mnx_bind(0, 1), 1);
    step = 1;
    pid_t root = start(0, 2, victim);
    until(2, RTS_RECEIVING);
    CHECK(as_user(1000, 1000, may_open) == EACCES, "anybody may join");
    parameter("uids", "1000");
    CHECK(as_user(1000, 1000, may_open) == 0, "a user who was named may not join");
    CHECK(as_user(1001, 1000, may_open) == EACCES, "another user may join");
    CHECK(as_user(1000, 1000, try_what_is_for_root) == 0, "a user may do what is for root");
    parameter("gids", "50");
    CHECK(as_user(1001, 50, may_open) == 0, "a group that was named may not join");
    parameter("admin_capability", "-1");
    CHECK(as_user(0, 0, may_open) == EACCES, "root is an administrator without the capability");
    parameter("admin_capability", "21");
    CHECK(as_user(0, 0, may_open) == 0, "root may not join");
    kill(root, SIGKILL);
    waitpid(root, NULL, 0);
}

/* Namespaces of processes, users and networks: a member in others, and the numbers that each side sees. */

static void inside(void)
{
    proc_usr_t p;
    EXPECT(getpid(), 1);
    EXPECT(mnx_wait4bind(), 7);
    EXPECT(mnx_getprocinfo(0, 7, &p), 0);
    EXPECT(p.p_lpid, 1);
    EXPECT(mnx_getprocinfo(0, 1, &p), 0);
    EXPECT(p.p_lpid, -1);
    EXPECT(mnx_getep(1), 7);
    EXPECT(mnx_vm_end(0), EMOLPERM);
    EXPECT(mnx_sendrec(1, &m), 0);
    finish();
}

static void namespaces(int count)
{
    proc_usr_t p;
    (void)count;
    EXPECT(mnx_bind(0, 1), 1);
    parameter("uids", "1000");
    pid_t pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        inside();
    CHECK(pid > 0, "clone: %s", strerror(errno));
    EXPECT(mnx_lclbind(0, pid, 7), 7);
    EXPECT(mnx_receive(7, &m), 0);
    EXPECT(mnx_getprocinfo(0, 7, &p), 0);
    EXPECT(p.p_lpid, pid);
    EXPECT(mnx_getep(pid), 7);
    EXPECT(mnx_reply(7, &m), 0);
    join(pid);
}

/* Stops: a wait goes on while its process is stopped, and ends by what comes meanwhile; a sendrec is not sent twice. */

static void stopped(void)
{
    for (int i = 0; i < rounds; i++) {
        m.m1_i1 = i;
        EXPECT(mnx_sendrec(1, &m), 0);
        CHECK(m.m1_i1 == i + 1000, "answer %d to %d", m.m1_i1, i);
        EXPECT(mnx_receive(1, &m), 0);
        EXPECT(mnx_send_T(1, &m, 20000), 0);
    }
}

static void stop(pid_t pid)
{
    int status;
    kill(pid, SIGSTOP);
    waitpid(pid, &status, WUNTRACED);
    CHECK(WIFSTOPPED(status), "not stopped: %x", status);
}

static void stops(int count)
{
    rounds = count;
    EXPECT(mnx_bind(0, 1), 1);
    pid_t pid = start(0, 2, stopped);
    for (int i = 0; i < count && !bad; i++) {
        // While it sends, and while it waits for the answer.
        until(2, RTS_SENDING);
        stop(pid);
        EXPECT(mnx_receive(2, &m), 0);
        CHECK(m.m1_i1 == i, "request %d instead of %d", m.m1_i1, i);
        if (i % 2) {
            kill(pid, SIGCONT);
            usleep(any(300));
            stop(pid);
        }
        m.m1_i1 += 1000;
        EXPECT(mnx_reply(2, &m), 0);
        EXPECT(mnx_receive_T(2, &m, 5), EMOLTIMEDOUT);
        kill(pid, SIGCONT);
        // While it receives.
        until(2, RTS_RECEIVING);
        stop(pid);
        EXPECT(mnx_send_T(2, &m, 0), 0);
        kill(pid, SIGCONT);
        EXPECT(mnx_receive(2, &m), 0);
    }
    join(pid);
}

/* Memory that goes away while it is copied. */

static volatile int *go_on;

static void *take_away(void *unused)
{
    (void)unused;
    while (*go_on) {
        madvise(area, COPY, MADV_DONTNEED);
        mprotect(area + 4096 * any(1000), 4096, PROT_NONE);
        if (any(10) == 0)
            munmap(area + 4096 * any(1000), 4096);
        if (any(4) == 0)
            mmap(area, COPY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    return NULL;
}

static void unmapper(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, take_away, NULL);
    has_area();
    pthread_join(thread, NULL);
}

static void memory(int count)
{
    pthread_t thread;
    message two, three;
    int right = 0;
    go_on = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *go_on = 1;
    area = new_area();
    EXPECT(mnx_bind(0, 1), 1);
    pid_t one = start(0, 2, unmapper), other = start(0, 3, has_area);
    EXPECT(mnx_receive(2, &two), 0);
    EXPECT(mnx_receive(3, &three), 0);
    unsigned char *own = new_area();
    pthread_create(&thread, NULL, take_away, NULL);
    for (int i = 0; i < count; i++) {
        int got = i % 4 == 0   ? mnx_vcopy(2, two.m1_p1, 3, three.m1_p1, COPY)
                  : i % 4 == 1 ? mnx_vcopy(3, three.m1_p1, 2, two.m1_p1, COPY)
                  : i % 4 == 2 ? mnx_vcopy(2, two.m1_p1, SELF, own, COPY)
                               : mnx_vcopy(3, three.m1_p1, SELF, area, COPY);
        CHECK(got == COPY || got == EMOLADDRNOTAVAIL, "vcopy -> %s", result(got));
        right += got == COPY;
    }
    *go_on = 0;
    pthread_join(thread, NULL);
    EXPECT(mnx_vcopy(3, three.m1_p1, SELF, own, COPY), COPY);
    mnx_reply(2, &two);
    mnx_reply(3, &three);
    join(one);
    join(other);
}

/* Many at once, with time limits and signals: every request that was answered was answered once. */

static void hurried(void)
{
    int number = 0;
    signal(SIGUSR1, SIG_IGN);
    for (int i = 0; i < rounds; i++) {
        m.m1_i1 = ++number;
        int got = mnx_sendrec_T(2, &m, any(3) ? TIMEOUT_FOREVER : (long)any(3));
        if (got == 0)
            CHECK(m.m1_i1 == -number && m.m_source == 2, "answer %d to %d", m.m1_i1, number);
        else
            CHECK(got == EMOLAGAIN || got == EMOLTIMEDOUT, "sendrec -> %s", result(got));
        if (any(5) == 0)
            mnx_receive_T(2, &m, 0);
    }
    m.m_type = 9;
    EXPECT(mnx_send(2, &m), 0);
}

static void hasty_server(void)
{
    int last[8] = {0}, left = 8;
    while (left) {
        EXPECT(mnx_receive(ANY, &m), 0);
        int from = m.m_source - 10;
        if (m.m_type == 9) {
            left--;
            m.m_type = 0;
            continue;
        }
        CHECK(from >= 0 && from < 8 && m.m1_i1 > last[from], "request %d after %d", m.m1_i1, last[from]);
        last[from] = m.m1_i1;
        m.m1_i1 = -m.m1_i1;
        int got = any(2) ? mnx_reply(m.m_source, &m) : mnx_send_T(m.m_source, &m, 0);
        CHECK(got == 0 || got == EMOLPROCSTS || got == EMOLAGAIN, "reply -> %s", result(got));
    }
}

static void hurry(int count)
{
    pid_t pids[8];
    rounds = count;
    pid_t server = start(0, 2, hasty_server);
    for (int i = 0; i < 8; i++)
        pids[i] = start(0, 10 + i, hurried);
    for (int i = 0; i < 8; i++)
        join(pids[i]);
    join(server);
}

/* The short way of calls with a message, by `posix_fadvise`: where that is refused, calls are made by `ioctl`. A receive that can store nothing takes nothing. */

static long advise(int file, unsigned call, int peer, int upper, void *place)
{
    return syscall(SYS_fadvise64, file, place, (unsigned)peer | (unsigned long)upper << 32, M3IPC_IOCTL(call));
}

static void expect_errno(long got, int wanted, const char *what)
{
    CHECK(got == -1 && errno == wanted, "%s -> %ld, %s", what, got, strerror(errno));
}

static void one_request(void)
{
    m.m_type = 5;
    m.m1_i1 = 20;
    EXPECT(mnx_notify(1), 0);
    EXPECT(mnx_sendrec(1, &m), 0);
    CHECK(m.m1_i1 == 40, "answer %d", m.m1_i1);
}

/* All calls of `posix_fadvise` are refused from now on. */
static void refuse_advice(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fadvise64, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "no filter: %s", strerror(errno));
}

static void filtered(void)
{
    refuse_advice(EPERM);
    one_request();
}

/* The number of its open device is another file's now. */
static void without_device(void)
{
    int other = open("/dev/null", O_RDWR);
    for (int file = 3; file < other; file++)
        dup2(other, file);
    one_request();
}

static void ways(int count)
{
    static void (*const bodies[])(void) = {one_request, filtered, without_device};
    int file = open(M3IPC_DEVICE, O_RDWR), by;
    for (int i = 0; i < count * 3; i++) {
        pid_t pid = start(0, 2, bodies[i % 3]);
        until(2, RTS_SENDING);
        expect_errno(advise(file, M3IPC_CALL_RECEIVE, 2, -1, (void *)4096), EFAULT, "a receive to nowhere");
        expect_errno(advise(file, M3IPC_CALL_RECEIVE, ANY, -1, (void *)0xffff888000001000ul), EFAULT, "a receive to the kernel");
        EXPECT(mnx_receive(2, &m), 0);
        CHECK(m.m_type == NOTIFY_FROM(2), "type %x", m.m_type);
        EXPECT(mnx_receive(2, &m), 0);
        CHECK(m.m1_i1 == 20, "request %d", m.m1_i1);
        m.m1_i1 *= 2;
        EXPECT(mnx_send(2, &m), 0);
        join(pid);
    }
    by = open("/dev/null", O_RDWR);
    expect_errno(advise(by, M3IPC_CALL_SEND, 2, 0, &m), EINVAL, "a file that is no device");
    expect_errno(advise(file, M3IPC_CALL_BIND, 2, 0, &m), EINVAL, "a call without a message");
    expect_errno(advise(file, -1u, 2, 0, &m), EINVAL, "no call");
    expect_errno(advise(-1, M3IPC_CALL_SEND, 2, 0, &m), EBADF, "no file");
    close(file);
    close(by);
}

/* Random calls with random arguments, by some processes at once. */

static long random_argument(void)
{
    switch (any(9)) {
    case 0:
        return (long)any(40) - 5;
    case 1:
        return _ENDPOINT(any(3), any(260) - 35);
    case 2:
        return (long)block + any(4096);
    case 3:
        return (long)&m;
    case 4:
        return 0xffff888000000000ul + any(1 << 20) * 8;
    case 5:
        return any(2) ? ANY : any(2) ? SELF : NONE;
    case 6:
        return getpid() + any(4) - 2;
    case 7:
        return any(3);
    default:
        return seed;
    }
}

static const char zeros[256];

static void fuzzer(void)
{
    int file = open(M3IPC_DEVICE, O_RDWR);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < rounds; i++) {
        union {
            m3ipc_parcel_t parcel;
            m3ipc_request_t request;
        } u;
        unsigned call = any(50), command = M3IPC_IOCTL(call);
        memset(&u, 0, sizeof u);
        if (call >= M3IPC_CALL_SEND && call <= M3IPC_CALL_REPLY) {
            // A sendrec that is taken at once waits for its answer, whatever its limit, if that is 0.
            u.parcel.limit_ms = call == M3IPC_CALL_SEND_RECEIVE ? 1 : any(2);
            u.parcel.m.m_source = any(3) ? (int)any(70) - 5 : random_argument();
        } else
            for (int a = 0; a < 5; a++)
                u.request.arguments[a] = random_argument();
        // They wait a moment at most, and the node and its containers stay most of the time.
        if (call == M3IPC_CALL_WAIT_FOR_BIND)
            u.request.arguments[0] = any(2);
        if (call == M3IPC_CALL_WAIT_FOR_BIND_OF || call == M3IPC_CALL_WAIT_FOR_UNBIND)
            u.request.arguments[1] = any(2);
        if ((call == M3IPC_CALL_DRVS_END || call == M3IPC_CALL_VM_END) && any(50))
            continue;
        if (any(500) == 0) {
            drvs_usr_t limits = {NR_VMS, NR_NODES, NR_PROCS, NR_TASKS, NR_SYS_PROCS, MAXCOPYLEN, MAXCOPYLEN, 0, 0};
            VM_usr_t vm = {.vm_vmid = any(4), .vm_name = "fuzz"};
            mnx_drvs_init(0, &limits);
            mnx_vm_init(&vm);
        }
        if (any(5) == 0)
            mnx_bind(any(4), any(70) - 5);
        if (any(200) == 0)
            command = seed;
        // Elsewhere there are no arguments, or zeros that nobody can replace.
        long elsewhere = any(2) ? (long)0xffff888000001000ul : any(2) ? (long)any(4096) : (long)zeros;
        if (call >= M3IPC_CALL_SEND && call <= M3IPC_CALL_NOTIFY_VALUE && any(2))
            advise(file, call, u.parcel.m.m_source, u.parcel.limit_ms, any(100) ? &u.parcel.m : (void *)elsewhere);
        else
            ioctl(file, command, any(100) ? (long)&u : elsewhere);
    }
}

static void *fuzzing_thread(void *unused)
{
    (void)unused;
    mnx_tbind(0, any(NR_PROCS));
    fuzzer();
    return NULL;
}

static void fuzz(int count)
{
    pid_t pids[6];
    rounds = count / 8;
    for (int i = 0; i < 6; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            pthread_t thread;
            seed += 977 * getpid();
            // Some share an endpoint with a thread.
            if (i < 2)
                pthread_create(&thread, NULL, fuzzing_thread, NULL);
            fuzzer();
            if (i < 2)
                pthread_join(thread, NULL);
            _exit(0);
        }
    }
    for (int i = 0; i < 6; i++)
        join(pids[i]);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*attack)(int count);
        int is_bound;
    } attacks[] = {{"deaths", deaths, 1},   {"copies", copies, 1}, {"crowd", crowd, 0}, {"beginners", beginners, 1}, {"bombs", bombs, 1},   {"others", others, 0},
                   {"namespaces", namespaces, 0}, {"stops", stops, 0},   {"memory", memory, 0}, {"hurry", hurry, 1}, {"ways", ways, 1},   {"fuzz", fuzz, 0}};
    begin();
    alarm(0);
    for (unsigned i = 0; argc > 1 && i < sizeof attacks / sizeof *attacks; i++)
        if (!strcmp(argv[1], attacks[i].name)) {
            if (attacks[i].is_bound)
                EXPECT(mnx_bind(0, 1), 1);
            attacks[i].attack(argc > 2 ? atoi(argv[2]) : 1);
            puts(bad ? "bad" : "good");
            return bad != 0;
        }
    puts("no such attack");
    return 2;
}
