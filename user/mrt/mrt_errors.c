/* The errors of MINIX4RT's calls, one by one (part A). */
#include "trial.h"

#include <sys/syscall.h>

static const mrt_semattr_t PLAIN = {.value = 1, .flags = SEM_PRTYORDER};
static void *const BAD = (void *)0x10;

static int allocate(long value, uint64_t flags, unsigned priority, const char *name)
{
    return semaphore(name, value, flags, priority);
}

static int attributes_with(mrt_pattr_t mine)
{
    return mrt_setpattr(&mine);
}

static void in_standard_mode(void)
{
    mrt_sval_t values;
    mrt_sstat_t statistics;
    EXPECT(mrt_getsval(&values), 0);
    EXPECT(values.flags & MRT_RTMODE, 0), EXPECT(values.tickrate, 50);
    EXPECT(mrt_getsstat(&statistics), E_MRT_NORTMODE);
    EXPECT(mrt_clrsstat(), E_MRT_NORTMODE);
    EXPECT(mrt_restart(20, 100), E_MRT_NORTMODE);
    EXPECT(mrt_RTstop(), E_MRT_NORTMODE);
    EXPECT(mrt_semalloc(&PLAIN), E_MRT_NORTMODE);
    EXPECT(attributes_with(attributes(5)), E_MRT_NORTMODE);
    EXPECT(mrt_set2rt(), E_MRT_BADPRTY);
    EXPECT(mrt_setsval(0x40000), E_MRT_BADFLAGS);
    EXPECT(mrt_setsval(MRT_BPIP), 0);
    EXPECT(mrt_RTstart(0, 100), E_MRT_BADHARM), EXPECT(mrt_RTstart(10001, 100), E_MRT_BADHARM);
    EXPECT(mrt_RTstart(20, 0), E_MRT_BADRFSH), EXPECT(mrt_RTstart(20, 10001), E_MRT_BADRFSH);
    EXPECT(mrt_system_call(SKINK_RT_CONTROL_END, 0, 0), -EBADCALL);
    pid_t pid = fork();
    if (pid == 0) {
        if (setuid(1000) == 0)
            EXPECT(mrt_getsval(&values), -EPERM), EXPECT(mrt_RTstart(20, 100), -EPERM);
        _exit(failures);
    }
    int status;
    waitpid(pid, &status, 0);
    EXPECT(status, 0);
}

static void of_the_system(void)
{
    EXPECT(mrt_RTstart(20, 100), 0);
    EXPECT(mrt_RTstart(20, 100), E_MRT_RTACTIVE);
    EXPECT(mrt_setsval(MRT_BPIP), E_MRT_RTMODE);
    EXPECT(mrt_getsval(BAD), -EINVAL), EXPECT(mrt_getsstat(BAD), -EINVAL);
    EXPECT(mrt_restart(10001, 100), E_MRT_BADHARM), EXPECT(mrt_restart(20, 10001), E_MRT_BADRFSH);
    EXPECT(mrt_restart(40, 100), 0);
    mrt_sval_t values;
    EXPECT(mrt_getsval(&values), 0);
    EXPECT(values.tickrate, 2000), EXPECT(values.harmonic, 40), EXPECT(values.refresh, 100), EXPECT(values.flags, MRT_RTMODE | MRT_BPIP);
    EXPECT(mrt_clrsstat(), 0);
}

static void of_processes(void)
{
    mrt_pattr_t mine = attributes(0), seen;
    EXPECT(attributes_with(mine), E_MRT_BADPRTY);
    mine.baseprty = 47;
    EXPECT(attributes_with(mine), E_MRT_BADPRTY);
    mine = attributes(5), mine.flags = 1;
    EXPECT(attributes_with(mine), E_MRT_BADFLAGS);
    mine = attributes(5), mine.flags = P_PERIODIC;
    EXPECT(attributes_with(mine), E_MRT_BADPER);
    mine.period = 10001;
    EXPECT(attributes_with(mine), E_MRT_BADPER);
    mine.period = 10, mine.deadline = 11;
    EXPECT(attributes_with(mine), E_MRT_BADDEAD);
    mine = attributes(5), mine.mq_size = 257;
    EXPECT(attributes_with(mine), E_MRT_BADMQSZ);
    mine = attributes(5), mine.mq_flags = MQ_PRTYINHERIT;
    EXPECT(attributes_with(mine), E_MRT_BADFLAGS);
    mine = attributes(5), mine.watchdog = 99999;
    EXPECT(attributes_with(mine), E_MRT_BADWDOG);
    mine.watchdog = getpid();
    EXPECT(attributes_with(mine), E_MRT_BADWDOG);
    EXPECT(mrt_setpattr(BAD), -EINVAL);
    EXPECT(mrt_getpattr(99999, &seen), E_BAD_PROC), EXPECT(mrt_getpstat(99999, BAD), E_BAD_PROC);
    EXPECT(mrt_clrpstat(99999), E_BAD_PROC), EXPECT(mrt_getpint(99999, BAD), E_BAD_PROC);
    EXPECT(mrt_set2rt(), E_MRT_BADPRTY);
    EXPECT(attributes_with(attributes(5)), 0);
    EXPECT(mrt_getpattr(getpid(), &seen), 0);
    EXPECT(seen.baseprty, 5), EXPECT(seen.watchdog, MRT_NOPROC), EXPECT(seen.flags, 0);
    EXPECT(mrt_getpattr(getpid(), BAD), -EINVAL);
    EXPECT(mrt_clrpstat(getpid()), 0);
}

static void of_semaphores(void)
{
    mrt_semattr_t attributes;
    mrt_semstat_t statistics;
    mrt_semint_t internals;
    EXPECT(allocate(2, SEM_MUTEX, 0, ""), E_MRT_BADVALUE), EXPECT(allocate(-1, 0, 0, ""), E_MRT_BADVALUE);
    EXPECT(allocate(1l << 40, 0, 0, ""), E_MRT_BADVALUE);
    EXPECT(allocate(1, SEM_PRTYINHERIT, 0, ""), E_MRT_BADFLAGS);
    EXPECT(allocate(1, SEM_PRTYINHERIT | SEM_MUTEX, 0, ""), E_MRT_BADFLAGS);
    EXPECT(allocate(1, SEM_PRTYINHERIT | SEM_PRTYORDER, 0, ""), E_MRT_BADFLAGS);
    EXPECT(allocate(1, SEM_PRTYCEILING, 5, ""), E_MRT_BADFLAGS);
    EXPECT(allocate(1, 0x100, 0, ""), E_MRT_BADFLAGS);
    EXPECT(allocate(1, SEM_MUTEX | SEM_PRTYCEILING, 0, ""), E_MRT_BADPRTY);
    EXPECT(allocate(1, SEM_MUTEX | SEM_PRTYCEILING, 47, ""), E_MRT_BADPRTY);
    EXPECT(mrt_semalloc(BAD), -EINVAL);
    int id = allocate(3, SEM_PRTYORDER, 0, "name");
    EXPECT(id >= 0, 1);
    EXPECT(allocate(1, 0, 0, "name"), E_MRT_BADNAME);
    EXPECT(mrt_getsemid("name"), id), EXPECT(mrt_getsemid("nobody"), E_MRT_BADSEM), EXPECT(mrt_getsemid(""), E_MRT_BADSEM);
    EXPECT(mrt_getsemattr(id, &attributes), 0);
    EXPECT(attributes.value, 3), EXPECT(strcmp((char *)attributes.name, "name"), 0);
    EXPECT(mrt_getsemattr(256, &attributes), E_MRT_BADSEM), EXPECT(mrt_getsemattr(-1, &attributes), E_MRT_BADSEM);
    EXPECT(mrt_getsemattr(255, &attributes), E_MRT_FREESEM), EXPECT(mrt_getsemattr(id, BAD), -EINVAL);
    EXPECT(mrt_getsemstat(256, &statistics), E_MRT_BADSEM), EXPECT(mrt_getsemstat(255, &statistics), E_MRT_FREESEM);
    EXPECT(mrt_clrsemstat(256), E_MRT_BADSEM), EXPECT(mrt_clrsemstat(255), E_MRT_FREESEM);
    EXPECT(mrt_getsemint(256, &internals), E_MRT_BADSEM), EXPECT(mrt_getsemint(255, &internals), 0);
    EXPECT(internals.owner, -1);
    EXPECT(mrt_semfree(256), E_MRT_BADSEM), EXPECT(mrt_semfree(255), E_MRT_FREESEM);
    pid_t pid = fork();
    if (pid == 0) {
        EXPECT(mrt_semfree(id), -EPERM);
        EXPECT(allocate(1, 0, 0, "of a child") >= 0, 1);
        _exit(failures);
    }
    int status;
    waitpid(pid, &status, 0);
    EXPECT(status, 0);
    EXPECT(mrt_getsemid("of a child"), E_MRT_BADSEM);
    int count = 0;
    while (allocate(1, 0, 0, "") >= 0)
        count++;
    EXPECT(count, SKINK_RT_SEMAPHORES - 1), EXPECT(allocate(1, 0, 0, "one more"), E_MRT_NOSEM);
    EXPECT(mrt_semfree(7), 0), EXPECT(allocate(1, 0, 0, ""), 7);
    for (int i = 0; i < SKINK_RT_SEMAPHORES; i++)
        EXPECT(mrt_semfree(i), 0);
}

static void of_interrupts(void)
{
    mrt_iattr_t wanted = {.task = MRT_NOPROC, .watchdog = MRT_NOPROC, .priority = 5, .irqtype = RTIRQ}, seen;
    mrt_istat_t statistics;
    mrt_iint_t internals;
    EXPECT(mrt_setiattr(-1, &wanted), E_MRT_BADIRQ), EXPECT(mrt_setiattr(96, &wanted), E_MRT_BADIRQ);
    EXPECT(mrt_setiattr(SKINK_RT_TICK_IRQ, &wanted), E_MRT_BADIRQ), EXPECT(mrt_setiattr(7, BAD), -EINVAL);
    EXPECT(mrt_setiattr(70, &wanted), E_MRT_BADIRQT);
    wanted.irqtype = SOFTIRQ | TDIRQ;
    EXPECT(mrt_setiattr(7, &wanted), E_MRT_BADIRQT), EXPECT(mrt_setiattr(70, &wanted), E_MRT_BADPER);
    wanted.irqtype = 0x80;
    EXPECT(mrt_setiattr(7, &wanted), E_MRT_BADIRQT);
    wanted.irqtype = TDIRQ, wanted.period = 10001;
    EXPECT(mrt_setiattr(7, &wanted), E_MRT_BADPER);
    wanted.period = 10, wanted.priority = 0;
    EXPECT(mrt_setiattr(7, &wanted), E_MRT_BADPRTY);
    wanted.priority = 47;
    EXPECT(mrt_setiattr(7, &wanted), E_MRT_BADPRTY);
    wanted.priority = 5, wanted.task = 99999;
    EXPECT(mrt_setiattr(7, &wanted), E_MRT_BADTASK);
    wanted.task = getpid();
    EXPECT(mrt_setiattr(7, &wanted), E_MRT_BADTASK);
    wanted.task = MRT_NOPROC, wanted.watchdog = 99999;
    EXPECT(mrt_setiattr(7, &wanted), E_MRT_BADWDOG);
    wanted.watchdog = MRT_NOPROC;
    memcpy(wanted.name, "a line", 7);
    EXPECT(mrt_setiattr(7, &wanted), 0);
    EXPECT(mrt_getiattr(7, &seen), 0);
    EXPECT(memcmp(&seen, &wanted, sizeof seen), 0);
    EXPECT(mrt_getiint(7, &internals), 0);
    EXPECT(internals.irq, 7), EXPECT(internals.vtimer, 1), EXPECT(internals.harmonic, 40);
    EXPECT(mrt_getistat(7, &statistics), 0);
    EXPECT(statistics.count, 0);
    EXPECT(mrt_getiattr(96, &seen), E_MRT_BADIRQ), EXPECT(mrt_getistat(96, &statistics), E_MRT_BADIRQ);
    EXPECT(mrt_clristat(96), E_MRT_BADIRQ), EXPECT(mrt_getiint(96, &internals), E_MRT_BADIRQ);
    EXPECT(mrt_clristat(7), 0);
    wanted.irqtype = NRTIRQ;
    EXPECT(mrt_setiattr(7, &wanted), 0);
}

static void of_queues(void)
{
    mrt_mqstat_t statistics;
    EXPECT(mrt_getmqstat(-1, &statistics), E_MRT_BADMSGQ), EXPECT(mrt_getmqstat(257, &statistics), E_MRT_BADMSGQ);
    EXPECT(mrt_getmqstat(200, &statistics), E_MRT_FREEMSGQ), EXPECT(mrt_clrmqstat(200), E_MRT_FREEMSGQ);
}

static void of_an_ordinary_process(void)
{
    mrt_msg_t message = {{0}};
    EXPECT(mrt_semdown(0, MRT_FOREVER), E_MRT_BADPTYPE), EXPECT(mrt_semup(0), E_MRT_BADPTYPE);
    EXPECT(mrt_set2nrt(), E_MRT_BADPTYPE), EXPECT(mrt_sleep(1), E_MRT_BADPTYPE), EXPECT(mrt_wakeup(1), E_MRT_BADPTYPE);
    EXPECT(mrt_print("not to be seen"), E_MRT_BADPTYPE);
    EXPECT(mrt_rqst(1, &message, MRT_FOREVER), E_MRT_BADPTYPE), EXPECT(mrt_arqst(1, &message), E_MRT_BADPTYPE);
    EXPECT(mrt_uprqst(1, &message, 5), E_MRT_BADPTYPE), EXPECT(mrt_sign(1, &message), E_MRT_BADPTYPE);
    EXPECT(mrt_reply(1, &message), E_MRT_BADPTYPE);
    EXPECT(mrt_rcv(MRT_ANYPROC, &message, NULL, MRT_FOREVER), E_MRT_BADPTYPE);
    EXPECT(mrt_rqrcv(1, &message, &message, NULL, MRT_FOREVER), E_MRT_BADPTYPE);
    EXPECT(mrt_kernel_call(SKINK_RT_CALL_RQRCV + 1, 0, 0), E_BAD_FCN);
}

/* The numbers go to the parent, which says what is wrong. */
static void of_a_real_time_process(void)
{
    static const char TEXT[80] = "";
    int at = 0;
    shared->numbers[at++] = mrt_set2rt();
    shared->numbers[at++] = mrt_semdown(99, MRT_FOREVER);
    shared->numbers[at++] = mrt_semdown(-1, MRT_FOREVER);
    shared->numbers[at++] = mrt_semup(99);
    shared->numbers[at++] = mrt_semup(70000);
    shared->numbers[at++] = mrt_kernel_call(SKINK_RT_CALL_RQRCV + 1, 0, 0);
    shared->numbers[at++] = mrt_print(BAD);
    shared->numbers[at++] = mrt_print(TEXT);
    shared->numbers[at++] = mrt_getsval(NULL);
    shared->numbers[at++] = mrt_wakeup(shared->pids[1]);
    shared->numbers[at++] = (long)syscall(SYS_getppid);
    shared->numbers[at++] = mrt_semup((int)shared->numbers[15]);
    message m = {.label = SKINK_RS_READY};
    shared->numbers[at++] = skink_send(SKINK_ENDPOINT_RS, &m);
    mrt_sleep(400);
}

int main(void)
{
    static const long WANTED[] = {E_MRT_BADPTYPE, E_MRT_BADSEM, E_MRT_BADSEM, E_MRT_BADSEM, E_MRT_BADSEM, E_BAD_FCN, -EINVAL, 0,
                                  E_MRT_RTMODE, E_MRT_BADPTYPE, -1, -EPERM, E_MRT_RTMODE};
    begin_trials();
    in_standard_mode();
    of_the_system();
    of_processes();
    of_semaphores();
    of_interrupts();
    of_queues();
    of_an_ordinary_process();
    shared->pids[1] = getpid();
    shared->numbers[15] = allocate(1, SEM_MUTEX | SEM_PRTYORDER, 0, "");
    start(0, 20, of_a_real_time_process);
    for (unsigned i = 0; i < sizeof WANTED / sizeof *WANTED; i++)
        if (shared->numbers[i] != WANTED[i])
            expect_number("call of a real-time process", shared->numbers[i] * 100 + i, WANTED[i] * 100 + i);
    EXPECT(mrt_RTstop(), E_MRT_RTACTIVE), EXPECT(mrt_restart(20, 100), E_MRT_RTACTIVE);
    end_of_scene();
    EXPECT(mrt_RTstop(), 0);
    return end_trials("errors");
}
