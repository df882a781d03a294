/* System V message queues: keys, types, limits, waiting, rights, removal. Prints what it sees: the same as on Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

struct letter {
    long type;
    char text[9000];
};

static struct letter letter;

static void show(const char *what, long result) {
    int error = errno;
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(error));
    else
        printf("%s: %ld\n", what, result);
    fflush(stdout);
}

static long send_text(int queue, long type, const char *text, int flags) {
    letter.type = type;
    strcpy(letter.text, text);
    return msgsnd(queue, &letter, strlen(text), flags);
}

static void receive(const char *what, int queue, size_t bytes, long type, int flags) {
    memset(&letter, 0, sizeof letter);
    long got = msgrcv(queue, &letter, bytes, type, flags);
    if (got < 0)
        show(what, got);
    else
        printf("%s: %ld '%.*s' of type %ld\n", what, got, (int)got, letter.text, letter.type);
    fflush(stdout);
}

static void status(const char *what, int queue) {
    struct msqid_ds ds;
    show(what, msgctl(queue, IPC_STAT, &ds));
    printf("  %lu messages, %lu bytes of %lu, mode %o, sender %d, receiver %d, sent %d, received %d\n", ds.msg_qnum,
           ds.__msg_cbytes, ds.msg_qbytes, ds.msg_perm.mode & 0777, ds.msg_lspid == getpid(), ds.msg_lrpid == getpid(),
           ds.msg_stime != 0, ds.msg_rtime != 0);
    fflush(stdout);
}

static void keys(void) {
    int queue = msgget(4711, IPC_CREAT | IPC_EXCL | 0640);
    show("make", queue < 0 ? queue : 0);
    show("again", msgget(4711, 0) == queue ? 0 : 1);
    show("exclusively", msgget(4711, IPC_CREAT | IPC_EXCL));
    show("no such key", msgget(4712, 0));
    status("status", queue);
    show("remove", msgctl(queue, IPC_RMID, NULL));
    show("removed", msgctl(queue, IPC_STAT, NULL));
    show("send to removed", send_text(queue, 1, "x", 0));
    receive("receive from removed", queue, 10, 0, 0);
    show("no such command", msgctl(queue, 77, NULL));
}

static void types(int queue) {
    send_text(queue, 5, "five", 0);
    send_text(queue, 3, "three", 0);
    send_text(queue, 9, "nine", 0);
    send_text(queue, 3, "three again", 0);
    send_text(queue, 1, "", 0);
    status("five messages", queue);
    receive("copy of 1", queue, 100, 1, MSG_COPY | IPC_NOWAIT);
    receive("copy of 7", queue, 100, 7, MSG_COPY | IPC_NOWAIT);
    receive("copy that waits", queue, 100, 1, MSG_COPY);
    receive("copy except", queue, 100, 1, MSG_COPY | IPC_NOWAIT | MSG_EXCEPT);
    receive("type 3", queue, 100, 3, 0);
    receive("not 5", queue, 100, 5, MSG_EXCEPT);
    receive("up to 4", queue, 100, -4, 0);
    receive("too long", queue, 4, -4, 0);
    receive("truncated", queue, 4, -4, MSG_NOERROR);
    receive("type 7", queue, 100, 7, IPC_NOWAIT);
    receive("any", queue, 100, 0, 0);
    receive("none", queue, 100, 0, IPC_NOWAIT);
    status("empty", queue);
}

static void mistakes(int queue) {
    show("type 0", send_text(queue, 0, "x", 0));
    show("type -1", send_text(queue, -1, "x", 0));
    letter.type = 1;
    show("8192 bytes", msgsnd(queue, &letter, 8192, 0));
    receive("receive them", queue, 0, 0, MSG_NOERROR);
    show("8193 bytes", msgsnd(queue, &letter, 8193, 0));
    show("-1 bytes", msgsnd(queue, &letter, -1, 0));
    show("bad address", msgsnd(queue, (void *)8, 1, 0));
    show("bad text", msgsnd(queue, (void *)0x7fffffffeff8, 100, 0));
    show("receive -1", msgrcv(queue, &letter, -1, 0, IPC_NOWAIT));
    show("no queue", send_text(-1, 1, "x", 0));
}

static void limits(int queue) {
    struct msqid_ds ds;
    memset(letter.text, 'x', sizeof letter.text);
    letter.type = 1;
    int count = 0;
    while (msgsnd(queue, &letter, 1000, IPC_NOWAIT) == 0)
        count++;
    show("full", -1);
    printf("%d messages\n", count);
    show("a small one", msgsnd(queue, &letter, 384, IPC_NOWAIT));
    show("one byte", msgsnd(queue, &letter, 1, IPC_NOWAIT));
    show("no bytes", msgsnd(queue, &letter, 0, IPC_NOWAIT));
    while (msgrcv(queue, &letter, 1000, 0, IPC_NOWAIT) >= 0)
        ;
    msgctl(queue, IPC_STAT, &ds);
    ds.msg_qbytes = 10;
    show("set", msgctl(queue, IPC_SET, &ds));
    letter.type = 1;
    for (count = 0; msgsnd(queue, &letter, 0, IPC_NOWAIT) == 0; count++)
        ;
    printf("%d empty messages\n", count);
    while (msgrcv(queue, &letter, 0, 0, IPC_NOWAIT) >= 0)
        ;
    ds.msg_qbytes = 16384;
    msgctl(queue, IPC_SET, &ds);
}

static void nothing(int signal) { (void)signal; }

static void waiting(int queue) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        receive("child", queue, 100, 2, 0);
        send_text(queue, 3, "answer", 0);
        _exit(0);
    }
    send_text(queue, 1, "not for the child", 0);
    send_text(queue, 2, "question", 0);
    receive("parent", queue, 100, 3, 0);
    waitpid(child, &status, 0);
    receive("left", queue, 100, 0, 0);

    letter.type = 1;
    while (msgsnd(queue, &letter, 4000, IPC_NOWAIT) == 0)
        ;
    child = fork();
    if (child == 0) {
        letter.type = 7;
        long sent = msgsnd(queue, &letter, 4000, 0);
        show("sent when there was room", sent);
        _exit(0);
    }
    usleep(100000);
    for (int i = 0; i < 4; i++)
        msgrcv(queue, &letter, 4000, 1, 0);
    long got = msgrcv(queue, &letter, 4000, 7, 0);
    waitpid(child, &status, 0);
    show("received", got);

    for (int waits_to_send = 0; waits_to_send < 2; waits_to_send++) {
        struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
        sigaction(SIGUSR1, &action, NULL);
        letter.type = 1;
        while (waits_to_send && msgsnd(queue, &letter, 4000, IPC_NOWAIT) == 0)
            ;
        child = fork();
        if (child == 0) {
            long result = waits_to_send ? msgsnd(queue, &letter, 4000, 0) : msgrcv(queue, &letter, 10, 0, 0);
            show("interrupted", result);
            result = waits_to_send ? msgsnd(queue, &letter, 4000, 0) : msgrcv(queue, &letter, 10, 0, 0);
            show("removed meanwhile", result);
            _exit(0);
        }
        usleep(200000);
        kill(child, SIGUSR1);
        usleep(200000);
        msgctl(queue, IPC_RMID, NULL);
        waitpid(child, &status, 0);
        queue = msgget(IPC_PRIVATE, 0600);
    }
    msgctl(queue, IPC_RMID, NULL);
}

static void rights(void) {
    int queue = msgget(IPC_PRIVATE, 0620);
    int readable = msgget(IPC_PRIVATE, 0604);
    struct msqid_ds ds;
    msgctl(queue, IPC_STAT, &ds);
    fflush(stdout);
    if (fork() == 0) {
        setgid(0);
        setuid(1234);
        show("group sends", send_text(queue, 1, "x", 0));
        receive("group receives", queue, 10, 0, IPC_NOWAIT);
        show("group looks", msgctl(queue, IPC_STAT, &ds));
        show("others send", send_text(readable, 1, "x", 0));
        show("group sets", msgctl(queue, IPC_SET, &ds));
        show("group removes", msgctl(queue, IPC_RMID, NULL));
        _exit(0);
    }
    wait(NULL);
    msgctl(queue, IPC_RMID, NULL);
    msgctl(readable, IPC_RMID, NULL);
}

int main(void) {
    keys();
    int queue = msgget(IPC_PRIVATE, 0600);
    types(queue);
    mistakes(queue);
    limits(queue);
    waiting(queue);
    rights();
    return 0;
}
