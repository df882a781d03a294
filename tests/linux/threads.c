/* Threads and futexes: what they share, how they end, the errors of futex. */
#include "behaviour.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>

static uint32_t word;

static long futex(uint32_t *at, int operation, uint32_t value, const struct timespec *time) {
    return syscall(SYS_futex, at, operation, value, time, NULL, 0);
}

static long requeue(int operation, uint32_t wake, uintptr_t move, uint32_t *to, uint32_t compare) {
    return syscall(SYS_futex, &word, operation, wake, move, to, compare);
}

static void *wait_for_word(void *unused) {
    (void)unused;
    return (void *)(futex(&word, FUTEX_WAIT, 0, NULL) == 0 ? 1L : (long)errno);
}

/* Wakes until that many are awake: they may not wait yet. */
static void wake(int count) {
    while (count > 0) {
        count -= futex(&word, FUTEX_WAKE, count, NULL);
        sleep_ms(1);
    }
}

static pthread_t start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, run, argument) == 0 ? 0 : -1);
    return thread;
}

static long join(pthread_t thread) {
    void *result;
    pthread_join(thread, &result);
    return (long)result;
}

BEHAVIOUR("futex FUTEX_WAIT of another value does not wait") { show(futex(&word, FUTEX_WAIT, 1, NULL)); }
BEHAVIOUR("futex with bad addresses: not aligned, not mapped") {
    show(futex((uint32_t *)((char *)&word + 1), FUTEX_WAIT, 0, NULL));
    show(futex(bad(), FUTEX_WAIT, 0, NULL));
    show(futex(NULL, FUTEX_WAIT_PRIVATE, 0, NULL));
    show(futex((uint32_t *)((char *)&word + 1), FUTEX_WAKE, 1, NULL));
    show(futex(bad(), FUTEX_WAKE_PRIVATE, 1, NULL));
}
BEHAVIOUR("futex with unknown operations") {
    show(futex(&word, 99, 0, NULL));
    show(futex(&word, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 0, NULL));
}
BEHAVIOUR("futex operations with FUTEX_CLOCK_REALTIME: those that have no clock to choose") {
    show(futex(&word, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 0, NULL));
    show(futex(&word, FUTEX_LOCK_PI | FUTEX_CLOCK_REALTIME, 0, NULL));
    show(futex(&word, FUTEX_TRYLOCK_PI | FUTEX_CLOCK_REALTIME, 0, NULL));
    show(futex(&word, FUTEX_UNLOCK_PI | FUTEX_CLOCK_REALTIME, 0, NULL));
    show(futex(&word, 99 | FUTEX_CLOCK_REALTIME, 0, NULL));
    show(word);
    show(futex(&word, FUTEX_LOCK_PI2 | FUTEX_CLOCK_REALTIME, 0, NULL));
    note("%d", (pid_t)word == gettid());
}
BEHAVIOUR("futex FUTEX_WAIT with bad times, and a time that ends") {
    struct timespec wrong = {0, 1000000000}, negative = {-1, 0}, soon = {0, 10000000};
    show(futex(&word, FUTEX_WAIT, 0, &wrong));
    show(futex(&word, FUTEX_WAIT, 0, &negative));
    show(futex(&word, FUTEX_WAIT, 0, bad()));
    show(futex(&word, FUTEX_WAIT, 0, &soon));
}
BEHAVIOUR("futex FUTEX_WAIT_BITSET has an absolute time, and wants a bit") {
    struct timespec past = {1, 0};
    show(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &past, NULL, 1));
    show(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &past, NULL, 0));
    show(syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0));
}
BEHAVIOUR("futex FUTEX_WAKE of a word nobody waits for") { show(futex(&word, FUTEX_WAKE, 5, NULL)); }
BEHAVIOUR("futex FUTEX_WAKE wakes as many as it says") {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        threads[i] = start(wait_for_word, NULL);
    wake(1);
    wake(2);
    for (int i = 0; i < 3; i++)
        show(join(threads[i]));
    show(futex(&word, FUTEX_WAKE, 5, NULL));
}
BEHAVIOUR("futex FUTEX_WAIT with a time is interrupted by a handler, whatever SA_RESTART says") {
    for (int restart = 0; restart <= 1; restart++) {
        pid_t child = fork();
        if (child == 0) {
            struct timespec time = {0, 100000000};
            handle(SIGUSR1, restart ? SA_RESTART : 0);
            show(futex(&word, FUTEX_WAIT, 0, &time));
            show(handled);
            _exit(0);
        }
        sleep_ms(20);
        wait_until_asleep(child);
        kill(child, SIGUSR1);
        wait_for(child);
    }
}
BEHAVIOUR("a futex in shared memory works between processes, a private one does not") {
    uint32_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        show(futex(shared, FUTEX_WAIT, 0, NULL));
        _exit(0);
    }
    while (futex(shared, FUTEX_WAKE, 1, NULL) == 0)
        sleep_ms(1);
    wait_for(child);
}
BEHAVIOUR("futex FUTEX_CMP_REQUEUE of another value, to a bad address") {
    uint32_t other = 0;
    show(requeue(FUTEX_CMP_REQUEUE, 1, 1, &other, 5));
    show(requeue(FUTEX_CMP_REQUEUE, 1, 1, bad(), 0));
    show(requeue(FUTEX_CMP_REQUEUE, -1, 1, &other, 0));
    show(requeue(FUTEX_CMP_REQUEUE, 1, 1, &other, 0));
}
BEHAVIOUR("futex FUTEX_WAKE_OP") {
    uint32_t other = 5;
    show(requeue(FUTEX_WAKE_OP, 1, 1, &other, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 5)));
    show(other);
}
BEHAVIOUR("futex with inheritance: locked twice, unlocked by another, tried") {
    show(futex(&word, FUTEX_LOCK_PI, 0, NULL));
    note("%d", (pid_t)word == gettid());
    show(futex(&word, FUTEX_LOCK_PI, 0, NULL));
    show(futex(&word, FUTEX_TRYLOCK_PI, 0, NULL));
    show(futex(&word, FUTEX_UNLOCK_PI, 0, NULL));
    show(word);
    word = 1;
    show(futex(&word, FUTEX_UNLOCK_PI, 0, NULL));
    word = 0x3ffffff;
    show(futex(&word, FUTEX_LOCK_PI, 0, NULL));
}
BEHAVIOUR("robust futexes: the word says that the owner has died") {
    struct {
        struct robust_list_head head;
        struct robust_list entry;
        uint32_t word;
    } *list = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    IN_CHILD {
        list->head = (struct robust_list_head){{&list->entry}, sizeof(struct robust_list), NULL};
        list->entry.next = &list->head.list;
        list->word = gettid();
        show(syscall(SYS_set_robust_list, &list->head, sizeof list->head));
    }
    note("%x", list->word & ~FUTEX_TID_MASK);
}
BEHAVIOUR("set_robust_list and get_robust_list with bad sizes, of nobody") {
    struct robust_list_head *head;
    size_t size;
    show(syscall(SYS_set_robust_list, NULL, 5));
    show(syscall(SYS_get_robust_list, 0x3ffffff, &head, &size));
    show(syscall(SYS_get_robust_list, 0, bad(), &size));
    show(syscall(SYS_get_robust_list, 0, &head, &size));
    show(size);
}

static void *numbers(void *result) {
    pid_t *ids = result;
    ids[0] = getpid();
    ids[1] = gettid();
    ids[2] = getppid();
    return NULL;
}
BEHAVIOUR("a thread has the process id of its process, and an id of its own") {
    pid_t ids[3];
    join(start(numbers, ids));
    note("%d %d %d", ids[0] == getpid(), ids[1] != gettid(), ids[2] == getppid());
}
static void *change_place(void *unused) {
    (void)unused;
    mkdir("d", 0755);
    chdir("d");
    umask(077);
    dup2(0, 7);
    return NULL;
}
BEHAVIOUR("threads share the directory, the umask and the descriptors") {
    join(start(change_place, NULL));
    show(chdir("../d"));
    note("%o", umask(0));
    show(fcntl(7, F_GETFD));
}
static void *own_mask(void *unused) {
    (void)unused;
    block(SIGUSR1);
    return NULL;
}
BEHAVIOUR("each thread has a mask of its own, inherited from its maker") {
    block(SIGUSR2);
    join(start(own_mask, NULL));
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    note("%d%d", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2));
}
static void *take_signal(void *ready) {
    open_gate(*(struct gate *)ready);
    while (handled == 0)
        sleep_ms(1);
    return (void *)1L;
}
BEHAVIOUR("a signal for the process is taken by a thread that does not block it") {
    struct gate ready = new_gate();
    handle(SIGUSR1, 0);
    pthread_t thread = start(take_signal, &ready);
    block(SIGUSR1);
    pass_gate(ready);
    kill(getpid(), SIGUSR1);
    show(join(thread));
    sigset_t pending;
    sigpending(&pending);
    show(sigismember(&pending, SIGUSR1));
}
BEHAVIOUR("a fatal signal ends all threads") {
    IN_CHILD {
        start(wait_for_word, NULL);
        raise(SIGTERM);
    }
}
static void *leave(void *unused) {
    (void)unused;
    _exit(9);
}
BEHAVIOUR("_exit of a thread ends the process") {
    IN_CHILD {
        join(start(leave, NULL));
        pause();
    }
}
static void *leave_late(void *unused) {
    (void)unused;
    sleep_ms(20);
    _exit(11);
}
BEHAVIOUR("the process lives on when its first thread has ended") {
    IN_CHILD {
        start(leave_late, NULL);
        syscall(SYS_exit, 5);
    }
}
static void *run_another(void *unused) {
    char *words[] = {"sh", "-c", "exit 6", NULL};
    (void)unused;
    execve("/bin/sh", words, NULL);
    return NULL;
}
BEHAVIOUR("execve of another thread replaces the whole process, under its process id") {
    pid_t child = fork();
    if (child == 0) {
        start(run_another, NULL);
        for (;;)
            pause();
    }
    wait_for(child);
}
static void *fork_here(void *unused) {
    (void)unused;
    IN_CHILD { note("%d", getpid() == gettid()); }
    return NULL;
}
BEHAVIOUR("fork by a thread makes a process of one thread") { join(start(fork_here, NULL)); }
BEHAVIOUR("a child of a thread is waited for by any thread") {
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    int status;
    note("%d", waitpid(child, &status, 0) == child);
    show_status(status);
}
static void *name_own(void *name) {
    prctl(PR_SET_NAME, "worker");
    prctl(PR_GET_NAME, name);
    return NULL;
}
BEHAVIOUR("each thread has a name of its own") {
    char own[16], its[16];
    prctl(PR_SET_NAME, "a name that is longer");
    join(start(name_own, its));
    prctl(PR_GET_NAME, own);
    note("%s, %s", own, its);
}
// What a file of /proc says, without its last newline.
static void note_text(const char *path) {
    char text[100];
    int fd = must(open(path, O_RDONLY));
    long bytes = read(fd, text, sizeof text - 1);
    text[bytes > 0 ? bytes - 1 : 0] = '\0';
    close(fd);
    note("%s", text);
}
static void *name_in_proc(void *unused) {
    (void)unused;
    char path[60];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", gettid());
    note_text(path);
    int fd = must(open(path, O_WRONLY));
    show(write(fd, "named by its file\n", 18));
    close(fd);
    note_text(path);
    note_text("/proc/self/comm");
    pid_t child = fork();
    if (child == 0) {
        note_text("/proc/self/comm");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return NULL;
}
BEHAVIOUR("a thread begins with its maker's name, a process with that of the thread that forked; comm can be written") {
    prctl(PR_SET_NAME, "first");
    join(start(name_in_proc, NULL));
    note_text("/proc/self/comm");
}
BEHAVIOUR("set_tid_address returns the thread's id") { note("%d", syscall(SYS_set_tid_address, &word) == gettid()); }
static int sleep_a_little(void *unused) {
    (void)unused;
    sleep_ms(10);
    return 0;
}
BEHAVIOUR("CLONE_CHILD_CLEARTID clears the word and wakes, when the memory is shared") {
    static char stack[65536];
    word = 77;
    int flags = CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD;
    pid_t child = must(clone(sleep_a_little, stack + sizeof stack, flags, NULL, NULL, NULL, &word));
    while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) == 77)
        futex(&word, FUTEX_WAIT, 77, NULL);
    show(word);
    wait_for(child);
}
BEHAVIOUR("CLONE_CHILD_CLEARTID does nothing for a process of its own memory") {
    uint32_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *shared = 77;
    pid_t child = syscall(SYS_clone, CLONE_CHILD_CLEARTID | SIGCHLD, NULL, NULL, shared, NULL);
    if (child == 0)
        _exit(0);
    wait_for(child);
    show(*shared);
}
static void *set_user(void *unused) {
    (void)unused;
    return (void *)syscall(SYS_setresuid, USER, USER, USER);
}
BEHAVIOUR("the system call setresuid changes one thread") {
    show(join(start(set_user, NULL)));
    show(getuid());
}
BEHAVIOUR("a child of fork has the alternate stack of its parent") {
    static char memory[16384];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
    IN_CHILD {
        sigaltstack(NULL, &stack);
        note("%x %d", stack.ss_flags, stack.ss_sp == memory);
    }
}
