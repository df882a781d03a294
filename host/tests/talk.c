/* A server that adds one, or a client that asks it, to be started in whatever world the test makes.
 *
 * usage: talk CONTAINER server | talk CONTAINER client NUMBER [last]. `last` ends the server.
 */
#include <m3ipc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVER = 1, LAST = 99 };

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

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    int is_server = strcmp(words[2], "server") == 0;
    int bound = mnx_bind(atoi(words[1]), is_server ? SERVER : atoi(words[3]));
    if (bound < 0) {
        printf("bind -> %d\n", bound);
        return 1;
    }
    return is_server ? serve() : ask(count > 4 ? LAST : 7);
}
