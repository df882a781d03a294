/* What an ordinary program may do with lib/c: ask the kernel what needs no right. Everything else is refused, and does no harm.
 * usage: c_interface; prints what went wrong, or "refused where it should be". */
#include <signal.h>
#include <skink.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* COM1's data register. */
enum { PORT = 0x3f8 };
enum { EMPTY_SLOT = 127 | 5 << 12 };

static int failures;

static void expect(const char *what, long got, long wanted)
{
    if (got != wanted) {
        printf("%s gave %ld instead of %ld\n", what, got, wanted);
        failures++;
    }
}

#define EXPECT(call, wanted) expect(#call, (call), (wanted))

/* The signal that ends a process which executes IN. */
static int signal_of_in(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        i386inb(PORT);
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(void)
{
    uint64_t halves[2] = {0};
    unsigned long high, low;
    uint8_t byte = 0;
    message m = {.label = SKINK_RS_READY};

    EXPECT(kernel_call(SKINK_SYS_GETTSC, (const uint64_t[6]){0}, halves), 0);
    EXPECT(halves[0] << 32 | halves[1] ? 1 : 0, 1);
    EXPECT(kernel_call(SKINK_SYS_TIME, (const uint64_t[6]){0}, NULL) > 0, 1);

    EXPECT(kernel_call(SKINK_SYS_DEVIO, (const uint64_t[6]){PORT, DIO_INPUT | DIO_BYTE}, NULL), -ECALLDENIED);
    EXPECT(sys_inb(PORT, &byte), -ECALLDENIED);
    EXPECT(sys_outb(PORT, 0), -ECALLDENIED);
    EXPECT(sys_get_tsc(GETTSC, &high, &low), -ECALLDENIED);
    EXPECT(hsys_inb(PORT), -ECALLDENIED);
    EXPECT(hsys_outb(PORT, 0), -ECALLDENIED);
    EXPECT(signal_of_in(), SIGSEGV);

    EXPECT(send(SKINK_ENDPOINT_RS, &m), -ECALLDENIED);
    EXPECT(send33(SKINK_ENDPOINT_RS, &m), -ECALLDENIED);
    EXPECT(sendrec(SKINK_ENDPOINT_PM, &m), -ECALLDENIED);
    EXPECT(sendrec33(SKINK_ENDPOINT_PM, &m), -ECALLDENIED);
    EXPECT(notify(SKINK_ENDPOINT_RS), -ECALLDENIED);
    EXPECT(notify33(SKINK_ENDPOINT_RS), -ECALLDENIED);
    EXPECT(sendnb(SKINK_ENDPOINT_VM, &m), -ECALLDENIED);
    EXPECT(sendnb33(SKINK_ENDPOINT_VM, &m), -ECALLDENIED);
    EXPECT(receive(EMPTY_SLOT, &m), -EDEADSRCDST);
    EXPECT(receive33(EMPTY_SLOT, &m), -EDEADSRCDST);
    EXPECT(send33(SKINK_ENDPOINT_RS, (const message *)16), -EFAULT);
    if (failures == 0)
        puts("refused where it should be");
    return failures != 0;
}
