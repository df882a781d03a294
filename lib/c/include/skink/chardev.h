/* The kit for drivers of character devices: the protocol `chardev`, as functions. */
#ifndef SKINK_CHARDEV_H
#define SKINK_CHARDEV_H

#include <skink/service.h>

/* The buffer of whoever asks. */
struct client {
    endpoint_t granter;
    cp_grant_id_t grant;
    /* How much of it the request covers. */
    uint64_t bytes;
};

/* Copies into and out of it. → OK; -EINVAL: beyond what was asked for; else as sys_safecopyto. */
int client_put(const struct client *client, uint64_t offset, const void *from, size_t bytes);
int client_fetch(const struct client *client, uint64_t offset, void *to, size_t bytes);

/* What a handler gives when it has kept a copy of the request, to answer it with service_answer. No error has this number. */
#define CHARDEV_LATER INT64_MIN

/* A driver's own part. Results are values or negative errors; without a handler open, close and poll succeed, control is -ENOTTY, the others
 * -EINVAL. */
struct chardev_driver {
    int64_t (*open)(uint64_t minor);
    void (*close)(uint64_t minor);
    /* → bytes moved. `m` is the request, whose field `flags` may have SKINK_CHARDEV_NONBLOCK. */
    int64_t (*read)(const message *m, uint64_t minor, const struct client *client);
    int64_t (*write)(const message *m, uint64_t minor, const struct client *client);
    /* ioctl; the client's buffer is the memory at the ioctl's argument. */
    int64_t (*control)(const message *m, uint64_t request, const struct client *client);
    /* The request of this asker with this tag, if it was kept, is no longer wanted: it is to be answered now. */
    void (*cancel)(endpoint_t asker, uint64_t tag);
    void (*interrupt)(uint64_t hooks);
    void (*alarm)(uint64_t now_ns);
};

/* Reports ready and serves, for ever. */
_Noreturn void chardev_run(const struct chardev_driver *driver);

#endif
