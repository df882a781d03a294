/* chaos: random system calls, kernel calls and messages, to show that garbage stops nobody but its author.
 *
 * usage: chaos CALLS [SEED]. The calls are made in batches by children which have no privileges (uid 65534), in a directory of their
 * own; a child that gets stuck is killed. The numbers are those of abi/src/call.rs. The program ends with 0 when all calls have been
 * made: whether the system is unharmed is for others to see.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "batches.h"

enum { PRIMITIVES = 0x1000, KERNEL_CALLS = 0x1100, LAST_LINUX_CALL = 460 };

static char scratch[8192];

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

static void prepare(void)
{
    struct rlimit processes = {20, 20};
    setrlimit(RLIMIT_NPROC, &processes);
}

static void make_call(void)
{
    uint64_t number = random_call();
    int by_vector = random_number() % 16 == 0;
    if (!is_left_out(number))
        call(number, by_vector);
}

int main(int argc, char **argv)
{
    return run_batches(argc, argv, "/tmp/chaos", prepare, make_call);
}
