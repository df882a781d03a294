/* Buffers of the library: what is allocated, how much, and what is freed. */
#include "m3test.h"

static void nothing(void)
{
}

/* How a child ends that looks at its parent's buffer. */
static int look(volatile char *buffer)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        exit(*buffer != 0);
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

int main(void)
{
    void *buffer, *all[MAXBUFFERS + 1];
    int count = 0, wrong = 0;
    begin();
    SHOW(mnx_alloc(&buffer, 100));
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_alloc(NULL, 100));
    SHOW(mnx_alloc(&buffer, 0));
    SHOW(mnx_alloc(&buffer, -1));
    SHOW(mnx_alloc(&buffer, MAXCOPYLEN + 1));
    SHOW(mnx_alloc(&buffer, 0x7fffffffffffffff));
    while (mnx_alloc(&all[count], count == 3 ? MAXCOPYLEN : 100 + count * 5000) == 0)
        count++;
    printf("%d buffers\n", count);
    SHOW(mnx_alloc(&buffer, 1));
    for (int i = 0; i < count; i++) {
        int bytes = i == 3 ? MAXCOPYLEN : 100 + i * 5000;
        wrong += (unsigned long)all[i] % 4096 != 0;
        for (int at = 0; at < bytes; at++)
            wrong += ((char *)all[i])[at] != 0;
        memset(all[i], i + 1, bytes);
    }
    for (int i = 0; i < count; i++)
        wrong += *(char *)all[i] != i + 1;
    printf("%d wrong\n", wrong);
    printf("a child that looks at it: signal %d\n", look(all[0]));
    SHOW(mnx_free((char *)all[3] + 4096));
    SHOW(mnx_free(&count));
    SHOW(mnx_free(NULL));
    SHOW(mnx_free(all[3]));
    SHOW(mnx_free(all[3]));
    printf("what was freed: signal %d\n", look(all[3]));
    SHOW(mnx_alloc(&all[3], 4096));
    SHOW(*(char *)all[3]);

    /* A process that is unbound keeps its memory; where it is bound anew it may free it. */
    pid_t pid = spawn(2, nothing);
    reap(pid);
    SHOW(mnx_unbind(0, SELF));
    SHOW(*(char *)all[5]);
    SHOW(mnx_free(all[5]));
    SHOW(mnx_alloc(&all[5], 100));
    SHOW(mnx_bind(0, 3));
    SHOW(*(char *)all[6]);
    SHOW(mnx_free(all[6]));
    SHOW(mnx_alloc(&all[5], 100));
    return 0;
}
