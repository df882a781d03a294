/* A selector of a local descriptor table, which no process has, is a protection fault, as on Linux: not a read at some base. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void faulted(int signal, siginfo_t *information, void *context)
{
    (void)context;
    printf("signal %d code %s address %p\n", signal, information->si_code == SI_KERNEL ? "SI_KERNEL" : "other", information->si_addr);
    exit(0);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    __asm__ volatile("mov %0, %%ds" : : "r"(0x77));
    printf("no fault\n");
    return 1;
}
