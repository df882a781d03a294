/* System V semaphores and message queues, POSIX message queues. */
#include "behaviour.h"
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

union semun {
    int val;
    struct semid_ds *buf;
    unsigned short *array;
};

struct letter {
    long type;
    char text[16];
};

/* A set, or a queue, that ends with the behaviour's process. */
static int owned[16], owned_count;
static void remove_owned(void) {
    for (int i = 0; i < owned_count; i++)
        if (owned[i] < 0)
            msgctl(~owned[i], IPC_RMID, NULL);
        else
            semctl(owned[i], 0, IPC_RMID);
}

static int new_set(int count, int mode) {
    int set = must(semget(IPC_PRIVATE, count, IPC_CREAT | mode));
    owned[owned_count++] = set;
    return set;
}

static int new_queue(int mode) {
    int queue = must(msgget(IPC_PRIVATE, IPC_CREAT | mode));
    owned[owned_count++] = ~queue;
    return queue;
}

/* A behaviour whose sets and queues are removed at its end. */
#define BEHAVIOUR_OF_IPC(title)                     \
    static void JOIN(body_, __LINE__)(void);        \
    BEHAVIOUR(title) {                              \
        JOIN(body_, __LINE__)();                    \
        remove_owned();                             \
    }                                               \
    static void JOIN(body_, __LINE__)(void)

static long change(int set, int number, int by, int flags) {
    struct sembuf operation = {number, by, flags};
    return semop(set, &operation, 1);
}

static void show_values(int set, int count) {
    for (int number = 0; number < count; number++)
        show(semctl(set, number, GETVAL));
}

static long put(int queue, long type, const char *text, int flags) {
    struct letter letter = {.type = type};
    strcpy(letter.text, text);
    return msgsnd(queue, &letter, strlen(text), flags);
}

static void show_letter(int queue, size_t size, long type, int flags) {
    struct letter letter = {0};
    long length = msgrcv(queue, &letter, size, type, flags | IPC_NOWAIT);
    if (length >= 0)
        note("%ld:", letter.type);
    show_bytes(letter.text, length);
}

BEHAVIOUR_OF_IPC("semget with bad counts, of a key that does not exist, of one that does") {
    show(semget(IPC_PRIVATE, 0, IPC_CREAT | 0600));
    show(semget(IPC_PRIVATE, -1, IPC_CREAT | 0600));
    show(semget(0x5ca1ab1e, 1, 0600));
    int set = must(semget(0x5ca1ab1e, 2, IPC_CREAT | IPC_EXCL | 0600));
    owned[owned_count++] = set;
    show(semget(0x5ca1ab1e, 2, IPC_CREAT | IPC_EXCL | 0600));
    show(semget(0x5ca1ab1e, 3, 0600));
    note("%d", semget(0x5ca1ab1e, 1, 0600) == set);
    note("%d", semget(0x5ca1ab1e, 0, 0) == set);
}
BEHAVIOUR_OF_IPC("a set has its owner's permissions") {
    int set = must(semget(0x5ca1ab1f, 1, IPC_CREAT | 0640));
    owned[owned_count++] = set;
    AS(USER) {
        show(semget(0x5ca1ab1f, 1, 0400));
        show(semctl(set, 0, GETVAL));
        show(change(set, 0, 1, 0));
        show(semctl(set, 0, IPC_RMID));
    }
}
BEHAVIOUR_OF_IPC("semctl SETVAL, GETVAL, SETALL, GETALL") {
    int set = new_set(3, 0600);
    unsigned short all[3] = {4, 5, 6};
    show(semctl(set, 1, SETVAL, (union semun){.val = 7}));
    show_values(set, 3);
    show(semctl(set, 0, SETALL, (union semun){.array = all}));
    memset(all, 0, sizeof all);
    show(semctl(set, 0, GETALL, (union semun){.array = all}));
    note("%d%d%d", all[0], all[1], all[2]);
}
BEHAVIOUR_OF_IPC("semctl with bad numbers, values, commands, memory, of a set that does not exist") {
    int set = new_set(1, 0600);
    show(semctl(set, 1, GETVAL));
    show(semctl(set, -1, GETVAL));
    show(semctl(set, 0, SETVAL, (union semun){.val = -1}));
    show(semctl(set, 0, SETVAL, (union semun){.val = 32768}));
    show(semctl(set, 0, 7777));
    show(semctl(set, 0, GETALL, (union semun){.array = bad()}));
    show(semctl(set, 0, IPC_STAT, (union semun){.buf = bad()}));
    show(semctl(0x7fffff, 0, GETVAL));
}
BEHAVIOUR_OF_IPC("semop with bad sets, numbers, counts, memory") {
    int set = new_set(1, 0600);
    static struct sembuf many[501];
    show(change(0x7fffff, 0, 1, 0));
    show(change(set, 1, 1, 0));
    show(semop(set, many, 0));
    show(semop(set, many, 501));
    show(semop(set, bad(), 1));
    show(change(set, 0, 32767, 0));
    show(change(set, 0, 1, 0));
}
BEHAVIOUR_OF_IPC("semop without waiting") {
    int set = new_set(1, 0600);
    show(change(set, 0, -1, IPC_NOWAIT));
    show(change(set, 0, 2, 0));
    show(change(set, 0, 0, IPC_NOWAIT));
    show(change(set, 0, -2, IPC_NOWAIT));
    show(change(set, 0, 0, IPC_NOWAIT));
}
BEHAVIOUR_OF_IPC("several operations happen all or not at all") {
    int set = new_set(2, 0600);
    struct sembuf both[2] = {{0, 1, 0}, {1, -1, IPC_NOWAIT}};
    show(semop(set, both, 2));
    show_values(set, 2);
}
BEHAVIOUR_OF_IPC("a waiting semop goes on when the value allows it") {
    int set = new_set(1, 0600);
    pid_t child = fork();
    if (child == 0) {
        show(change(set, 0, -2, 0));
        _exit(0);
    }
    change(set, 0, 1, 0);
    while (semctl(set, 0, GETNCNT) != 1)
        sleep_ms(1);
    change(set, 0, 1, 0);
    wait_for(child);
    show(semctl(set, 0, GETVAL));
    note("%d", semctl(set, 0, GETPID) == child);
}
BEHAVIOUR_OF_IPC("removing a set ends those who wait") {
    int set = new_set(1, 0600);
    pid_t child = fork();
    if (child == 0) {
        show(change(set, 0, -1, 0));
        _exit(0);
    }
    while (semctl(set, 0, GETNCNT) != 1)
        sleep_ms(1);
    semctl(set, 0, IPC_RMID);
    wait_for(child);
    show(change(set, 0, 1, 0));
}
BEHAVIOUR_OF_IPC("a waiting semop is interrupted, whatever SA_RESTART says") {
    int set = new_set(1, 0600);
    pid_t child = fork();
    if (child == 0) {
        handle(SIGUSR1, SA_RESTART);
        show(change(set, 0, -1, 0));
        _exit(0);
    }
    while (semctl(set, 0, GETNCNT) != 1)
        sleep_ms(1);
    kill(child, SIGUSR1);
    wait_for(child);
    show(semctl(set, 0, GETNCNT));
}
BEHAVIOUR_OF_IPC("semtimedop ends with its time, and refuses bad times") {
    int set = new_set(1, 0600);
    struct sembuf operation = {0, -1, 0};
    struct timespec time = {0, 10000000}, wrong = {0, -1};
    show(semtimedop(set, &operation, 1, &time));
    show(semtimedop(set, &operation, 1, &wrong));
    show(semtimedop(set, &operation, 1, bad()));
}
BEHAVIOUR_OF_IPC("SEM_UNDO is undone at the end of the process") {
    int set = new_set(1, 0600);
    change(set, 0, 5, 0);
    IN_CHILD {
        change(set, 0, -3, SEM_UNDO);
        show(semctl(set, 0, GETVAL));
    }
    show(semctl(set, 0, GETVAL));
}
BEHAVIOUR_OF_IPC("SETVAL forgets what would be undone") {
    int set = new_set(1, 0600);
    change(set, 0, 5, 0);
    IN_CHILD {
        change(set, 0, -3, SEM_UNDO);
        semctl(set, 0, SETVAL, (union semun){.val = 4});
    }
    show(semctl(set, 0, GETVAL));
}
BEHAVIOUR_OF_IPC("IPC_STAT and IPC_SET of a set") {
    int set = new_set(4, 0640);
    struct semid_ds about;
    show(semctl(set, 0, IPC_STAT, (union semun){.buf = &about}));
    note("%lu %o %d", about.sem_nsems, about.sem_perm.mode, (int)about.sem_perm.uid);
    about.sem_perm.mode = 0666;
    about.sem_perm.uid = USER;
    show(semctl(set, 0, IPC_SET, (union semun){.buf = &about}));
    AS(USER) { show(semctl(set, 0, IPC_RMID)); }
}
BEHAVIOUR_OF_IPC("msgget of a key that does not exist, of one that does") {
    show(msgget(0x5ca1ab20, 0600));
    int queue = must(msgget(0x5ca1ab20, IPC_CREAT | IPC_EXCL | 0600));
    owned[owned_count++] = ~queue;
    show(msgget(0x5ca1ab20, IPC_CREAT | IPC_EXCL | 0600));
    note("%d", msgget(0x5ca1ab20, 0) == queue);
    AS(USER) { show(msgget(0x5ca1ab20, 0400)); }
}
BEHAVIOUR_OF_IPC("msgsnd with bad types, lengths, queues, memory") {
    int queue = new_queue(0600);
    static char large[9000] = {1};
    show(put(queue, 0, "x", 0));
    show(put(queue, -1, "x", 0));
    show(put(0x7fffff, 1, "x", 0));
    show(msgsnd(queue, large, 8193, IPC_NOWAIT));
    show(msgsnd(queue, large, -1, IPC_NOWAIT));
    show(msgsnd(queue, bad(), 1, IPC_NOWAIT));
}
BEHAVIOUR_OF_IPC("msgrcv by order, by type, by the lowest type up to a bound") {
    int queue = new_queue(0600);
    put(queue, 3, "three", 0);
    put(queue, 1, "one", 0);
    put(queue, 2, "two", 0);
    put(queue, 3, "again", 0);
    show_letter(queue, 16, 2, 0);
    show_letter(queue, 16, -3, 0);
    show_letter(queue, 16, 0, 0);
    show_letter(queue, 16, -2, 0);
    show_letter(queue, 16, 3, 0);
    show_letter(queue, 16, 0, 0);
}
BEHAVIOUR_OF_IPC("msgrcv MSG_EXCEPT takes another type") {
    int queue = new_queue(0600);
    put(queue, 1, "one", 0);
    put(queue, 2, "two", 0);
    show_letter(queue, 16, 1, MSG_EXCEPT);
}
BEHAVIOUR_OF_IPC("msgrcv of a message that is too long, and MSG_NOERROR") {
    int queue = new_queue(0600);
    put(queue, 1, "letter", 0);
    show_letter(queue, 3, 0, 0);
    show_letter(queue, 3, 0, MSG_NOERROR);
    show_letter(queue, 3, 0, 0);
}
BEHAVIOUR_OF_IPC("msgrcv with bad lengths and queues") {
    struct letter letter;
    int queue = new_queue(0600);
    show(msgrcv(queue, &letter, -1, 0, IPC_NOWAIT));
    show(msgrcv(0x7fffff, &letter, 1, 0, IPC_NOWAIT));
    show(msgrcv(queue, &letter, 1, 0, IPC_NOWAIT));
}
BEHAVIOUR_OF_IPC("msgrcv waits for its type") {
    int queue = new_queue(0600);
    put(queue, 1, "other", 0);
    pid_t child = fork();
    if (child == 0) {
        struct letter letter;
        show(msgrcv(queue, &letter, 16, 2, 0));
        _exit(0);
    }
    sleep_ms(10);
    wait_until_asleep(child);
    put(queue, 2, "awaited", 0);
    wait_for(child);
}
BEHAVIOUR_OF_IPC("removing a queue ends those who wait") {
    int queue = new_queue(0600);
    pid_t child = fork();
    if (child == 0) {
        struct letter letter;
        show(msgrcv(queue, &letter, 16, 0, 0));
        _exit(0);
    }
    sleep_ms(10);
    wait_until_asleep(child);
    msgctl(queue, IPC_RMID, NULL);
    wait_for(child);
}
BEHAVIOUR_OF_IPC("a full queue: msg_qbytes") {
    int queue = new_queue(0600);
    struct msqid_ds about;
    msgctl(queue, IPC_STAT, &about);
    show((long)about.msg_qbytes);
    about.msg_qbytes = 10;
    show(msgctl(queue, IPC_SET, &about));
    show(put(queue, 1, "12345678", IPC_NOWAIT));
    show(put(queue, 1, "123", IPC_NOWAIT));
    msgctl(queue, IPC_STAT, &about);
    note("%lu %lu", about.msg_qnum, about.__msg_cbytes);
}
BEHAVIOUR_OF_IPC("msgctl by another user, with bad commands and memory") {
    int queue = new_queue(0600);
    struct msqid_ds about;
    show(msgctl(queue, 7777, &about));
    show(msgctl(queue, IPC_STAT, bad()));
    show(msgctl(0x7fffff, IPC_STAT, &about));
    AS(USER) {
        show(msgctl(queue, IPC_STAT, &about));
        show(msgctl(queue, IPC_RMID, NULL));
        show(put(queue, 1, "x", IPC_NOWAIT));
    }
}

/* POSIX queues; their names are removed at once, so that nothing is left. */
static mqd_t open_queue(int flags, long messages, long bytes) {
    struct mq_attr attributes = {.mq_maxmsg = messages, .mq_msgsize = bytes};
    mq_unlink("/behaviour");
    mqd_t queue = mq_open("/behaviour", O_CREAT | O_EXCL | O_RDWR | flags, 0600, &attributes);
    int error = errno;
    mq_unlink("/behaviour");
    errno = error;
    return queue;
}

static void show_message(mqd_t queue) {
    char text[64];
    unsigned priority = 0;
    ssize_t length = mq_receive(queue, text, sizeof text, &priority);
    if (length >= 0)
        note("%u:", priority);
    show_bytes(text, length);
}

BEHAVIOUR("mq_open beyond RLIMIT_MSGQUEUE, and right at it") {
    struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = 8};
    struct rlimit small = {50, 819200}, enough = {4096, 819200};
    AS(USER) {
        must(setrlimit(RLIMIT_MSGQUEUE, &small));
        show(mq_open("/limited", O_CREAT | O_EXCL | O_RDWR, 0600, &one) != -1 ? 0 : -1);
        must(setrlimit(RLIMIT_MSGQUEUE, &enough));
        succeeds(mq_open("/limited", O_CREAT | O_EXCL | O_RDWR, 0600, &one) != -1);
        show(mq_unlink("/limited"));
    }
}
BEHAVIOUR("mq_open of names without a slash, with two, empty, long, of nothing") {
    char name[300] = "/";
    memset(name + 1, 'n', 256);
    show(syscall(SYS_mq_open, "none", O_RDONLY, 0, NULL));
    show(syscall(SYS_mq_open, "a/b", O_RDONLY | O_CREAT, 0600, NULL));
    show(syscall(SYS_mq_open, "", O_RDONLY, 0, NULL));
    show(syscall(SYS_mq_open, name + 1, O_RDONLY | O_CREAT, 0600, NULL));
    show(syscall(SYS_mq_open, bad(), O_RDONLY, 0, NULL));
}
BEHAVIOUR("mq_open with bad attributes") {
    show(open_queue(0, 0, 10));
    show(open_queue(0, 10, 0));
    show(open_queue(0, -1, 10));
    show(syscall(SYS_mq_open, "b", O_RDWR | O_CREAT, 0600, bad()));
}
BEHAVIOUR("mq_open O_EXCL of an existing queue, and by a user without right") {
    mqd_t queue = mq_open("/behaviour", O_CREAT | O_RDWR, 0600, NULL);
    show(queue >= 0);
    show(mq_open("/behaviour", O_CREAT | O_EXCL | O_RDWR, 0600, NULL));
    AS(USER) {
        show(mq_open("/behaviour", O_RDONLY));
        show(mq_unlink("/behaviour"));
    }
    show(mq_unlink("/behaviour"));
    show(mq_unlink("/behaviour"));
}
BEHAVIOUR("messages are received by priority, equal ones in order") {
    mqd_t queue = open_queue(O_NONBLOCK, 10, 64);
    mq_send(queue, "low", 3, 1);
    mq_send(queue, "high", 4, 9);
    mq_send(queue, "also", 4, 9);
    show_message(queue);
    show_message(queue);
    show_message(queue);
    show_message(queue);
}
BEHAVIOUR("mq_send of too long a message, with too high a priority, to a full queue") {
    mqd_t queue = open_queue(O_NONBLOCK, 1, 4);
    show(mq_send(queue, "12345", 5, 0));
    show(mq_send(queue, "1234", 4, 32768));
    show(mq_send(queue, "1234", 4, 0));
    show(mq_send(queue, "1234", 4, 0));
}
BEHAVIOUR("mq_receive into too small a buffer") {
    char text[3];
    mqd_t queue = open_queue(O_NONBLOCK, 1, 4);
    show(mq_receive(queue, text, 3, NULL));
}
BEHAVIOUR("mq_send and mq_receive with the wrong access mode, of what is no queue") {
    char text[64];
    mqd_t queue = mq_open("/behaviour", O_CREAT | O_RDONLY, 0600, &(struct mq_attr){.mq_maxmsg = 1, .mq_msgsize = 64});
    mqd_t writer = mq_open("/behaviour", O_WRONLY);
    mq_unlink("/behaviour");
    show(mq_send(queue, "x", 1, 0));
    show(mq_receive(writer, text, 64, NULL));
    show(mq_send(0, "x", 1, 0));
    show(mq_receive(99, text, 64, NULL));
}
BEHAVIOUR("mq_timedreceive and mq_timedsend end with their time; bad times") {
    char text[64];
    mqd_t queue = open_queue(0, 1, 64);
    struct timespec past = {1, 0}, wrong = {0, 1000000000};
    show(mq_timedreceive(queue, text, 64, NULL, &past));
    show(mq_timedreceive(queue, text, 64, NULL, &wrong));
    mq_send(queue, "x", 1, 0);
    show(mq_timedsend(queue, "x", 1, 0, &past));
    show(mq_timedsend(queue, "x", 1, 0, &wrong));
    show(mq_timedreceive(queue, text, 64, NULL, &wrong));
}
BEHAVIOUR("mq_getattr and mq_setattr") {
    struct mq_attr about, change = {.mq_flags = O_NONBLOCK, .mq_maxmsg = 99};
    mqd_t queue = open_queue(0, 5, 64);
    mq_send(queue, "x", 1, 0);
    show(mq_getattr(queue, &about));
    note("%ld %ld %ld %ld", about.mq_flags, about.mq_maxmsg, about.mq_msgsize, about.mq_curmsgs);
    show(mq_setattr(queue, &change, NULL));
    mq_getattr(queue, &about);
    note("%ld %ld", about.mq_flags, about.mq_maxmsg);
    change.mq_flags = 77;
    show(mq_setattr(queue, &change, NULL));
    show(mq_getattr(0, &about));
}
BEHAVIOUR("mq_notify: one at a time, when the queue was empty, once") {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    mqd_t queue = open_queue(O_NONBLOCK, 5, 64);
    handle(SIGUSR1, 0);
    show(mq_notify(queue, &event));
    show(mq_notify(queue, &event));
    mq_send(queue, "x", 1, 0);
    show(handled);
    mq_send(queue, "y", 1, 0);
    show(handled);
    show(mq_notify(queue, &event));
    show(mq_notify(queue, NULL));
    event.sigev_signo = 99;
    show(mq_notify(queue, &event));
}
BEHAVIOUR("mq_notify by a signal that is queued: once, with its value") {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 42};
    mqd_t queue = open_queue(O_NONBLOCK, 5, 64);
    sigset_t set = set_of(SIGRTMIN);
    block(SIGRTMIN);
    for (int i = 0; i < 2; i++) {
        char text[64];
        show(mq_notify(queue, &event));
        mq_send(queue, "x", 1, 0);
        struct timespec limit = {5, 0};
        siginfo_t info = {0};
        show(sigtimedwait(&set, &info, &limit) == SIGRTMIN);
        note("%d %d %d", info.si_code == SI_MESGQ, info.si_value.sival_int, info.si_pid == getpid());
        limit = (struct timespec){0, 50000000};
        show(sigtimedwait(&set, &info, &limit));
        show(mq_receive(queue, text, sizeof text, NULL));
    }
}
BEHAVIOUR("poll of a message queue") {
    mqd_t queue = open_queue(O_NONBLOCK, 1, 64);
    struct pollfd asked = {.fd = queue, .events = POLLIN | POLLOUT};
    poll(&asked, 1, 0);
    note("%x", asked.revents);
    mq_send(queue, "x", 1, 0);
    poll(&asked, 1, 0);
    note("%x", asked.revents);
}
