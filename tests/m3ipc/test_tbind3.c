/* When the leader is unbound, its threads are too. */
#include "m3test.h"

static pthread_barrier_t barrier;

static void *thread(void *argument)
{
    message m;
    (void)argument;
    SHOW(mnx_tbind(0, 11));
    pthread_barrier_wait(&barrier);
    SHOW(mnx_receive(ANY, &m));
    return NULL;
}

int main(void)
{
    pthread_t other;
    begin();
    SHOW(mnx_bind(0, 10));
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&other, NULL, thread, NULL);
    pthread_barrier_wait(&barrier);
    until(11, RTS_RECEIVING);
    int got = mnx_unbind(0, 10);
    pthread_join(other, NULL);
    printf("unbind -> %d\n", got);
    return 0;
}
