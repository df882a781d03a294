/* POSIX message queues: orders, waits, errors, notifications. Prints the same on Linux and on Skink. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "show.h"

#define NAME "/skink-queue"
/* Enough for a new thread to reach the call that it waits in. */
#define TO_WAIT_US 200000

static struct timespec in_ms(long ms) {
    struct timespec when;
    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_nsec += ms * 1000000;
    when.tv_sec += when.tv_nsec / 1000000000;
    when.tv_nsec %= 1000000000;
    return when;
}

static mqd_t make(const char *name, int flags, long messages, long bytes) {
    struct mq_attr attributes = {.mq_maxmsg = messages, .mq_msgsize = bytes};
    return mq_open(name, O_CREAT | O_RDWR | flags, 0600, &attributes);
}

static void attributes(mqd_t queue) {
    struct mq_attr a;
    if (mq_getattr(queue, &a)) return show("getattr", -1);
    printf("flags %lo, %ld messages of %ld bytes, %ld now\n", a.mq_flags, a.mq_maxmsg, a.mq_msgsize, a.mq_curmsgs);
}

static void receive(mqd_t queue, size_t bytes) {
    char buffer[9000];
    unsigned priority = 0;
    ssize_t length = mq_receive(queue, buffer, bytes, &priority);
    if (length < 0) return show("receive", length);
    printf("received %.*s of priority %u\n", (int)length, buffer, priority);
}

static void ready(mqd_t queue) {
    struct pollfd interest = {queue, POLLIN | POLLOUT, 0};
    show("poll", poll(&interest, 1, 0));
    printf("ready for %x\n", interest.revents);
}

/* A signal may come meanwhile. */
static void wait_for_child(void) {
    while (wait(NULL) < 0 && errno == EINTR);
}

static void opening(void) {
    char name[300];
    memset(name, 'n', sizeof name);
    name[0] = '/';
    name[257] = 0;
    show("open nothing", mq_open(NAME, O_RDWR));
    show("no slash", mq_open("skink", O_CREAT | O_RDWR, 0600, NULL));
    show("only a slash", mq_open("/", O_CREAT | O_RDWR, 0600, NULL));
    show("two slashes", mq_open("/a/b", O_CREAT | O_RDWR, 0600, NULL));
    show("dots", mq_open("/..", O_CREAT | O_RDWR, 0600, NULL));
    show("long name", mq_open(name, O_CREAT | O_RDWR, 0600, NULL));
    show("unlink long name", mq_unlink(name));
    show("unlink nothing", mq_unlink(NAME));
    show("no messages", make(NAME, 0, 0, 8));
    show("no bytes", make(NAME, 0, 8, 0));
    show("negative", make(NAME, 0, -1, 8));
    show("too many", make(NAME, 0, 65537, 8));
    show("too large", make(NAME, 0, 1, (16 << 20) + 1));
    show("bad attributes", syscall(SYS_mq_open, "x", O_CREAT | O_RDWR, 0600, 8));
    show("bad name", syscall(SYS_mq_open, 8, O_CREAT | O_RDWR, 0600, 0));

    mqd_t queue = mq_open(NAME, O_CREAT | O_RDWR, 0640, NULL);
    printf("made: %d\n", queue > 2);
    attributes(queue);
    struct stat stat;
    show("fstat", fstat(queue, &stat));
    printf("mode %o\n", stat.st_mode);
    printf("close on exec: %d, flags %o\n", fcntl(queue, F_GETFD), fcntl(queue, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
    show("exclusive", mq_open(NAME, O_CREAT | O_EXCL | O_RDWR, 0600, NULL));
    mqd_t again = mq_open(NAME, O_RDONLY | O_NONBLOCK);
    attributes(again);
    show("send to a reader", mq_send(again, "a", 1, 0));
    mqd_t writer = mq_open(NAME, O_WRONLY);
    receive(writer, 8192);
    show("unlink", mq_unlink(NAME));
    show("open unlinked", mq_open(NAME, O_RDWR));
    show("send to the unlinked", mq_send(writer, "kept", 4, 1));
    receive(again, 8192);
    mq_close(again);
    mq_close(writer);
    mq_close(queue);
    show("closed", mq_send(queue, "a", 1, 0));
    show("standard output", mq_send(1, "a", 1, 0));
    int most = 0;
    mqd_t all[20];
    while (most < 20) {
        snprintf(name, sizeof name, NAME "-%d", most);
        if ((all[most] = mq_open(name, O_CREAT | O_RDWR, 0600, NULL)) < 0) break;
        most++;
    }
    show("one more", -1);
    printf("queues of the usual size: %d\n", most);
    while (most-- > 0) {
        snprintf(name, sizeof name, NAME "-%d", most);
        mq_close(all[most]);
        mq_unlink(name);
    }
}

static void strangers(void) {
    mqd_t queue = mq_open(NAME, O_CREAT | O_RDWR, 0640, NULL);
    fflush(stdout);
    if (fork() == 0) {
        if (setgid(1000) || setuid(1000)) _exit(1);
        show("a stranger opens", mq_open(NAME, O_RDONLY));
        show("a stranger unlinks", mq_unlink(NAME));
        show("a stranger's large queue", make("/skink-large", 0, 11, 8));
        mqd_t own = make("/skink-own", 0, 10, 8);
        show("a stranger's own", own < 0 ? -1 : 0);
        show("unlinks it", mq_unlink("/skink-own"));
        fflush(stdout);
        _exit(0);
    }
    wait_for_child();
    mq_close(queue);
    mq_unlink(NAME);
}

static void sending(void) {
    char buffer[64];
    mqd_t queue = make(NAME, O_NONBLOCK, 4, 16);
    struct timespec past = {1, 0}, bad = {1, 1000000000}, negative = {-1, 0};
    receive(queue, 16);
    show("long message", mq_send(queue, "12345678901234567", 17, 0));
    show("priority", mq_send(queue, "a", 1, 32768));
    show("bad memory", syscall(SYS_mq_timedsend, queue, 8, 4, 0, NULL));
    show("bad timeout", mq_timedsend(queue, "a", 1, 0, &bad));
    show("negative timeout", mq_timedreceive(queue, buffer, 16, NULL, &negative));
    show("timeout in bad memory", syscall(SYS_mq_timedsend, queue, "a", 1, 0, 8));
    show("low", mq_send(queue, "low", 3, 1));
    show("first", mq_send(queue, "first", 5, 5));
    show("second", mq_send(queue, "second", 6, 5));
    show("top", mq_send(queue, "top", 3, 32767));
    show("full", mq_send(queue, "more", 4, 32767));
    attributes(queue);
    ready(queue);
    receive(queue, 15);
    for (int i = 0; i < 5; i++) receive(queue, 16);
    ready(queue);
    show("empty", mq_send(queue, "", 0, 3));
    printf("received %zd bytes\n", mq_receive(queue, buffer, sizeof buffer, NULL));

    struct mq_attr set = {.mq_flags = 0, .mq_maxmsg = 99}, old;
    show("setattr", mq_setattr(queue, &set, &old));
    printf("flags were %lo\n", old.mq_flags);
    attributes(queue);
    set.mq_flags = O_RDWR;
    show("setattr of other flags", mq_setattr(queue, &set, NULL));
    show("setattr of no queue", mq_setattr(1, &(struct mq_attr){0}, NULL));
    show("in the past", mq_timedreceive(queue, buffer, sizeof buffer, NULL, &past));
    struct timespec soon = in_ms(30);
    show("in vain", mq_timedreceive(queue, buffer, sizeof buffer, NULL, &soon));
    for (int i = 0; i < 4; i++) mq_send(queue, "full", 4, 0);
    soon = in_ms(30);
    show("no room", mq_timedsend(queue, "more", 4, 0, &soon));
    show("no room in the past", mq_timedsend(queue, "more", 4, 0, &past));
    show("write", write(queue, "a", 1));
    show("seek to the middle of nothing", lseek(1000, 0, SEEK_SET));
    mq_close(queue);
    mq_unlink(NAME);
}

static mqd_t shared;

static void *wait_for_one(void *number) {
    char buffer[16];
    ssize_t length = mq_receive(shared, buffer, sizeof buffer, NULL);
    buffer[length] = 0;
    static __thread char result[32];
    snprintf(result, sizeof result, "%ld got %s", (long)number, buffer);
    return strdup(result);
}

static void *send_one(void *number) {
    char text[16];
    snprintf(text, sizeof text, "sent %ld", (long)number);
    return (void *)(long)mq_send(shared, text, strlen(text), (long)number == 3 ? 9 : 1);
}

static void waiting(void) {
    pthread_t threads[3];
    void *result;
    shared = make(NAME, 0, 2, 16);
    for (long i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, wait_for_one, (void *)(i + 1));
        usleep(TO_WAIT_US);
    }
    ready(shared);
    mq_send(shared, "one", 3, 1);
    mq_send(shared, "two", 3, 9);
    mq_send(shared, "three", 5, 5);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        printf("%s\n", (char *)result);
    }
    mq_send(shared, "old", 3, 0);
    mq_send(shared, "older", 5, 0);
    for (long i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, send_one, (void *)(i + 1));
        usleep(TO_WAIT_US);
    }
    attributes(shared);
    for (int i = 0; i < 5; i++) receive(shared, 16);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        printf("send: %ld\n", (long)result);
    }
    fflush(stdout);
    if (fork() == 0) {
        usleep(50000);
        mq_send(shared, "of a child", 10, 2);
        _exit(0);
    }
    fd_set set;
    FD_ZERO(&set);
    FD_SET(shared, &set);
    struct timeval long_time = {60, 0};
    show("select", select(shared + 1, &set, NULL, NULL, &long_time));
    printf("is set: %d\n", FD_ISSET(shared, &set) != 0);
    receive(dup(shared), 16);
    wait_for_child();
}

static void *wait_with_priority(void *priority) {
    struct sched_param parameters = {.sched_priority = (long)priority};
    if (priority) sched_setscheduler(0, SCHED_FIFO, &parameters);
    char buffer[16];
    ssize_t length = mq_receive(shared, buffer, sizeof buffer, NULL);
    char result[64];
    snprintf(result, sizeof result, "priority %ld got %.*s", (long)priority, (int)length, buffer);
    return strdup(result);
}

static void *send_with_priority(void *priority) {
    struct sched_param parameters = {.sched_priority = (long)priority};
    if (priority) sched_setscheduler(0, SCHED_FIFO, &parameters);
    char text[16];
    return (void *)(long)mq_send(shared, text, snprintf(text, sizeof text, "from %ld", (long)priority), 1);
}

/* Real-time threads go on before others, the best of them first. */
static void preferring(void) {
    static const long priorities[5] = {0, 10, 30, 20, 30};
    static const char *texts[5] = {"one", "two", "three", "four", "five"};
    pthread_t threads[5];
    void *result;
    for (int i = 0; i < 5; i++) {
        pthread_create(&threads[i], NULL, wait_with_priority, (void *)priorities[i]);
        usleep(TO_WAIT_US);
    }
    for (int i = 0; i < 5; i++) mq_send(shared, texts[i], strlen(texts[i]), 1);
    for (int i = 0; i < 5; i++) {
        pthread_join(threads[i], &result);
        printf("%s\n", (char *)result);
    }
    for (int i = 0; i < 2; i++) mq_send(shared, "first", 5, 1);
    for (int i = 0; i < 5; i++) {
        pthread_create(&threads[i], NULL, send_with_priority, (void *)priorities[i]);
        usleep(TO_WAIT_US);
    }
    for (int i = 0; i < 7; i++) receive(shared, 16);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
}

static volatile sig_atomic_t signals;
static siginfo_t last;

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    signals++;
    last = *info;
}

static void notifying(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42};
    char buffer[16];
    show("ask", mq_notify(shared, &event));
    show("ask twice", mq_notify(shared, &event));
    show("bad kind", mq_notify(shared, &(struct sigevent){.sigev_notify = 77}));
    show("bad signal", mq_notify(shared, &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 65}));
    show("no queue", mq_notify(1, &event));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        show("another asks", mq_notify(shared, &event));
        show("another takes it off", mq_notify(shared, NULL));
        mq_send(shared, "news", 4, 1);
        mq_send(shared, "more news", 9, 1);
        fflush(stdout);
        _exit(0);
    }
    wait_for_child();
    usleep(50000);
    printf("%d signal, code %d, value %d, of the child %d, user %d\n", signals, last.si_code, last.si_value.sival_int,
           last.si_pid == child, last.si_uid);
    receive(shared, 16);
    receive(shared, 16);
    mq_send(shared, "quiet", 5, 1);
    receive(shared, 16);
    printf("%d signal\n", signals);
    show("ask to be told nothing", mq_notify(shared, &(struct sigevent){.sigev_notify = SIGEV_NONE}));
    show("busy", mq_notify(shared, &event));
    show("take it off", mq_notify(shared, NULL));
    show("ask again", mq_notify(shared, &event));
    struct timespec soon = in_ms(500);
    fflush(stdout);
    if (fork() == 0) {
        usleep(50000);
        mq_send(shared, "to a waiter", 11, 1);
        _exit(0);
    }
    show("waiter", mq_timedreceive(shared, buffer, sizeof buffer, NULL, &soon));
    wait_for_child();
    printf("%d signal\n", signals);
    mqd_t other = mq_open(NAME, O_RDWR);
    mq_close(other);
    show("asking is over with any close", mq_notify(shared, &event));
    fflush(stdout);
    mq_notify(shared, NULL);
    if (fork() == 0) {
        show("a child asks", mq_notify(shared, &event));
        fflush(stdout);
        _exit(0);
    }
    wait_for_child();
    show("and has ended", mq_notify(shared, &event));
    mq_notify(shared, NULL);

    alarm(1);
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGALRM, &action, NULL);
    show("receive with a signal", mq_receive(shared, buffer, sizeof buffer, NULL));
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    soon = in_ms(1500);
    show("restarted", mq_timedreceive(shared, buffer, sizeof buffer, NULL, &soon));
    mq_unlink(NAME);
}

/* Many messages between two processes: each once, in order, whatever happens to the server. */
static void streaming(void) {
    char text[32];
    unsigned priority;
    mqd_t there = make(NAME "-there", 0, 3, 32), back = make(NAME "-back", 0, 1, 32);
    fflush(stdout);
    if (fork() == 0) {
        for (int i = 0; i < 2000; i++) {
            ssize_t length = mq_receive(there, text, sizeof text, &priority);
            if (length < 0 || mq_send(back, text, length, priority)) _exit(1);
        }
        _exit(0);
    }
    if (fork() == 0) {
        for (int i = 0; i < 2000; i++) {
            int length = snprintf(text, sizeof text, "message %d", i);
            if (mq_send(there, text, length, 7)) _exit(1);
        }
        _exit(0);
    }
    int good = 0, status, ends = 0;
    for (int i = 0; i < 2000; i++) {
        char expected[32];
        ssize_t length = mq_receive(back, text, sizeof text, &priority);
        snprintf(expected, sizeof expected, "message %d", i);
        good += length == (ssize_t)strlen(expected) && !memcmp(text, expected, length) && priority == 7;
    }
    while (wait(&status) > 0) ends += status == 0;
    printf("%d messages in order, %d good ends\n", good, ends);
    mq_unlink(NAME "-there");
    mq_unlink(NAME "-back");
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (count > 1 && !strcmp(arguments[1], "stream")) {
        streaming();
        return 0;
    }
    opening();
    strangers();
    sending();
    waiting();
    preferring();
    notifying();
    streaming();
    return 0;
}
