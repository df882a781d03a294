/* The kit for drivers of character devices. */
#include <skink/chardev.h>

static const struct chardev_driver *driver;

static int check(const struct client *client, uint64_t offset, size_t bytes)
{
    return offset <= client->bytes && bytes <= client->bytes - offset ? OK : -EINVAL;
}

int client_put(const struct client *client, uint64_t offset, const void *from, size_t bytes)
{
    int status = check(client, offset, bytes);
    return status == OK ? sys_safecopyto(client->granter, client->grant, offset, from, bytes) : status;
}

int client_fetch(const struct client *client, uint64_t offset, void *to, size_t bytes)
{
    int status = check(client, offset, bytes);
    return status == OK ? sys_safecopyfrom(client->granter, client->grant, offset, to, bytes) : status;
}

static int64_t move(message *m, int64_t (*handler)(const message *, uint64_t, const struct client *))
{
    /* Read and Write have the same fields. */
    const struct skink_chardev_read *request = REQUEST(m, chardev_read);
    struct client client = {m->source, (cp_grant_id_t)request->grant, request->bytes};
    return handler ? handler(m, request->minor, &client) : -EINVAL;
}

/* Returns the memory at an ioctl's argument. The copy fails beyond what the grant covers. */
static int64_t control(message *m)
{
    const struct skink_chardev_control *request = REQUEST(m, chardev_control);
    struct client client = {m->source, (cp_grant_id_t)request->grant, UINT64_MAX};
    return driver->control ? driver->control(m, request->request, &client) : -ENOTTY;
}

static int64_t carry_out(message *m)
{
    switch (m->label) {
    case SKINK_CHARDEV_OPEN:
        return driver->open ? driver->open(REQUEST(m, chardev_open)->minor) : OK;
    case SKINK_CHARDEV_CLOSE:
        if (driver->close)
            driver->close(REQUEST(m, chardev_close)->minor);
        return OK;
    case SKINK_CHARDEV_READ:
        return move(m, driver->read);
    case SKINK_CHARDEV_WRITE:
        return move(m, driver->write);
    case SKINK_CHARDEV_CONTROL:
        return control(m);
    case SKINK_CHARDEV_POLL:
        return (int64_t)REQUEST(m, chardev_poll)->events;
    case SKINK_CHARDEV_CANCEL:
        if (driver->cancel)
            driver->cancel(m->source, REQUEST(m, chardev_cancel)->tag);
        /* The reply is made of the request that was kept. */
        return CHARDEV_LATER;
    default:
        return -ENOSYS;
    }
}

static bool request(message *m)
{
    int64_t result = carry_out(m);
    if (result == CHARDEV_LATER)
        return false;
    service_reply(m, result);
    return true;
}

_Noreturn void chardev_run(const struct chardev_driver *own)
{
    driver = own;
    const struct service service = {.request = request, .interrupt = own->interrupt, .alarm = own->alarm};
    service_run(&service);
}
