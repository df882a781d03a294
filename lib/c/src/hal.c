/* Ports by the HAL trap. */
#include <skink/hal.h>
#include <skink/ipc.h>

int64_t hal_call(uint64_t operation, port_t port, uint64_t value, uint64_t count)
{
    int64_t result;
    register uint64_t times __asm__("r10") = count;
    __asm__ volatile("int %1"
                     : "=a"(result)
                     : "i"(SKINK_CALL_HAL_VECTOR), "a"(operation), "d"((uint64_t)port), "D"(value), "r"(times)
                     : "memory");
    return result;
}

static int64_t in(port_t port, uint64_t width)
{
    return hal_call(SKINK_PRIVILEGE_IO_IN | width, port, 0, 0);
}

static int out(port_t port, uint64_t width, uint32_t value)
{
    return (int)hal_call(SKINK_PRIVILEGE_IO_OUT | width, port, value, 0);
}

static int string(port_t port, uint64_t operation, const void *buffer, size_t count)
{
    int64_t done = hal_call(SKINK_PRIVILEGE_IO_STRING | operation, port, (uintptr_t)buffer, count);
    return done < 0 ? (int)done : OK;
}

int hsys_inb(port_t port) { return (int)in(port, 1); }
int hsys_inw(port_t port) { return (int)in(port, 2); }
int64_t hsys_inl(port_t port) { return in(port, 4); }

int hsys_outb(port_t port, uint8_t value) { return out(port, 1, value); }
int hsys_outw(port_t port, uint16_t value) { return out(port, 2, value); }
int hsys_outl(port_t port, uint32_t value) { return out(port, 4, value); }

int hsys_insb(port_t port, void *to, size_t count) { return string(port, SKINK_PRIVILEGE_IO_IN | 1, to, count); }
int hsys_insw(port_t port, void *to, size_t count) { return string(port, SKINK_PRIVILEGE_IO_IN | 2, to, count); }
int hsys_insl(port_t port, void *to, size_t count) { return string(port, SKINK_PRIVILEGE_IO_IN | 4, to, count); }

int hsys_outsb(port_t port, const void *from, size_t count)
{
    return string(port, SKINK_PRIVILEGE_IO_OUT | 1, from, count);
}

int hsys_outsw(port_t port, const void *from, size_t count)
{
    return string(port, SKINK_PRIVILEGE_IO_OUT | 2, from, count);
}

int hsys_outsl(port_t port, const void *from, size_t count)
{
    return string(port, SKINK_PRIVILEGE_IO_OUT | 4, from, count);
}
