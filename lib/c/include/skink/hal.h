/* Ports by the HAL: one trap of its own (`int 0x22`), checked and executed in the kernel, without message or context switch.
 *
 * The result is a value or a negative error; values are never negative, because the result is wider.
 * Errors: -ECALLDENIED (not a port of the caller, or no right to port accesses), -EBADCALL (no such operation),
 * -EFAULT (the buffer is not in the caller's memory). */
#ifndef SKINK_HAL_H
#define SKINK_HAL_H

#include <skink/abi.h>

typedef uint16_t port_t;

/* Return 0 to 0xff, 0xffff and 0xffffffff, or a negative error. */
int hsys_inb(port_t port);
int hsys_inw(port_t port);
int64_t hsys_inl(port_t port);

/* Return OK or a negative error. */
int hsys_outb(port_t port, uint8_t value);
int hsys_outw(port_t port, uint16_t value);
int hsys_outl(port_t port, uint32_t value);

/* `count` accesses of one port, into or from a buffer of as many bytes, words or double words. Return OK or a negative error. */
int hsys_insb(port_t port, void *to, size_t count);
int hsys_insw(port_t port, void *to, size_t count);
int hsys_insl(port_t port, void *to, size_t count);
int hsys_outsb(port_t port, const void *from, size_t count);
int hsys_outsw(port_t port, const void *from, size_t count);
int hsys_outsl(port_t port, const void *from, size_t count);

/* The trap itself: an operation SKINK_PRIVILEGE_IO_IN or _OUT plus the width in bytes, with _STRING `value` is an address. */
int64_t hal_call(uint64_t operation, port_t port, uint64_t value, uint64_t count);

#endif
