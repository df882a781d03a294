/* Ports by the bare instruction, as if the driver had the privilege.
 *
 * On the way `emulate` each faults, and the kernel checks and does it; on the way `direct` the CPU does it if the port is granted. There is no
 * place for an error: an access that is denied is an exception of the driver, which is killed and restarted by its policy. */
#ifndef SKINK_IO386_H
#define SKINK_IO386_H

#include <skink/abi.h>
#include <skink/hal.h>

/* The value read, zero-extended. */
unsigned i386inb(port_t port);
unsigned i386inw(port_t port);
unsigned i386inl(port_t port);

void i386outb(port_t port, uint8_t value);
void i386outw(port_t port, uint16_t value);
void i386outl(port_t port, uint32_t value);

/* REP INS and REP OUTS: `count` bytes, words or double words. */
void i386insb(port_t port, void *to, size_t count);
void i386insw(port_t port, void *to, size_t count);
void i386insl(port_t port, void *to, size_t count);
void i386outsb(port_t port, const void *from, size_t count);
void i386outsw(port_t port, const void *from, size_t count);
void i386outsl(port_t port, const void *from, size_t count);

#endif
