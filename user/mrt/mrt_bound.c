/* The longest time that the kernel keeps the timer of the real-time clock waiting while a command runs: usage mrt_bound COMMAND ... Prints ns, which are
 * instructions under --icount. */
#include <skink/mrt.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    mrt_sval_t values = {0};
    mrt_istat_t statistics = {0};
    mrt_iattr_t every_tick = {.period = 1, .task = MRT_NOPROC, .watchdog = MRT_NOPROC, .priority = 1, .irqtype = SOFTIRQ | TDIRQ};
    if (argc < 2 || mrt_RTstart(1000, 1000) || mrt_setiattr(SKINK_RT_IRQS - 1, &every_tick))
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    int status;
    waitpid(pid, &status, 0);
    mrt_getsval(&values);
    mrt_getistat(SKINK_RT_IRQS - 1, &statistics);
    printf("timer %lu second stage %lu of %lu status %d\n", (unsigned long)values.pit_latency, (unsigned long)statistics.maxlat,
           (unsigned long)statistics.count, status);
    mrt_RTstop();
    return 0;
}
