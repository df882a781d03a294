// Takes as much as one user can get of what vfs keeps for programs, says so, and waits for its input to end.
//
//   crowd pipes    pipes, each of them full
//   crowd vectors  processes that wait in readv for 1,024 pieces each
//   crowd polls    processes that wait in poll for many descriptors each
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USER = 1000, PROCESSES = 800, PIECES = 1024, POLLED = 1000 };

static int ends[2];

static void become_user(void)
{
    if (setgroups(0, 0) || setgid(USER) || setuid(USER)) {
        perror("crowd: setuid");
        exit(1);
    }
}

// Fills pipes until there are no more, in as many processes as that takes.
static void fill_pipes(void)
{
    static char block[65536];
    for (int child = 0; child < 8; child++) {
        if (fork() == 0) {
            int pipe_ends[2];
            while (pipe2(pipe_ends, O_NONBLOCK) == 0)
                while (write(pipe_ends[1], block, sizeof block) > 0) {}
            pause();
        }
    }
    sleep(1);
}

static void wait_for_vector(void)
{
    static char bytes[PIECES];
    static struct iovec pieces[PIECES];
    for (int piece = 0; piece < PIECES; piece++)
        pieces[piece] = (struct iovec){bytes + piece, 1};
    readv(ends[0], pieces, PIECES);
}

static void wait_for_poll(void)
{
    static struct pollfd polled[POLLED];
    for (int index = 0; index < POLLED; index++)
        polled[index] = (struct pollfd){ends[0], POLLIN, 0};
    poll(polled, POLLED, -1);
}

static void start(void (*wait_for)(void))
{
    int count = 0;
    while (count < PROCESSES) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (child == 0) {
            wait_for();
            pause();
        }
        count++;
    }
    sleep(1);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    setpgid(0, 0);
    become_user();
    if (pipe(ends))
        return 1;
    if (strcmp(what, "pipes") == 0)
        fill_pipes();
    else if (strcmp(what, "vectors") == 0)
        start(wait_for_vector);
    else if (strcmp(what, "polls") == 0)
        start(wait_for_poll);
    else
        return 2;
    close(open("/tmp/crowded", O_CREAT | O_WRONLY, 0666));
    char byte;
    while (read(0, &byte, 1) > 0) {}
    kill(0, 9);
}
