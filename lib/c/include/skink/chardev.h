/* The kit for drivers of character devices: the protocol `chardev`, as functions. */
#ifndef SKINK_CHARDEV_H
#define SKINK_CHARDEV_H

#include <skink/service.h>

/* The client's buffer. */
struct client {
    endpoint_t granter;
    cp_grant_id_t grant;
    /* Length that the request covers, in bytes. */
    uint64_t bytes;
};

/* Copy into and out of the buffer. Return OK; -EINVAL: beyond the request's length; else as sys_safecopyto. */
int client_put(const struct client *client, uint64_t offset, const void *from, size_t bytes);
int client_fetch(const struct client *client, uint64_t offset, void *to, size_t bytes);

/* Returned by a handler that has kept a copy of the request, to reply with service_answer. Not the number of an error. */
#define CHARDEV_LATER INT64_MIN

/* Handlers of a driver. Results are values or negative errors; without a handler open, close and poll succeed, control is -ENOTTY, the others
 * -EINVAL. */
struct chardev_driver {
    int64_t (*open)(uint64_t minor);
    void (*close)(uint64_t minor);
    /* Return the bytes moved. `m` is the request, whose field `flags` may have SKINK_CHARDEV_NONBLOCK. */
    int64_t (*read)(const message *m, uint64_t minor, const struct client *client);
    int64_t (*write)(const message *m, uint64_t minor, const struct client *client);
    /* ioctl; the client's buffer is the memory at the ioctl's argument. */
    int64_t (*control)(const message *m, uint64_t request, const struct client *client);
    /* Cancels the request of this client with this tag, if it was kept: the driver replies to it at once. */
    void (*cancel)(endpoint_t requester, uint64_t tag);
    void (*interrupt)(uint64_t hooks);
    void (*alarm)(uint64_t now_ns);
};

/* Reports ready and serves forever. */
_Noreturn void chardev_run(const struct chardev_driver *driver);

#endif
