/* Start, arguments, receive loop and exit of a service. */
#include <skink/service.h>
#include <skink/memory.h>

static struct service_start start;

/* Called by `_start`. */
_Noreturn void service_begin(uint64_t kind, const char *arguments, size_t argument_bytes, void *heap, size_t heap_bytes, uint64_t self);

_Noreturn void service_begin(uint64_t kind, const char *arguments, size_t argument_bytes, void *heap, size_t heap_bytes, uint64_t self)
{
    start = (struct service_start){kind, arguments, argument_bytes, heap, heap_bytes, (endpoint_t)self};
    service_exit(main());
}

const struct service_start *service_start(void)
{
    return &start;
}

const char *service_argument(const char *key, size_t *bytes)
{
    const char *at = start.arguments, *end = at + start.argument_bytes;
    size_t key_bytes = strlen(key);
    while (at < end) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        const char *word_end = blank ? blank : end;
        if ((size_t)(word_end - at) > key_bytes && at[key_bytes] == '=' && memcmp(at, key, key_bytes) == 0) {
            *bytes = (size_t)(word_end - at) - key_bytes - 1;
            return at + key_bytes + 1;
        }
        at = word_end + 1;
    }
    return NULL;
}

bool service_argument_is(const char *key, const char *value)
{
    size_t bytes = 0;
    const char *found = service_argument(key, &bytes);
    return found && bytes == strlen(value) && memcmp(found, value, bytes) == 0;
}

_Noreturn void service_exit(int status)
{
    kernel_call(SKINK_SYS_EXIT, (const uint64_t[6]){(uint64_t)(int64_t)status}, NULL);
    __builtin_trap();
}

static void tell_rs(int64_t status)
{
    message m = {.label = SKINK_RS_READY};
    REQUEST(&m, rs_ready)->status = status;
    if (sendrec(SKINK_ENDPOINT_RS, &m) != OK)
        service_exit(1);
}

_Noreturn void service_not_ready(int error)
{
    tell_rs(error);
    service_exit(1);
}

void service_reply(message *m, int64_t result)
{
    m->label |= SKINK_MESSAGE_REPLY;
    m->words[0] = (uint64_t)result;
}

/* Returns whether a request is asynchronous: a service whose request has a tag receives the reply later. */
static bool is_asynchronous(const message *request)
{
    endpoint_t slot = request->source & 0xfff;
    return request->words[6] != 0 && slot >= SKINK_ENDPOINT_FIRST_SERVICE && slot < SKINK_ENDPOINT_SERVICE_SLOTS;
}

void service_answer(const message *request, int64_t result)
{
    message answer = *request;
    service_reply(&answer, result);
    /* A client that waits gets the reply at once; one that has died needs none. */
    if (is_asynchronous(request))
        send(request->source, &answer);
    else
        sendnb(request->source, &answer);
}

static void notification(const struct service *service, const message *m)
{
    const struct skink_kernel_notify *what = REQUEST((message *)m, kernel_notify);
    if (m->source == HARDWARE) {
        if (service->interrupt)
            service->interrupt(what->bits);
    } else if (m->source == CLOCK) {
        if (service->alarm)
            service->alarm(what->time_ns);
    } else {
        /* First, because a missed heartbeat counts as a hang. */
        if ((m->source & 0xfff) == SKINK_ENDPOINT_SLOT_RS)
            notify(SKINK_ENDPOINT_RS);
        if (service->notified)
            service->notified(m->source);
    }
}

/* Sends the reply in `m`. Returns whether the next message has replaced it. */
static bool hand_over(message *m)
{
    message request = *m;
    request.label &= ~SKINK_MESSAGE_REPLY;
    return (is_asynchronous(&request) ? sendwait(m->source, m, ANY) : replyrec(m->source, m, ANY)) == OK;
}

_Noreturn void service_run(const struct service *service)
{
    message m;
    tell_rs(OK);
    for (bool received = false;;) {
        if (!received && receive(ANY, &m) != OK)
            service_exit(1);
        received = false;
        if (m.label == SKINK_KERNEL_NOTIFY) {
            notification(service, &m);
        } else if (!service->request) {
            service_reply(&m, -ENOSYS);
            received = hand_over(&m);
        } else if (service->request(&m)) {
            received = hand_over(&m);
        }
    }
}
