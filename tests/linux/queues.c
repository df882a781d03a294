/* Message queues, POSIX and System V, beyond what ipc.c has: waiting, readiness, inheritance, notification, limits. */
#include "behaviour.h"
#include "ready.h"
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>

/* A queue whose name is removed at once, so that nothing is left. */
static mqd_t open_queue(int flags, long messages, long bytes) {
    struct mq_attr attributes = {.mq_maxmsg = messages, .mq_msgsize = bytes};
    mq_unlink("/queues");
    mqd_t queue = must(mq_open("/queues", O_CREAT | O_EXCL | O_RDWR | flags, 0600, &attributes));
    mq_unlink("/queues");
    return queue;
}

static long put(mqd_t queue, const char *text, unsigned priority) { return mq_send(queue, text, strlen(text), priority); }

static void show_message(mqd_t queue) {
    char text[64];
    unsigned priority = 0;
    ssize_t length = mq_receive(queue, text, sizeof text, &priority);
    if (length >= 0)
        note("%u:", priority);
    show_bytes(text, length);
}

BEHAVIOUR("mq_open of a queue that does not exist, and mq_unlink of one") {
    show(mq_open("/queues-none", O_RDWR));
    show(mq_unlink("/queues-none"));
    show(syscall(SYS_mq_unlink, bad()));
    show(syscall(SYS_mq_unlink, ""));
}
BEHAVIOUR("mq_open of an existing queue does not look at the attributes") {
    struct mq_attr one = {.mq_maxmsg = 3, .mq_msgsize = 32}, wrong = {.mq_maxmsg = -1, .mq_msgsize = -1}, about;
    mq_unlink("/queues");
    must(mq_open("/queues", O_CREAT | O_RDWR, 0600, &one));
    mqd_t again = mq_open("/queues", O_CREAT | O_RDWR, 0600, &wrong);
    mq_unlink("/queues");
    show(again >= 0 ? 0 : -1);
    must(mq_getattr(again, &about));
    note("%ld %ld", about.mq_maxmsg, about.mq_msgsize);
}
BEHAVIOUR("a queue closes on exec, O_CLOEXEC or not") {
    show(fcntl(open_queue(0, 1, 8), F_GETFD));
    show(fcntl(open_queue(O_CLOEXEC, 1, 8), F_GETFD));
}
BEHAVIOUR("limits of attributes, for a user without rights") {
    static const struct mq_attr few = {.mq_maxmsg = 10, .mq_msgsize = 8}, many = {.mq_maxmsg = 11, .mq_msgsize = 8};
    static const struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 8192}, large = {.mq_maxmsg = 1, .mq_msgsize = 8193};
    const struct mq_attr *const attributes[] = {&few, &many, &small, &large};
    AS(USER) {
        for (int i = 0; i < 4; i++) {
            succeeds(mq_open("/queues-limits", O_CREAT | O_EXCL | O_RDWR, 0600, attributes[i]) >= 0);
            mq_unlink("/queues-limits");
        }
    }
}
BEHAVIOUR("the mode of a new queue loses the umask's bits, and decides who opens it how") {
    struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = 8};
    mq_unlink("/queues");
    umask(0022);
    must(mq_open("/queues", O_CREAT | O_RDWR, 0666, &one));
    AS(USER) {
        succeeds(mq_open("/queues", O_RDONLY) >= 0);
        show(mq_open("/queues", O_RDWR));
        show(mq_open("/queues", O_WRONLY));
        show(mq_unlink("/queues"));
    }
    show(mq_unlink("/queues"));
}
BEHAVIOUR("mq_send from bad memory, and priorities up to 32767") {
    mqd_t queue = open_queue(O_NONBLOCK, 3, 8);
    show(syscall(SYS_mq_timedsend, queue, bad(), 4, 0, NULL));
    show(put(queue, "x", 32768));
    show(put(queue, "low", 0));
    show(put(queue, "high", 32767));
    show_message(queue);
    show_message(queue);
    show_message(queue);
}
BEHAVIOUR("a message of no bytes") {
    mqd_t queue = open_queue(O_NONBLOCK, 3, 8);
    show(mq_send(queue, "", 0, 5));
    show_message(queue);
}
BEHAVIOUR("a waiting mq_receive ends with a message, the next reader waits on") {
    mqd_t queue = open_queue(0, 3, 32);
    struct gate told = new_gate();
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            show_message(queue);
            open_gate(told);
            _exit(0);
        }
    }
    sleep_ms(10);
    wait_until_asleep(children[0]);
    wait_until_asleep(children[1]);
    must(put(queue, "first", 3));
    pass_gate(told);
    must(put(queue, "second", 4));
    wait_for(children[0]);
    wait_for(children[1]);
}
BEHAVIOUR("a waiting mq_send goes on when there is room") {
    mqd_t queue = open_queue(0, 1, 32);
    must(put(queue, "first", 0));
    pid_t child = fork();
    if (child == 0)
        _exit(put(queue, "second", 1) == 0 ? 4 : 5);
    sleep_ms(10);
    wait_until_asleep(child);
    show_message(queue);
    wait_for(child);
    show_message(queue);
}
BEHAVIOUR("a waiting mq_receive is interrupted by a handler, and goes on with SA_RESTART") {
    mqd_t queue = open_queue(0, 1, 32);
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        pid_t child = fork();
        if (child == 0) {
            handle(SIGUSR1, flags);
            show_message(queue);
            show(handled);
            _exit(0);
        }
        sleep_ms(10);
        wait_until_asleep(child);
        kill(child, SIGUSR1);
        sleep_ms(10);
        wait_until_asleep(child);
        if (flags != 0)
            must(put(queue, "after", 1));
        wait_for(child);
    }
}
BEHAVIOUR("a queue without its name works on, a new one with it is another") {
    struct mq_attr one = {.mq_maxmsg = 2, .mq_msgsize = 32};
    mqd_t old = open_queue(O_NONBLOCK, 2, 32);
    mqd_t new = must(mq_open("/queues", O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK, 0600, &one));
    must(mq_unlink("/queues"));
    must(put(old, "old", 1));
    must(put(new, "new", 2));
    show_message(old);
    show_message(new);
}
BEHAVIOUR("a child has its parent's queues, and shares O_NONBLOCK with it") {
    struct mq_attr plain = {.mq_flags = O_NONBLOCK};
    mqd_t queue = open_queue(0, 2, 32);
    IN_CHILD {
        show(put(queue, "from the child", 6));
        must(mq_setattr(queue, &plain, NULL));
    }
    show_message(queue);
    show_message(queue);
}
BEHAVIOUR("a queue that was sent is the same queue, with what is in it") {
    mqd_t queue = open_queue(O_NONBLOCK, 2, 32);
    must(put(queue, "before", 1));
    int received = through_a_socket(queue);
    must(put(received, "after", 2));
    show_message(received);
    show_message(received);
}
BEHAVIOUR("poll and epoll: room for writing, messages for reading") {
    mqd_t queue = open_queue(O_NONBLOCK, 1, 32);
    int level = epoll_of(queue, EPOLLIN | EPOLLOUT), edge = epoll_of(queue, EPOLLIN | EPOLLET);
    show_poll(queue, 0);
    show_epoll(level, 0);
    show_epoll(edge, 0);
    must(put(queue, "x", 0));
    show_poll(queue, 0);
    show_epoll(level, 0);
    show_epoll(level, 0);
    show_epoll(edge, 0);
    show_epoll(edge, 0);
    show_message(queue);
    show_poll(queue, 0);
    show_epoll(level, 0);
}
BEHAVIOUR("poll waits for a message, and for room") {
    mqd_t queue = open_queue(O_NONBLOCK, 1, 32);
    pid_t child = fork();
    if (child == 0) {
        struct pollfd reading = {.fd = queue, .events = POLLIN}, writing = {.fd = queue, .events = POLLOUT};
        int in = poll(&reading, 1, 5000), out = poll(&writing, 1, 5000);
        _exit(in * 10 + out);
    }
    sleep_ms(10);
    wait_until_asleep(child);
    must(put(queue, "x", 0));
    sleep_ms(10);
    wait_until_asleep(child);
    show_message(queue);
    wait_for(child);
}
BEHAVIOUR("mq_notify with bad kinds, signals, memory, of what is no queue") {
    struct sigevent event = {.sigev_notify = 77, .sigev_signo = SIGUSR1};
    mqd_t queue = open_queue(O_NONBLOCK, 1, 32);
    show(syscall(SYS_mq_notify, queue, &event));
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = 65;
    show(syscall(SYS_mq_notify, queue, &event));
    show(syscall(SYS_mq_notify, queue, bad()));
    event.sigev_signo = SIGUSR1;
    show(syscall(SYS_mq_notify, 0, &event));
    show(syscall(SYS_mq_notify, 99, &event));
    show(syscall(SYS_mq_notify, queue, NULL));
}
BEHAVIOUR("mq_notify SIGEV_NONE holds the place, without a signal, until a message comes") {
    struct sigevent none = {.sigev_notify = SIGEV_NONE}, event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    mqd_t queue = open_queue(O_NONBLOCK, 2, 32);
    handle(SIGUSR1, 0);
    show(mq_notify(queue, &none));
    show(mq_notify(queue, &event));
    IN_CHILD { show(mq_notify(queue, &event)); }
    must(put(queue, "x", 0));
    show(handled);
    show(mq_notify(queue, &event));
}
BEHAVIOUR("who waits in mq_receive has the message, and the wish to be notified stays") {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    mqd_t queue = open_queue(0, 2, 32);
    handle(SIGUSR1, 0);
    must(mq_notify(queue, &event));
    pid_t child = fork();
    if (child == 0) {
        show_message(queue);
        _exit(0);
    }
    sleep_ms(10);
    wait_until_asleep(child);
    must(put(queue, "received", 0));
    wait_for(child);
    show(handled);
    must(put(queue, "told", 0));
    show(handled);
}
BEHAVIOUR("a close by the process that wished it, and its end, end a notification; one by another does not") {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    mqd_t queue = open_queue(O_NONBLOCK, 2, 32), copy = must(dup(queue));
    must(mq_notify(queue, &event));
    IN_CHILD {
        close(copy);
        show(mq_notify(queue, &event));
    }
    close(copy);
    IN_CHILD { show(mq_notify(queue, &event)); }
    show(mq_notify(queue, &event));
}

/* System V. */

struct letter {
    long type;
    char text[16];
};

static int owned[4], owned_count;
static int new_queue(int mode) {
    int queue = must(msgget(IPC_PRIVATE, IPC_CREAT | mode));
    owned[owned_count++] = queue;
    return queue;
}

/* A behaviour whose queues are removed at its end. */
#define BEHAVIOUR_OF_IPC(title)              \
    static void JOIN(body_, __LINE__)(void); \
    BEHAVIOUR(title) {                       \
        JOIN(body_, __LINE__)();             \
        while (owned_count > 0)              \
            msgctl(owned[--owned_count], IPC_RMID, NULL); \
    }                                        \
    static void JOIN(body_, __LINE__)(void)

static long post(int queue, long type, const char *text, int flags) {
    struct letter letter = {.type = type};
    memcpy(letter.text, text, strlen(text));
    return msgsnd(queue, &letter, strlen(text), flags);
}

static void show_letter(int queue, long type, int flags) {
    struct letter letter = {0};
    long length = msgrcv(queue, &letter, sizeof letter.text, type, flags);
    if (length >= 0)
        note("%ld:", letter.type);
    show_bytes(letter.text, length);
}

/* A queue with room for ten bytes. */
static int small_queue(void) {
    struct msqid_ds about;
    int queue = new_queue(0600);
    must(msgctl(queue, IPC_STAT, &about));
    about.msg_qbytes = 10;
    must(msgctl(queue, IPC_SET, &about));
    return queue;
}

BEHAVIOUR_OF_IPC("two queues of IPC_PRIVATE are two; a removed one is gone for all calls") {
    int one = new_queue(0600), two = new_queue(0600);
    struct msqid_ds about;
    note("%d", one != two);
    must(msgctl(one, IPC_RMID, NULL));
    show(post(one, 1, "x", IPC_NOWAIT));
    show_letter(one, 0, IPC_NOWAIT);
    show(msgctl(one, IPC_STAT, &about));
    show(msgctl(one, IPC_RMID, NULL));
    show(post(two, 1, "x", IPC_NOWAIT));
}
BEHAVIOUR_OF_IPC("a waiting msgsnd goes on when there is room") {
    int queue = small_queue();
    must(post(queue, 1, "12345678", 0));
    pid_t child = fork();
    if (child == 0)
        _exit(post(queue, 2, "abc", 0) == 0 ? 4 : 5);
    sleep_ms(10);
    wait_until_asleep(child);
    show_letter(queue, 0, 0);
    wait_for(child);
    show_letter(queue, 0, 0);
}
BEHAVIOUR_OF_IPC("removing a queue ends a msgsnd that waits for room") {
    int queue = small_queue();
    must(post(queue, 1, "12345678", 0));
    pid_t child = fork();
    if (child == 0) {
        show(post(queue, 2, "abc", 0));
        _exit(0);
    }
    sleep_ms(10);
    wait_until_asleep(child);
    must(msgctl(queue, IPC_RMID, NULL));
    wait_for(child);
}
BEHAVIOUR_OF_IPC("msgsnd and msgrcv that wait are interrupted, whatever SA_RESTART says") {
    int queue = small_queue();
    must(post(queue, 1, "12345678", 0));
    for (int sending = 0; sending < 2; sending++) {
        pid_t child = fork();
        if (child == 0) {
            handle(SIGUSR1, SA_RESTART);
            if (sending)
                show(post(queue, 2, "abc", 0));
            else
                show_letter(queue, 9, 0);
            _exit(0);
        }
        sleep_ms(10);
        wait_until_asleep(child);
        kill(child, SIGUSR1);
        wait_for(child);
    }
}
BEHAVIOUR_OF_IPC("receivers of different types each have theirs, in any order") {
    int queue = new_queue(0600);
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            show_letter(queue, i + 1, 0);
            _exit(0);
        }
    }
    sleep_ms(10);
    wait_until_asleep(children[0]);
    wait_until_asleep(children[1]);
    must(post(queue, 2, "two", 0));
    wait_for(children[1]);
    must(post(queue, 1, "one", 0));
    wait_for(children[0]);
}
BEHAVIOUR_OF_IPC("a letter of no bytes, of the longest type") {
    int queue = new_queue(0600);
    show(post(queue, LONG_MAX, "", 0));
    show_letter(queue, LONG_MAX, IPC_NOWAIT);
    show(post(queue, 5, "", 0));
    show_letter(queue, LONG_MIN, IPC_NOWAIT);
}
BEHAVIOUR_OF_IPC("IPC_STAT tells who has sent and received, and how much there is") {
    int queue = new_queue(0640);
    struct msqid_ds about;
    must(msgctl(queue, IPC_STAT, &about));
    note("%d %d %d %d", about.msg_lspid, about.msg_lrpid, about.msg_stime != 0, about.msg_rtime != 0);
    pid_t child = fork();
    if (child == 0) {
        post(queue, 1, "one", 0);
        post(queue, 2, "second", 0);
        _exit(0);
    }
    wait_for(child);
    show_letter(queue, 1, 0);
    must(msgctl(queue, IPC_STAT, &about));
    note("%d %d %lu %lu %o", about.msg_lspid == child, about.msg_lrpid == getpid(), about.msg_qnum, about.__msg_cbytes,
         about.msg_perm.mode);
    note("%d %d", about.msg_stime != 0, about.msg_rtime != 0);
}
BEHAVIOUR_OF_IPC("who may read a queue and not write it") {
    int queue = new_queue(0644);
    struct msqid_ds about;
    must(post(queue, 1, "public", 0));
    AS(USER) {
        show(post(queue, 1, "x", IPC_NOWAIT));
        show(msgctl(queue, IPC_STAT, &about));
        show(msgctl(queue, IPC_SET, &about));
        show_letter(queue, 0, IPC_NOWAIT);
    }
}
BEHAVIOUR_OF_IPC("a queue's owner lowers msg_qbytes, and does not raise it beyond the limit") {
    struct msqid_ds about;
    int queue = new_queue(0600);
    must(msgctl(queue, IPC_STAT, &about));
    about.msg_perm.uid = USER;
    must(msgctl(queue, IPC_SET, &about));
    AS(USER) {
        about.msg_qbytes = 100;
        show(msgctl(queue, IPC_SET, &about));
        about.msg_qbytes = 1 << 20;
        show(msgctl(queue, IPC_SET, &about));
    }
}
BEHAVIOUR_OF_IPC("what a process has sent stays when it has ended") {
    int queue = new_queue(0600);
    IN_CHILD { must(post(queue, 7, "a will", 0)); }
    show_letter(queue, 0, IPC_NOWAIT);
}
