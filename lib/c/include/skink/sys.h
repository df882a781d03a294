/* Kernel calls as requests to the SYSTEM task: the caller needs "system" among its destinations
 * and the call in its mask, else -ECALLDENIED. abi.h has arguments and errors of each call.
 *
 * All return OK or a negative error, unless a number is documented. A null pointer for a result is -EFAULT; another bad pointer faults.
 * The kernel checks memory that it reads or writes: -EFAULT. */
#ifndef SKINK_SYS_H
#define SKINK_SYS_H

#include <skink/abi.h>
#include <skink/hal.h>

/* Requests of sys_devio and sys_sdevio: a direction and a width. */
#define DIO_INPUT SKINK_PRIVILEGE_IO_IN
#define DIO_OUTPUT SKINK_PRIVILEGE_IO_OUT
#define DIO_BYTE 1ull
#define DIO_WORD 2ull
#define DIO_LONG 4ull

/* One port. `*value` is written, or what was read. -EINVAL: no such width or direction. */
int sys_devio(uint64_t request, port_t port, uint32_t *value);
int sys_inb(port_t port, uint8_t *value);
int sys_inw(port_t port, uint16_t *value);
int sys_inl(port_t port, uint32_t *value);
int sys_outb(port_t port, uint8_t value);
int sys_outw(port_t port, uint16_t value);
int sys_outl(port_t port, uint32_t value);

/* `count` accesses of one port, into or from the buffer. */
int sys_sdevio(uint64_t request, port_t port, void *buffer, size_t count);
int sys_insb(port_t port, void *to, size_t count);
int sys_insw(port_t port, void *to, size_t count);
int sys_outsb(port_t port, const void *from, size_t count);
int sys_outsw(port_t port, const void *from, size_t count);

/* A vector of accesses, in order until one fails. → how many were done; the error of the first when none was. */
int sys_vdevio(struct skink_port_request *requests, size_t count);

/* The physical address of the caller's own memory at `address`. */
int sys_umap(const void *address, uint64_t *physical);

/* Copies between two address spaces; SELF is the caller. */
int sys_vircopy(endpoint_t from, uint64_t from_address, endpoint_t to, uint64_t to_address, size_t bytes);
/* The same; where the endpoint is NONE the address is physical. */
int sys_physcopy(endpoint_t from, uint64_t from_address, endpoint_t to, uint64_t to_address, size_t bytes);
/* Vectors of them. → how many copies were done; the error of the first when none was. */
int sys_virvcopy(const struct skink_copy_request *requests, size_t count);
int sys_physvcopy(const struct skink_copy_request *requests, size_t count);

/* Copies from and into what another process has granted. -EPERM: not granted so. */
int sys_safecopyfrom(endpoint_t granter, cp_grant_id_t grant, uint64_t offset, void *to, size_t bytes);
int sys_safecopyto(endpoint_t granter, cp_grant_id_t grant, uint64_t offset, const void *from, size_t bytes);

/* Interrupts. `*hook` (0 to 63) is chosen by the caller: the bit in the notifications from HARDWARE. Policies: SKINK_KERNEL_IRQ_*. */
int sys_irqsetpolicy(int irq, int policy, const int *hook);
int sys_irqenable(const int *hook);
int sys_irqdisable(const int *hook);
int sys_irqrmpolicy(const int *hook);

/* One notification from CLOCK at this monotonic time; 0 cancels. */
int sys_setalarm(uint64_t deadline_ns);

/* Sets the privileges of a service. Only rs may: -ECALLDENIED. */
int sys_privctl(endpoint_t service, const struct skink_privileges *privileges);

/* The time-stamp counter in two halves of 32 bits. -EINVAL: the function is not GETTSC. */
#define GETTSC 0
int sys_get_tsc(int function, unsigned long *high32, unsigned long *low32);

/* A request to the SYSTEM task: kernel call `call` (SKINK_SYS_*) with its arguments. → its result or a negative error. `further`, unless it is null, gets
 * what the call leaves besides. */
int64_t system_call(unsigned call, const uint64_t arguments[6], uint64_t further[2]);

/* The same call as a direct trap; for calls that need no permission, too, and for callers without a way to SYSTEM. */
int64_t kernel_call(unsigned call, const uint64_t arguments[6], uint64_t further[2]);

#endif
