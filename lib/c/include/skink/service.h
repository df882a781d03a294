/* A service in C: it starts, reports ready, and serves messages until it is killed.
 *
 * The start-up code of this library calls `main`. There is no C library, no heap but the memory that service_start() returns, and no
 * floating point. */
#ifndef SKINK_SERVICE_H
#define SKINK_SERVICE_H

#include <skink.h>
#include <stdbool.h>

/* Arguments of a service at its start. */
struct service_start {
    /* One of SKINK_LAYOUT_START_KIND_*. */
    uint64_t kind;
    /* `arguments` of the system file; not ended by a zero. */
    const char *arguments;
    size_t argument_bytes;
    /* Memory for any use: `heap_bytes` of the system file. */
    void *heap;
    size_t heap_bytes;
    /* Endpoint of the service itself. */
    endpoint_t endpoint;
};

const struct service_start *service_start(void);

/* Main function of the service; returns the exit status. */
int main(void);

/* Returns the value of `key=value` among the arguments, which are separated by blanks, and its length; null if there is none. */
const char *service_argument(const char *key, size_t *bytes);
/* Returns whether that value is this text. */
bool service_argument_is(const char *key, const char *value);

/* Writes a line "NAME: text" to the kernel's console and log. %s, %d, %u, %x (an int each, or a string) and %%. */
void service_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports to rs that initialisation has failed with this negative error, and exits. rs does not restart the service. */
_Noreturn void service_not_ready(int error);

_Noreturn void service_exit(int status);

/* Handlers of messages; null for those that are ignored. */
struct service {
    /* Handles a request and turns it into the reply by service_reply. False: service_answer replies later, or no reply is sent. */
    bool (*request)(message *m);
    /* Handles interrupts: one bit for each hook. */
    void (*interrupt)(uint64_t hooks);
    /* Handles the alarm of sys_setalarm. */
    void (*alarm)(uint64_t now_ns);
    /* Handles a notification of another service. */
    void (*notified)(endpoint_t from);
};

/* Reports ready to rs, answers its heartbeats, and dispatches messages to the handlers, forever. */
_Noreturn void service_run(const struct service *service);

/* Turns a request into its reply with this result. */
void service_reply(message *m, int64_t result);

/* Replies to a request that was kept. */
void service_answer(const message *request, int64_t result);

#endif
