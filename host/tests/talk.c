/* A server that adds one, or a client that asks it, to be started in whatever world the test makes; and a container for processes of one user.
 *
 * usage: talk CONTAINER start UID [CAPABILITY] | talk CONTAINER server | talk CONTAINER client NUMBER [last | SECONDS]. `last` ends the server; for so many seconds it is asked again and again.
 */
#include <m3ipc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SERVER = 1, LAST = 99 };

static int start(int container, unsigned uid, unsigned long capabilities)
{
    VM_usr_t vm = {.vm_vmid = container, .vm_name = "talk", .vm_uids = {uid}, .vm_capabilities = capabilities};
    mnx_drvs_init(0, NULL);
    printf("vm_init -> %d\n", mnx_vm_init(&vm));
    return 0;
}

static int serve(void)
{
    message m;
    do {
        if (mnx_receive(ANY, &m) != 0)
            return 1;
        m.m_type += 1;
        mnx_send(m.m_source, &m);
    } while (m.m_type <= LAST);
    return 0;
}

static int ask(int type)
{
    message m = {.m_type = type};
    int got = mnx_sendrec(SERVER, &m);
    printf("sendrec -> %d, type %d\n", got, m.m_type);
    return got != 0;
}

static int ask_for(int seconds)
{
    time_t end = time(NULL) + seconds;
    long answers = 0, failed = 0;
    while (time(NULL) < end) {
        message m = {.m_type = 7};
        failed += mnx_sendrec(SERVER, &m) != 0 || m.m_type != 8;
        answers++;
    }
    printf("%s answers, %ld failed\n", answers > 1000 ? "many" : "few", failed);
    return failed != 0;
}

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    if (strcmp(words[2], "start") == 0)
        return start(atoi(words[1]), strtoul(words[3], NULL, 10), count > 4 ? 1ul << atoi(words[4]) : 0);
    int is_server = strcmp(words[2], "server") == 0;
    int bound = mnx_bind(atoi(words[1]), is_server ? SERVER : atoi(words[3]));
    if (bound < 0) {
        printf("bind -> %d\n", bound);
        return 1;
    }
    if (is_server)
        return serve();
    int seconds = count > 4 ? atoi(words[4]) : 0;
    return seconds > 0 ? ask_for(seconds) : ask(count > 4 ? LAST : 7);
}
