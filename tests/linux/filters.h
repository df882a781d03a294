/* What behaviours of seccomp's filters share: instructions, and filters made of them. */
#include "behaviour.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
/* Two instructions: for the call with this number, the value is returned. */
#define FOR(call, value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), RETURN(value)
#define ALLOW RETURN(SECCOMP_RET_ALLOW)
#define ERROR(number) (SECCOMP_RET_ERRNO | (number))
/* Adds a filter with these instructions. */
#define ADD(flags, ...) add(flags, (struct sock_filter[]){__VA_ARGS__}, sizeof((struct sock_filter[]){__VA_ARGS__}) / 8)
/* Adds one that returns a value for one call, and allows all others. */
#define ADD_FOR(call, value) must(ADD(0, LOAD(nr), FOR(call, value), ALLOW))

__attribute__((unused)) static long seccomp(unsigned long operation, unsigned long flags, const void *arguments) {
    return syscall(SYS_seccomp, operation, flags, arguments);
}

__attribute__((unused)) static long add(unsigned flags, struct sock_filter *instructions, unsigned short count) {
    struct sock_fprog program = {count, instructions};
    return seccomp(SECCOMP_SET_MODE_FILTER, flags, &program);
}
