/* vcopy refuses parties that do not wait or are one, lengths beyond the limit, and memory that is not mapped. */
#include "m3test.h"

static char buffer[8192];

static void child(void)
{
    message m = text_message(1, 0);
    m.m1_p1 = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(m.m1_p1 + 4096, 4096, PROT_NONE);
    mprotect(m.m1_p1, 4096, PROT_READ);
    mnx_sendrec(1, &m);
    kill(getpid(), SIGSTOP);
}

int main(void)
{
    message m;
    int status;
    SHOW(mnx_vcopy(SELF, buffer, 2, buffer, 1));
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW(mnx_receive(2, &m));
    SHOW(mnx_vcopy(SELF, buffer, 2, m.m1_p1, -1));
    SHOW(mnx_vcopy(SELF, buffer, 2, m.m1_p1, MAXCOPYLEN + 1));
    SHOW(mnx_vcopy(SELF, buffer, 2, m.m1_p1, 10));
    SHOW(mnx_vcopy(2, m.m1_p1, SELF, buffer, 10));
    SHOW(mnx_vcopy(2, m.m1_p1 + 4090, SELF, buffer, 10));
    SHOW(mnx_vcopy(2, NULL, SELF, buffer, 10));
    SHOW(mnx_vcopy(2, m.m1_p1, SELF, NULL, 10));
    SHOW(mnx_vcopy(2, (void *)0xffff800000000000, SELF, buffer, 10));
    SHOW(mnx_vcopy(SELF, buffer, 1, buffer + 100, 10));
    SHOW(mnx_vcopy(2, m.m1_p1, 2, m.m1_p1, 10));
    SHOW(mnx_vcopy(3, buffer, SELF, buffer, 10));
    SHOW(mnx_vcopy(ANY, buffer, SELF, buffer, 10));
    SHOW(mnx_reply(2, &m));
    waitpid(pid, &status, WUNTRACED);
    SHOW(mnx_vcopy(2, m.m1_p1, SELF, buffer, 10));
    kill(pid, SIGKILL);
    reap(pid);
    return 0;
}
