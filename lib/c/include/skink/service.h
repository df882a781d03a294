/* A service in C: it is born, says that it is ready, and serves messages until it is ended.
 *
 * Instead of a C library's, the library's own start-up code calls `main`. There is no heap but what service_birth() names, no floating point. */
#ifndef SKINK_SERVICE_H
#define SKINK_SERVICE_H

#include <skink.h>
#include <stdbool.h>

/* What a service is told when it starts. */
struct service_birth {
    /* One of SKINK_LAYOUT_BIRTH_*. */
    uint64_t birth;
    /* `arguments` of the system file; not ended by a zero. */
    const char *arguments;
    size_t argument_bytes;
    /* Memory for whatever the service likes: `heap_bytes` of the system file. */
    void *heap;
    size_t heap_bytes;
    /* Itself. */
    endpoint_t endpoint;
};

const struct service_birth *service_birth(void);

/* The service's own part: what it returns is its exit status. */
int main(void);

/* The value of `key=value` among the arguments, which are separated by blanks, and its length; null when there is none. */
const char *service_argument(const char *key, size_t *bytes);
/* Whether that value is this text. */
bool service_argument_is(const char *key, const char *value);

/* One line "NAME: text" to the kernel's console and log. %s, %d, %u, %x (an int each, or a string) and %%. */
void service_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Initialisation has failed with this negative error: tells rs, which does not start the service again, and ends. */
_Noreturn void service_not_ready(int error);

_Noreturn void service_exit(int status);

/* What a service does with messages. Null where it does nothing. */
struct service {
    /* A request, which it turns into the reply with service_reply. False: it is answered later, by service_answer, or never. */
    bool (*request)(message *m);
    /* Interrupts: one bit for each hook. */
    void (*interrupt)(uint64_t hooks);
    /* The alarm of sys_setalarm. */
    void (*alarm)(uint64_t now_ns);
    /* Another service has called notify. */
    void (*notified)(endpoint_t from);
};

/* Tells rs that initialisation is done, answers its heartbeats, and hands every message to its handler, for ever. */
_Noreturn void service_run(const struct service *service);

/* Turns a request into its reply with this result. */
void service_reply(message *m, int64_t result);

/* Answers a request that was kept. */
void service_answer(const message *request, int64_t result);

#endif
