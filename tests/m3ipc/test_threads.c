/* Threads that are not bound themselves share their process's endpoint, one call at a time. */
#include "m3test.h"

static void *thread(void *argument)
{
    message m = text_message(1, 5);
    (void)argument;
    SHOW(mnx_sendrec(2, &m));
    printf("number %d\n", m.m1_i1);
    return NULL;
}

static void child(void)
{
    message m;
    for (int i = 0; i < 2; i++) {
        mnx_receive(ANY, &m);
        m.m1_i1 += m.m_source;
        mnx_send(m.m_source, &m);
    }
}

int main(void)
{
    pthread_t other;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    for (int i = 0; i < 2; i++) {
        pthread_create(&other, NULL, thread, NULL);
        pthread_join(other, NULL);
    }
    reap(pid);
    return 0;
}
