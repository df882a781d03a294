/* Processes that fork and bind as many as they can: the container is full then, others are not harmed, and its end frees everything. */
#include "m3test.h"

enum { MOST = 150 };

static struct {
    int bound, refused, other;
} *count;

static void bomb(int vmid)
{
    for (int i = 0; i < MOST; i++)
        if (fork() == 0) {
            int got = mnx_bind(vmid, 64 + i);
            int *which = got > 0 ? &count->bound : got == EMOLRANGE ? &count->refused : &count->other;
            __atomic_fetch_add(which, 1, __ATOMIC_SEQ_CST);
            if (got > 0)
                pause();
            exit(0);
        }
}

static void echo(void)
{
    message m;
    while (mnx_receive(ANY, &m) == 0 && m.m_type == 1)
        mnx_send(m.m_source, &m);
}

int main(void)
{
    VM_usr_t small = {.vm_vmid = 1, .vm_name = "small", .vm_nr_procs = 64 + 100};
    message m = text_message(1, 0);
    int answers = 0;
    begin();
    count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    SHOW(mnx_vm_init(&small));
    SHOW(mnx_bind(0, 1));
    pid_t neighbour = spawn(2, echo);
    signal(SIGCHLD, SIG_IGN);
    bomb(1);
    while (count->bound + count->refused + count->other < MOST)
        answers += mnx_sendrec(2, &m) != 0;
    printf("bound %d, refused %d, others %d; neighbour failed %d times\n", count->bound, count->refused, count->other, answers);
    SHOW(mnx_vm_end(1));
    SHOW(mnx_vm_init(&small));
    VM_usr_t told;
    SHOW(mnx_getvminfo(1, &told));
    printf("bound again: %d\n", told.vm_bound);
    signal(SIGCHLD, SIG_DFL);
    m.m_type = 2;
    SHOW(mnx_send(2, &m));
    reap(neighbour);
    return 0;
}
