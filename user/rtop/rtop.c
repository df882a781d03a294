/* Shows the real-time processes, once a second; `rtop -1`: once. Base and effective priority differ while a process inherits. Period and deadline are in ticks of the
 * real-time clock, latency (from the begin of a period until the process ran) and laxity (what was left at the end of its work) in µs. */
#include <ctype.h>
#include <dirent.h>
#include <skink/mrt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char CLEAR[] = "\033[H\033[J";

static void name_of(long pid, char *name, int size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    char text[256] = "";
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
    }
    char *begin = strchr(text, '('), *end = strrchr(text, ')');
    snprintf(name, size, "%.*s", begin && end ? (int)(end - begin - 1) : 1, begin && end ? begin + 1 : "?");
}

/* One that has ended meanwhile, or is not real-time, has no line. */
static void show_process(long pid)
{
    mrt_pattr_t attributes = {0};
    mrt_pstat_t statistics = {0};
    mrt_pint_t internals = {0};
    char name[17];
    if (mrt_getpattr(pid, &attributes) != 0 || !(attributes.flags & P_REALTIME))
        return;
    if (mrt_getpstat(pid, &statistics) != 0 || mrt_getpint(pid, &internals) != 0)
        return;
    name_of(pid, name, sizeof name);
    uint64_t period = attributes.flags & P_PERIODIC ? attributes.period : 0;
    uint64_t deadline = attributes.deadline ? attributes.deadline : period;
    printf("%6ld %-16s %4llu %4llu %8llu %8llu %6llu %10llu %10llu ", pid, name, (unsigned long long)attributes.baseprty,
           (unsigned long long)internals.priority, (unsigned long long)period, (unsigned long long)deadline,
           (unsigned long long)statistics.mdl, (unsigned long long)statistics.scheds, (unsigned long long)statistics.maxlat / 1000);
    if (statistics.minlax == INT64_MAX)
        printf("%10s\n", "-");
    else
        printf("%10lld\n", (long long)statistics.minlax / 1000);
}

static int show(void)
{
    mrt_sval_t values = {0};
    int result = mrt_getsval(&values);
    if (result != 0) {
        fprintf(stderr, "rtop: the real-time system does not answer: error %d\n", result);
        return 1;
    }
    printf("clock %llu Hz%s\n", (unsigned long long)values.tickrate, values.flags & MRT_RTMODE ? "" : ", standard mode: it does not run");
    printf("%6s %-16s %4s %4s %8s %8s %6s %10s %10s %10s\n", "PID", "NAME", "BASE", "EFF", "PERIOD", "DEADLINE", "MISSED", "SCHEDS",
           "LATENCY", "LAXITY");
    DIR *processes = opendir("/proc");
    if (!processes) {
        perror("rtop: /proc");
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;)
        if (isdigit((unsigned char)entry->d_name[0]))
            show_process(atol(entry->d_name));
    closedir(processes);
    return fflush(stdout) != 0;
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "-1") == 0)
        return show();
    if (count != 1) {
        fprintf(stderr, "usage: rtop [-1]\n");
        return 2;
    }
    for (;;) {
        fputs(CLEAR, stdout);
        if (show())
            return 1;
        sleep(1);
    }
}
