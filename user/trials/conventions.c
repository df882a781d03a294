/* Calls that keep a choice or tell a fact: priorities of input and output, barriers, the state of the clock, prctl. It prints the same on
   Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void show(const char *what, long result)
{
	if (result == -1)
		printf("%s: %s\n", what, strerrorname_np(errno));
	else
		printf("%s: %#lx\n", what, result);
}

#define SHOW(...) show(#__VA_ARGS__, __VA_ARGS__)

static long io_get(int which, int who)
{
	return syscall(SYS_ioprio_get, which, who);
}

static long io_set(int which, int who, int priority)
{
	return syscall(SYS_ioprio_set, which, who, priority);
}

static long barrier(int command, int flags)
{
	return syscall(SYS_membarrier, command, flags, 0);
}

int main(void)
{
	struct timex timex;
	struct sysinfo info;
	int *address = NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	SHOW(io_set(1, 0, 2 << 13 | 5));
	SHOW(io_get(1, 0));
	SHOW(io_get(1, getpid()));
	if (!fork()) {
		printf("a child has %#lx\n", io_get(1, 0));
		exit(0);
	}
	wait(NULL);
	SHOW(io_set(1, 0, 3 << 13));
	SHOW(io_get(1, 0));
	SHOW(io_set(1, 0, 3));
	SHOW(io_set(1, 0, 4 << 13));
	SHOW(io_get(0, 0));
	SHOW(io_get(4, 0));
	SHOW(io_get(1, 99999999));
	SHOW(barrier(0, 0) & 127);
	SHOW(barrier(0, 1));
	SHOW(barrier(3, 0));
	SHOW(barrier(8, 0));
	SHOW(barrier(16, 0));
	SHOW(barrier(8, 0));
	SHOW(barrier(1, 0));
	SHOW(barrier(2, 0));
	memset(&timex, 0, sizeof timex);
	SHOW(adjtimex(&timex));
	printf("tick %ld precision %ld tolerance %ld\n", timex.tick, timex.precision, timex.tolerance);
	SHOW(syscall(SYS_adjtimex, 8));
	SHOW(clock_adjtime(CLOCK_MONOTONIC, &timex));
	SHOW(clock_adjtime(99, &timex));
	timex.modes = ADJ_TICK;
	timex.tick = 1;
	SHOW(adjtimex(&timex));
	timex.modes = 0x8000;
	SHOW(adjtimex(&timex));
	SHOW(prctl(PR_CAPBSET_READ, 40));
	SHOW(prctl(PR_CAPBSET_READ, 41));
	SHOW(prctl(PR_GET_SECUREBITS));
	SHOW(prctl(PR_GET_TIMING));
	SHOW(prctl(PR_SET_TIMING, 0));
	SHOW(prctl(PR_SET_TIMING, 1));
	SHOW(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
	SHOW(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	SHOW(prctl(PR_GET_THP_DISABLE, 1, 0, 0, 0));
	SHOW(prctl(PR_GET_TID_ADDRESS, &address));
	printf("it is %d\n", *address == getpid());
	SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 1, 0, 0));
	SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 1, 0, 0));
	SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, 1, 0, 0));
	SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
	SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0, 0));
	SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 41, 0, 0));
	SHOW(prctl(PR_CAP_AMBIENT, 9, 1, 0, 0));
	SHOW(sysinfo(&info));
	return 0;
}
