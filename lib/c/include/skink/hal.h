/* Ports by the HAL: one trap of its own (`int 0x22`), checked and done in place; no message, no other process.
 *
 * Value and error share one result: an error is negative, and no value is, because the results are wider than the values.
 * Errors: -ECALLDENIED (the port is not the caller's, or it may make no port access at all), -EBADCALL (no such operation),
 * -EFAULT (a string's memory is not the caller's). */
#ifndef SKINK_HAL_H
#define SKINK_HAL_H

#include <skink/abi.h>

typedef uint16_t port_t;

/* → 0 to 0xff, 0xffff and 0xffffffff, or a negative error. */
int hsys_inb(port_t port);
int hsys_inw(port_t port);
int64_t hsys_inl(port_t port);

/* → OK or a negative error. */
int hsys_outb(port_t port, uint8_t value);
int hsys_outw(port_t port, uint16_t value);
int hsys_outl(port_t port, uint32_t value);

/* `count` accesses of one port, into or from a buffer of as many bytes, words or double words. → OK or a negative error. */
int hsys_insb(port_t port, void *to, size_t count);
int hsys_insw(port_t port, void *to, size_t count);
int hsys_insl(port_t port, void *to, size_t count);
int hsys_outsb(port_t port, const void *from, size_t count);
int hsys_outsw(port_t port, const void *from, size_t count);
int hsys_outsl(port_t port, const void *from, size_t count);

/* The trap itself: an operation SKINK_PRIVILEGE_IO_IN or _OUT plus the width in bytes, with _STRING `value` is an address. */
int64_t hal_call(uint64_t operation, port_t port, uint64_t value, uint64_t count);

#endif
