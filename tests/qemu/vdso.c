/* Sets the wall clock again and again, by each call that does, and reads it in the vDSO and by the system call in turn: what is read is what was
 * set, and goes forward only, in a child too. usage: vdso ROUNDS */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long read_clock(int round)
{
    struct timespec now;
    if (round % 2)
        clock_gettime(CLOCK_REALTIME, &now);
    else
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Reads 20 times, whether each is within ten seconds after `set`, which has just been set. */
static int is_right(long long set)
{
    long long last = set;
    for (int i = 0; i < 20; i++) {
        long long now = read_clock(i);
        if (now < last || now > set + 10000000000ll) {
            printf("%lld after %lld, set to %lld\n", now, last, set);
            return 0;
        }
        last = now;
    }
    return 1;
}

int main(int count, char **words)
{
    int rounds = count > 1 ? atoi(words[1]) : 1, wrong = 0;
    for (int i = 0; i < rounds; i++) {
        long long s = 1000000000 + i * 7919ll % 1000 * 86400;
        if (i % 2)
            wrong += settimeofday(&(struct timeval){s, 5}, NULL) != 0;
        else
            wrong += clock_settime(CLOCK_REALTIME, &(struct timespec){s, 5000}) != 0;
        wrong += !is_right(s * 1000000000 + 5000);
        if (i % 16 == 0) {
            pid_t child = fork();
            if (child == 0)
                _exit(!is_right(s * 1000000000 + 5000));
            int status;
            wrong += waitpid(child, &status, 0) != child || status != 0;
        }
    }
    printf("%d of %d rounds went wrong\n", wrong, rounds);
    return wrong != 0;
}
