/* What the programs of this folder have in common: results by name, children that are bound, and an end for every run.
 *
 * Each program says by lines what calls return; NAME.expect has what it prints, on every back end. What children print is shown when they
 * are reaped, so that no order depends on time.
 */
#ifndef M3TEST_H
#define M3TEST_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <m3ipc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The result of a call as it is printed. */
static inline const char *result(int value)
{
    static char text[16];
#define X(name) \
    if (value == name) \
        return #name;
    EMOL_ERRORS(X)
#undef X
    snprintf(text, sizeof text, "%d", value);
    return text;
}

#define SHOW(call) printf("%s -> %s\n", #call, result(call))

/* Starts the node, and container 0. */
static inline void begin(void)
{
    VM_usr_t vm = {.vm_vmid = 0, .vm_name = "test"};
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(60);
    if (mnx_drvs_init(0, NULL) != 0 || mnx_vm_init(&vm) != 0) {
        puts("no container");
        exit(1);
    }
}

/* Starts another container. */
static inline int container(int vmid)
{
    VM_usr_t vm = {.vm_vmid = vmid, .vm_name = "other"};
    return mnx_vm_init(&vm);
}

/* The children that spawn has started, and where their output goes. */
static struct {
    pid_t pid;
    int output;
} children[256];
static int child_count;

/* Starts a process that is bound to a slot of a container and then runs `body`. Returns its pid. What it prints is shown by reap. */
static inline pid_t spawn_in(int vmid, int p_nr, void (*body)(void))
{
    int ends[2];
    if (pipe(ends) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        mnx_wait4bind();
        body();
        exit(0);
    }
    close(ends[1]);
    children[child_count].pid = pid;
    children[child_count++].output = ends[0];
    mnx_lclbind(vmid, pid, p_nr);
    return pid;
}

static inline pid_t spawn(int p_nr, void (*body)(void))
{
    return spawn_in(0, p_nr, body);
}

/* Shows what a child that has ended has printed. */
static inline void show_output(pid_t pid)
{
    char text[4096];
    ssize_t bytes;
    for (int i = 0; i < child_count; i++) {
        if (children[i].pid != pid)
            continue;
        // Others may have inherited the end that writes: what is there is all.
        fcntl(children[i].output, F_SETFL, O_NONBLOCK);
        while ((bytes = read(children[i].output, text, sizeof text)) > 0)
            fwrite(text, 1, bytes, stdout);
        close(children[i].output);
        children[i].pid = 0;
    }
}

/* Waits for a child to end, shows what it has printed, and how it ended unless it ended well. */
static inline void reap(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid) {
        puts("no such child");
        return;
    }
    show_output(pid);
    if (WIFSIGNALED(status))
        printf("child ended by signal %d\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        printf("child ended with %d\n", WEXITSTATUS(status));
}

/* A child has printed all: it stops, for kill_printed. */
static inline void printed(void)
{
    kill(getpid(), SIGSTOP);
}

/* Kills a child when it has printed all, and reaps it. One that is killed as soon as others have heard of it may not have printed yet. */
static inline void kill_printed(pid_t pid)
{
    int status;
    waitpid(pid, &status, WUNTRACED);
    kill(pid, SIGKILL);
    reap(pid);
}

/* Waits until of the flags `which` the process in a slot has exactly `flags`. */
static inline void until_exactly(int p_nr, unsigned which, unsigned flags)
{
    proc_usr_t proc;
    while (mnx_getprocinfo(0, p_nr, &proc) == 0 && (proc.p_rts_flags & which) != flags)
        usleep(500);
}

/* Waits until the process in a slot waits in a call: until all bits of `flags` are set. */
static inline void until(int p_nr, unsigned flags)
{
    until_exactly(p_nr, flags, flags);
}

/* Waits a moment in which others could do wrong; no result depends on its length. */
static inline void moment(void)
{
    usleep(20000);
}

static inline message text_message(int type, int number)
{
    message m;
    memset(&m, 0, sizeof m);
    m.m_type = type;
    m.m1_i1 = number;
    return m;
}

#endif
