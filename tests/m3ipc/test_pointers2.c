/* Nothing is received where nothing may be written: the call fails with EMOLFAULT, the sender waits on, and no request is sent whose answer has no place. */
#include "pointers.h"

enum { MESSAGES = 40 };

static void child(void)
{
    message m;
    for (int i = 0; i < MESSAGES; i++) {
        m = text_message(7, i);
        mnx_send(1, &m);
    }
    printf("receive -> %s\n", result(mnx_receive(1, &m)));
    printf("asked: %d\n", m.m1_i1);
    m.m1_i1++;
    mnx_send(1, &m);
}

/* Receives into places of many pages, and across two. */
static int receive_all(void)
{
    char *pages = mmap(NULL, (MESSAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int wrong = 0;
    for (int i = 0; i < MESSAGES; i++) {
        message *m = (message *)(pages + i % 21 * PAGE + (i % 3 ? 64 * i : PAGE - 24));
        wrong += mnx_receive(i % 2 ? 2 : ANY, m) != 0 || m->m1_i1 != i || m->m_source != 2;
    }
    return wrong;
}

int main(void)
{
    message m = text_message(7, 0);
    make_pointers();
    message *in_code = (message *)main, *in_constants = (message *)read_only;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW_BAD(mnx_receive(2, p));
    SHOW_BAD(mnx_receive(ANY, p));
    SHOW_BAD(mnx_receive_T(2, p, 1000));
    SHOW_BAD(mnx_rcvrqst(p));
    SHOW_BAD(mnx_rcvrqst_T(p, 1000));
    SHOW_BAD(mnx_sendrec(2, p));
    SHOW_BAD(mnx_sendrec_T(2, p, 1000));
    SHOW(mnx_receive(2, in_constants));
    SHOW(mnx_receive(2, in_code));
    SHOW(mnx_sendrec(2, in_constants));
    SHOW(mnx_sendrec(2, in_code));
    SHOW(receive_all());
    SHOW_BAD(mnx_receive(2, p));
    SHOW_BAD(mnx_sendrec(2, p));
    SHOW(mnx_receive(2, in_constants));
    SHOW(mnx_sendrec_T(2, in_constants, 1000));
    m.m1_i1 = 41;
    SHOW(mnx_sendrec(2, &m));
    SHOW(m.m1_i1);
    reap(pid);
    return 0;
}
