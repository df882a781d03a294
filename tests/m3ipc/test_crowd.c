/* 256 processes in 32 containers, eight in each: all pass a token around in their own container, and nothing comes from another. */
#include "m3test.h"

enum { CONTAINERS = 32, EACH = 8, ROUNDS = 5 };

static int vmid, own;

static void member(void)
{
    message m = text_message(100 + vmid, 0);
    int next = (own + 1) % EACH, before = (own + EACH - 1) % EACH;
    for (int i = 0; i < ROUNDS; i++) {
        if (own == 0 && mnx_send(next, &m) != 0)
            exit(2);
        if (mnx_receive(ANY, &m) != 0 || m.m_source != before || m.m_type != 100 + vmid)
            exit(3);
        m.m1_i1++;
        if (own != 0 && mnx_send(next, &m) != 0)
            exit(4);
    }
    exit(m.m1_i1 == (own ? own + EACH * (ROUNDS - 1) : EACH * ROUNDS) ? 0 : 5);
}

int main(void)
{
    static pid_t pids[CONTAINERS][EACH];
    int good = 0, status;
    begin();
    for (vmid = 1; vmid < CONTAINERS; vmid++)
        if (container(vmid) != 0)
            puts("no container");
    for (vmid = 0; vmid < CONTAINERS; vmid++)
        for (own = 0; own < EACH; own++) {
            pids[vmid][own] = fork();
            if (pids[vmid][own] == 0) {
                mnx_wait4bind();
                for (int other = 0; other < EACH; other++)
                    mnx_wait4bindep(other);
                member();
            }
        }
    for (int vm = 0; vm < CONTAINERS; vm++)
        for (int nr = 0; nr < EACH; nr++)
            if (mnx_lclbind(vm, pids[vm][nr], nr) != nr)
                puts("not bound");
    for (int vm = 0; vm < CONTAINERS; vm++)
        for (int nr = 0; nr < EACH; nr++) {
            waitpid(pids[vm][nr], &status, 0);
            good += status == 0;
        }
    printf("%d of %d\n", good, CONTAINERS * EACH);
    return 0;
}
