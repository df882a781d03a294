/* hog: takes a resource until there is no more, and tells how it was refused.
 * usage: hog memory|processes|descriptors */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

/* Touches memory until it is refused, or until the system ends the program that takes it. */
static int take_memory(void)
{
    pid_t child = fork();
    if (child == 0) {
        for (;;) {
            char *piece = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (piece == MAP_FAILED)
                _exit(errno == ENOMEM ? 0 : 1);
            memset(piece, 1, PIECE);
        }
    }
    int status;
    waitpid(child, &status, 0);
    int good = WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("memory: %s\n", good ? "refused" : "not refused");
    return !good;
}

/* Forks until it is refused; the children wait to be killed. */
static int take_processes(void)
{
    int made = 0;
    pid_t child, group = fork();
    if (group == 0) {
        setpgid(0, 0);
        while ((child = fork()) > 0)
            made++;
        if (child == 0)
            for (;;)
                pause();
        printf("processes: %s\n", errno == EAGAIN && made > 10 ? "refused" : strerror(errno));
        fflush(stdout);
        signal(SIGTERM, SIG_IGN);
        kill(0, SIGTERM);
        while (wait(NULL) > 0)
            ;
        _exit(0);
    }
    int status;
    waitpid(group, &status, 0);
    return status;
}

static int take_descriptors(void)
{
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    int good = errno == EMFILE;
    printf("descriptors: %s\n", good ? "refused" : strerror(errno));
    return !good;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "memory") == 0)
        return take_memory();
    if (strcmp(what, "processes") == 0)
        return take_processes();
    if (strcmp(what, "descriptors") == 0)
        return take_descriptors();
    fprintf(stderr, "usage: hog memory|processes|descriptors\n");
    return 2;
}
