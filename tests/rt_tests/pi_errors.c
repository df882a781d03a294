/* Futexes with priority inheritance, by system calls and by glibc: errors, time limits, circles, signals, and holders that end. Prints the same on
   Linux and on Skink. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

static uint32_t first, second;
static pthread_mutex_t mutex;
static volatile int signals;

static long futex(uint32_t *word, int operation, struct timespec *limit) {
    long result = syscall(SYS_futex, word, operation, 0, limit, NULL, 0);
    return result < 0 ? -errno : result;
}

static void say(const char *what, long result) { printf("%s: %s\n", what, result ? strerror(-result) : "done"); }

static void said(const char *what, int error) { say(what, -error); }

static uint32_t own(void) { return syscall(SYS_gettid); }

static void nap(void) { usleep(1000); }

static void await_waiter(uint32_t *word) {
    while (!(__atomic_load_n(word, __ATOMIC_SEQ_CST) & FUTEX_WAITERS)) nap();
    for (int i = 0; i < 20; i++) nap();
}

static struct timespec after(clockid_t clock, long milliseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += milliseconds * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static pthread_t start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument)) printf("no thread\n");
    return thread;
}

static void on_signal(int number) {
    (void)number;
    signals++;
}

/* Takes the first futex, lets the test go on, and gives it up when somebody waits, or (with an argument) ends with it. */
static void *hold(void *ends) {
    __atomic_store_n(&first, own(), __ATOMIC_SEQ_CST);
    await_waiter(&first);
    if (!ends) futex(&first, FUTEX_UNLOCK_PI_PRIVATE, NULL);
    return NULL;
}

static void *hold_first_want_second(void *result) {
    first = own();
    while (!__atomic_load_n(&second, __ATOMIC_SEQ_CST)) nap();
    *(long *)result = futex(&second, FUTEX_LOCK_PI_PRIVATE, NULL);
    futex(&second, FUTEX_UNLOCK_PI_PRIVATE, NULL);
    futex(&first, FUTEX_UNLOCK_PI_PRIVATE, NULL);
    return NULL;
}

static void await_held(void) {
    while (!__atomic_load_n(&first, __ATOMIC_SEQ_CST)) nap();
}

static void errors(void) {
    static uint32_t words[2];
    first = 0;
    say("unlock what nobody holds", futex(&first, FUTEX_UNLOCK_PI_PRIVATE, NULL));
    first = own();
    say("lock one's own", futex(&first, FUTEX_LOCK_PI_PRIVATE, NULL));
    say("try one's own", futex(&first, FUTEX_TRYLOCK_PI_PRIVATE, NULL));
    say("unlock one's own", futex(&first, FUTEX_UNLOCK_PI_PRIVATE, NULL));
    printf("word %x\n", first);
    say("lock a free one", futex(&first, FUTEX_LOCK_PI_PRIVATE, NULL));
    printf("mine %d\n", first == own());
    first = 0x3ffffff0;
    say("lock a dead one's", futex(&first, FUTEX_LOCK_PI_PRIVATE, NULL));
    first = 0x3ffffff0;
    say("try a dead one's", futex(&first, FUTEX_TRYLOCK_PI_PRIVATE, NULL));
    first = FUTEX_OWNER_DIED;
    say("lock one whose owner died", futex(&first, FUTEX_LOCK_PI_PRIVATE, NULL));
    printf("marked %d mine %d\n", !!(first & FUTEX_OWNER_DIED), (first & FUTEX_TID_MASK) == own());
    say("not aligned", futex((uint32_t *)((char *)words + 2), FUTEX_LOCK_PI_PRIVATE, NULL));
    say("no memory", futex((uint32_t *)64, FUTEX_LOCK_PI_PRIVATE, NULL));
    say("unlock no memory", futex((uint32_t *)64, FUTEX_UNLOCK_PI_PRIVATE, NULL));
    struct timespec wrong = {0, 1000000000};
    say("bad time", futex(&first, FUTEX_LOCK_PI_PRIVATE, &wrong));
    first = 0;
}

static void time_limits(void) {
    first = 0;
    pthread_t thread = start(hold, NULL);
    await_held();
    struct timespec past = {1, 0}, soon = after(CLOCK_MONOTONIC, 5);
    say("unlock another's", futex(&first, FUTEX_UNLOCK_PI_PRIVATE, NULL));
    say("try another's", futex(&first, FUTEX_TRYLOCK_PI_PRIVATE, NULL));
    say("lock until long ago", futex(&first, FUTEX_LOCK_PI_PRIVATE, &past));
    say("lock for 5 ms", futex(&first, FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG, &soon));
    say("lock", futex(&first, FUTEX_LOCK_PI_PRIVATE, NULL));
    printf("mine %d\n", first == own());
    pthread_join(thread, NULL);
    say("unlock", futex(&first, FUTEX_UNLOCK_PI_PRIVATE, NULL));
}

static void circle(void) {
    long other = -1;
    first = second = 0;
    pthread_t thread = start(hold_first_want_second, &other);
    await_held();
    __atomic_store_n(&second, own(), __ATOMIC_SEQ_CST);
    await_waiter(&second);
    say("close a circle", futex(&first, FUTEX_LOCK_PI_PRIVATE, NULL));
    futex(&second, FUTEX_UNLOCK_PI_PRIVATE, NULL);
    pthread_join(thread, NULL);
    say("the other", other);
}

static void end_of_holder(void) {
    first = 0;
    pthread_t thread = start(hold, "and ends");
    await_held();
    say("wait for one who ends", futex(&first, FUTEX_LOCK_PI_PRIVATE, NULL));
    printf("marked %d mine %d\n", !!(first & FUTEX_OWNER_DIED), (first & FUTEX_TID_MASK) == own());
    pthread_join(thread, NULL);
    first = 0;
}

static pthread_t waiter;

static void *signal_waiter(void *unused) {
    __atomic_store_n(&first, own(), __ATOMIC_SEQ_CST);
    await_waiter(&first);
    pthread_kill(waiter, SIGUSR1);
    while (!signals) nap();
    futex(&first, FUTEX_UNLOCK_PI_PRIVATE, NULL);
    return unused;
}

static void interrupted(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    first = 0;
    waiter = pthread_self();
    pthread_t thread = start(signal_waiter, NULL);
    await_held();
    say("lock with a signal", futex(&first, FUTEX_LOCK_PI_PRIVATE, NULL));
    printf("signals %d\n", signals);
    pthread_join(thread, NULL);
    futex(&first, FUTEX_UNLOCK_PI_PRIVATE, NULL);
}

static void make(pthread_mutex_t *it, int type, int robust, int shared) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    if (robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (shared) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    said("init", pthread_mutex_init(it, &attributes));
}

static void *lock_and_end(void *waits) {
    pthread_mutex_lock(&mutex);
    if (waits) await_waiter((uint32_t *)&mutex);
    return NULL;
}

static void *try_and_unlock(void *unused) {
    struct timespec soon = after(CLOCK_REALTIME, 5);
    said("trylock", pthread_mutex_trylock(&mutex));
    said("unlock another's", pthread_mutex_unlock(&mutex));
    said("timedlock", pthread_mutex_timedlock(&mutex, &soon));
    return unused;
}

static void by_glibc(void) {
    make(&mutex, PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    said("lock", pthread_mutex_lock(&mutex));
    said("lock again", pthread_mutex_lock(&mutex));
    pthread_join(start(try_and_unlock, NULL), NULL);
    said("unlock", pthread_mutex_unlock(&mutex));
    said("unlock again", pthread_mutex_unlock(&mutex));
    make(&mutex, PTHREAD_MUTEX_RECURSIVE, 0, 0);
    said("lock", pthread_mutex_lock(&mutex));
    said("lock again", pthread_mutex_lock(&mutex));
    said("unlock", pthread_mutex_unlock(&mutex));
    said("unlock again", pthread_mutex_unlock(&mutex));
}

static void robust(void) {
    make(&mutex, PTHREAD_MUTEX_NORMAL, 1, 0);
    pthread_join(start(lock_and_end, NULL), NULL);
    said("robust, holder has ended", pthread_mutex_lock(&mutex));
    said("consistent", pthread_mutex_consistent(&mutex));
    said("unlock", pthread_mutex_unlock(&mutex));
    pthread_t thread = start(lock_and_end, "waits");
    while (!__atomic_load_n((uint32_t *)&mutex, __ATOMIC_SEQ_CST)) nap();
    said("robust, holder ends", pthread_mutex_lock(&mutex));
    said("unlock", pthread_mutex_unlock(&mutex));
    said("not recoverable", pthread_mutex_lock(&mutex));
    pthread_join(thread, NULL);
}

static void other_process(int execs, const char *self) {
    pthread_mutex_t *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    make(shared, PTHREAD_MUTEX_NORMAL, 1, 1);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(shared);
        await_waiter((uint32_t *)shared);
        if (execs) execl(self, self, "sleep", NULL);
        _exit(0);
    }
    while (!__atomic_load_n((uint32_t *)shared, __ATOMIC_SEQ_CST)) nap();
    said(execs ? "robust, holder becomes another program" : "robust, holder's process ends", pthread_mutex_lock(shared));
    said("consistent", pthread_mutex_consistent(shared));
    said("unlock", pthread_mutex_unlock(shared));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
    if (argc > 1) return sleep(60);
    setvbuf(stdout, NULL, _IOLBF, 0);
    errors();
    time_limits();
    circle();
    end_of_holder();
    interrupted();
    by_glibc();
    robust();
    other_process(0, argv[0]);
    other_process(1, argv[0]);
    return 0;
}
