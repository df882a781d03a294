/* The IPC primitives, defined in abi.h.
 *
 * Each has two forms. Without a suffix the message is passed in registers (`syscall`); with the suffix 33 the kernel reads and writes it in memory
 * (`int 0x21`), as MINIX does it. They mix: a message sent by one form may be received by the other.
 *
 * All return OK or a negative error: -EDEADSRCDST (no such process), -ECALLDENIED (not among the caller's destinations),
 * -ELOCKED (deadlock), -EFAULT (33 only: the message is not in the caller's memory). */
#ifndef SKINK_IPC_H
#define SKINK_IPC_H

#include <skink/abi.h>

typedef struct skink_message message;

#define OK 0

/* Sends, and waits until the message is received. */
int skink_send(endpoint_t to, const message *m);
int send33(endpoint_t to, const message *m);

/* Waits for a message from `from`, or from any process with ANY. */
int skink_receive(endpoint_t from, message *m);
int receive33(endpoint_t from, message *m);

/* Sends a request and waits for the reply of the same process, which replaces the request in `m`. */
int skink_sendrec(endpoint_t to, message *m);
int sendrec33(endpoint_t to, message *m);

/* Notifies `to`: sets the caller's pending bit there. Never blocks. */
int skink_notify(endpoint_t to);
int notify33(endpoint_t to);

/* Sends if `to` is waiting for it, else -ENOTREADY: `to` notifies the caller when it is. */
int skink_sendnb(endpoint_t to, const message *m);
int sendnb33(endpoint_t to, const message *m);

/* Sends `m` to `to`, which loses it unless it is waiting for it, and atomically waits for the next message from `from`. */
int replyrec(endpoint_t to, message *m, endpoint_t from);

/* As replyrec, but waits until `to` has received. */
int sendwait(endpoint_t to, message *m, endpoint_t from);

/* The words of a request or a reply by their names: REQUEST(m, chardev_read)->bytes. */
#define REQUEST(m, name) ((struct skink_##name *)(void *)(m)->words)
#define REPLY(m, name) ((struct skink_##name##_reply *)(void *)((m)->words + 1))

/* MINIX's names. A program that uses sockets, whose send is another one, defines SKINK_LONG_NAMES and writes skink_send. */
#ifndef SKINK_LONG_NAMES
#define ANY SKINK_ENDPOINT_ANY
#define NONE SKINK_ENDPOINT_NONE
#define SELF SKINK_ENDPOINT_SELF
#define SYSTEM SKINK_ENDPOINT_SYSTEM
#define CLOCK SKINK_ENDPOINT_CLOCK
#define HARDWARE SKINK_ENDPOINT_HARDWARE

static inline int send(endpoint_t to, const message *m) { return skink_send(to, m); }
static inline int receive(endpoint_t from, message *m) { return skink_receive(from, m); }
static inline int sendrec(endpoint_t to, message *m) { return skink_sendrec(to, m); }
static inline int notify(endpoint_t to) { return skink_notify(to); }
static inline int sendnb(endpoint_t to, const message *m) { return skink_sendnb(to, m); }
#endif

#endif
