/* A child that may never end. */
#ifndef CHILD_H
#define CHILD_H

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* Waits for the child. Its status, or -1 when it has not ended in time. SIGCHLD is blocked. */
static int wait_for(pid_t child, int limit_s)
{
    struct timespec limit = { .tv_sec = limit_s };
    sigset_t set;
    int status;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            return status;
        if (ended < 0 || (sigtimedwait(&set, NULL, &limit) < 0 && errno == EAGAIN))
            return -1;
    }
}

#endif
