/* All 64 bytes of a message arrive, in every layout. */
#include "m3test.h"

static void child(void)
{
    message m;
    for (int i = 0; i < 4; i++) {
        mnx_receive(ANY, &m);
        mnx_send(m.m_source, &m);
    }
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    memset(&m, 0x5a, sizeof m);
    SHOW(mnx_sendrec(2, &m));
    int good = 1;
    for (size_t i = sizeof m.m_source; i < sizeof m; i++)
        good &= ((char *)&m)[i] == 0x5a;
    printf("%zu bytes, %s\n", sizeof m, good ? "right" : "wrong");
    m.m3_i1 = -1;
    strcpy(m.m3_ca1, "thirteen char");
    SHOW(mnx_sendrec(2, &m));
    printf("%d %s\n", m.m3_i1, m.m3_ca1);
    m.m9_ull1 = ~0ull;
    m.m9_s4 = -9;
    SHOW(mnx_sendrec(2, &m));
    printf("%llx %d\n", m.m9_ull1, m.m9_s4);
    m.m5_c2 = 'x';
    m.m5_l3 = -5;
    SHOW(mnx_sendrec(2, &m));
    printf("%c %ld\n", m.m5_c2, m.m5_l3);
    reap(pid);
    return 0;
}
