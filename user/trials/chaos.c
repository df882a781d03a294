/* chaos: random system calls, kernel calls and messages, to show that garbage stops nobody but its author.
 *
 * usage: chaos CALLS [SEED]. The calls are made in batches by children which have no privileges (uid 65534), in a directory of their
 * own; a child that gets stuck is killed. The numbers are those of abi/src/call.rs. The program ends with 0 when all calls have been
 * made: whether the system is unharmed is for others to see.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 2000, NOBODY = 65534, PRIMITIVES = 0x1000, KERNEL_CALLS = 0x1100, LAST_LINUX_CALL = 460 };

/* Calls made so far by the present child, so that its successor does the rest. Shared memory. */
static volatile uint64_t *done;
static char scratch[8192];

static uint64_t random_state;

/* xorshift64*: the same calls for the same seed. */
static uint64_t random_number(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull;
}

/* An argument of the kinds that find mistakes: small numbers, good, bad, read-only, kernel and crossing pointers, anything. */
static uint64_t random_argument(void)
{
    static const uint64_t special[] = {
        0, 1, 2, 3, 4, 7, 8, 16, 63, 64, 255, 4095, 4096, 65536, 0x7fffffff, 0x80000000, 0xffffffff, -1ull, -2ull, -4096ull,
        0x7fffffffffff, 0x800000000000, 0x7fffffffe000, 0xffffffff80000000, 0xffff800000000000, 0x10000, 0x400000,
    };
    uint64_t number = random_number();
    switch (number % 8) {
    case 0: case 1: return special[(number >> 8) % (sizeof special / sizeof *special)];
    case 2: case 3: return (uint64_t)scratch + (number >> 8) % sizeof scratch;
    case 4: return (uint64_t)&random_argument;
    case 5: return (number >> 8) % 64;
    case 6: return (number >> 8) & 0xfff;
    default: return number;
    }
}

static uint64_t random_call(void)
{
    uint64_t number = random_number();
    switch (number % 4) {
    case 0: return PRIMITIVES + (number >> 8) % 10;
    case 1: return KERNEL_CALLS + (number >> 8) % 48;
    case 2: return (number >> 8) % 2100;
    default: return (number >> 8) % LAST_LINUX_CALL;
    }
}

/* Calls that would end the batch or multiply the caller; other tests make those. */
static int is_left_out(uint64_t number)
{
    switch (number) {
    case SYS_exit: case SYS_exit_group: case SYS_fork: case SYS_vfork: case SYS_clone: case SYS_clone3: case KERNEL_CALLS:
        return 1;
    default:
        return 0;
    }
}

static void call(uint64_t number, int by_vector)
{
    register uint64_t rax __asm__("rax") = number;
    register uint64_t rdi __asm__("rdi") = random_argument();
    register uint64_t rsi __asm__("rsi") = random_argument();
    register uint64_t rdx __asm__("rdx") = random_argument();
    register uint64_t r10 __asm__("r10") = random_argument();
    register uint64_t r8 __asm__("r8") = random_argument();
    register uint64_t r9 __asm__("r9") = random_argument();
    register uint64_t r12 __asm__("r12") = random_argument();
    register uint64_t r13 __asm__("r13") = random_argument();
    register uint64_t r14 __asm__("r14") = random_argument();
    if (by_vector)
        __asm__ volatile("int $0x21"
                         : "+r"(rax), "+r"(rdi), "+r"(rsi), "+r"(rdx), "+r"(r10), "+r"(r8), "+r"(r9), "+r"(r12), "+r"(r13), "+r"(r14)
                         : : "rcx", "r11", "memory");
    else
        __asm__ volatile("syscall"
                         : "+r"(rax), "+r"(rdi), "+r"(rsi), "+r"(rdx), "+r"(r10), "+r"(r8), "+r"(r9), "+r"(r12), "+r"(r13), "+r"(r14)
                         : : "rcx", "r11", "memory");
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* Ends calls that wait: every 5 ms a signal interrupts. */
static void start_interruptions(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval interval = {{0, 5000}, {0, 5000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &interval, NULL);
}

static void run_batch(uint64_t seed, uint64_t calls)
{
    struct rlimit processes = {20, 20};
    setpgid(0, 0);
    setrlimit(RLIMIT_NPROC, &processes);
    if (chdir("/tmp/chaos") != 0 || setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        _exit(1);
    start_interruptions();
    random_state = seed;
    while (*done < calls) {
        ++*done;
        uint64_t number = random_call();
        int by_vector = random_number() % 16 == 0;
        if (!is_left_out(number))
            call(number, by_vector);
    }
    _exit(0);
}

/* Waits for the child; one that makes no progress for a second is killed. */
static void supervise(pid_t child)
{
    uint64_t before = -1ull;
    for (;;) {
        struct timespec pause = {0, 10000000};
        for (int i = 0; i < 100; i++) {
            if (waitpid(child, NULL, WNOHANG) == child) {
                kill(-child, SIGKILL);
                return;
            }
            nanosleep(&pause, NULL);
        }
        if (*done == before) {
            kill(child, SIGKILL);
            kill(-child, SIGKILL);
        }
        before = *done;
    }
}

int main(int argc, char **argv)
{
    uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    if (calls == 0) {
        fprintf(stderr, "usage: chaos CALLS [SEED]\n");
        return 2;
    }
    done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (done == MAP_FAILED) {
        perror("chaos: mmap");
        return 1;
    }
    mkdir("/tmp/chaos", 0777);
    chmod("/tmp/chaos", 0777);

    uint64_t batches = 0;
    for (uint64_t made = 0; made < calls; batches++) {
        uint64_t batch = calls - made < BATCH ? calls - made : BATCH;
        *done = 0;
        pid_t child = fork();
        if (child < 0) {
            perror("chaos: fork");
            return 1;
        }
        if (child == 0)
            run_batch(seed * 1000003 + batches + 1, batch);
        supervise(child);
        if (*done == 0) {
            fprintf(stderr, "chaos: a child could not start\n");
            return 1;
        }
        /* The child may have overwritten the counter itself. */
        made += *done <= batch ? *done : batch;
    }
    printf("%llu calls by %llu children\n", (unsigned long long)calls, (unsigned long long)batches);
    return 0;
}
