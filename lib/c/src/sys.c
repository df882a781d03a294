/* Kernel calls, as messages to the SYSTEM task or by trap. */
#include <skink/ipc.h>
#include <skink/sys.h>

int64_t kernel_call(unsigned call, const uint64_t arguments[6], uint64_t further[2])
{
    uint64_t w0 = arguments[0], w1 = arguments[1], w2 = arguments[2];
    int64_t result = (int64_t)(SKINK_CALL_KERNEL_CALLS + call);
    register uint64_t w3 __asm__("r10") = arguments[3];
    register uint64_t w4 __asm__("r8") = arguments[4];
    register uint64_t w5 __asm__("r9") = arguments[5];
    __asm__ volatile("syscall"
                     : "+a"(result), "+D"(w0), "+S"(w1), "+d"(w2), "+r"(w3), "+r"(w4), "+r"(w5)
                     :
                     : "rcx", "r11", "memory");
    if (further) {
        further[0] = w0;
        further[1] = w1;
    }
    return result;
}

int64_t system_call(unsigned call, const uint64_t arguments[6], uint64_t further[2])
{
    message m = {.label = SKINK_CALL_SYSTEM_LABELS | call};
    for (int i = 0; i < 6; i++)
        m.words[i] = arguments[i];
    int status = skink_sendrec(SKINK_ENDPOINT_SYSTEM, &m);
    if (status != OK)
        return status;
    if (further) {
        further[0] = m.words[1];
        further[1] = m.words[2];
    }
    return (int64_t)m.words[0];
}

#define CALL(call, ...) system_call(SKINK_SYS_##call, (const uint64_t[6]){__VA_ARGS__}, NULL)

static uint64_t address_of(const void *pointer)
{
    return (uintptr_t)pointer;
}

/* Maps the result of a call that returns a number of bytes, all of them or none. */
static int done(int64_t result)
{
    return result < 0 ? (int)result : OK;
}

int sys_devio(uint64_t request, port_t port, uint32_t *value)
{
    if (!value)
        return -EFAULT;
    int64_t result = CALL(DEVIO, port, request, *value);
    if (result < 0)
        return (int)result;
    if (!(request & DIO_OUTPUT))
        *value = (uint32_t)result;
    return OK;
}

int sys_inb(port_t port, uint8_t *value)
{
    uint32_t read = 0;
    int status = value ? sys_devio(DIO_INPUT | DIO_BYTE, port, &read) : -EFAULT;
    if (status == OK)
        *value = (uint8_t)read;
    return status;
}

int sys_inw(port_t port, uint16_t *value)
{
    uint32_t read = 0;
    int status = value ? sys_devio(DIO_INPUT | DIO_WORD, port, &read) : -EFAULT;
    if (status == OK)
        *value = (uint16_t)read;
    return status;
}

int sys_inl(port_t port, uint32_t *value)
{
    return sys_devio(DIO_INPUT | DIO_LONG, port, value);
}

static int out(uint64_t width, port_t port, uint32_t value)
{
    return done(CALL(DEVIO, port, DIO_OUTPUT | width, value));
}

int sys_outb(port_t port, uint8_t value) { return out(DIO_BYTE, port, value); }
int sys_outw(port_t port, uint16_t value) { return out(DIO_WORD, port, value); }
int sys_outl(port_t port, uint32_t value) { return out(DIO_LONG, port, value); }

static int string(uint64_t request, port_t port, const void *buffer, size_t count)
{
    return done(CALL(SDEVIO, port, request, address_of(buffer), count));
}

int sys_sdevio(uint64_t request, port_t port, void *buffer, size_t count)
{
    return string(request, port, buffer, count);
}

int sys_insb(port_t port, void *to, size_t count) { return string(DIO_INPUT | DIO_BYTE, port, to, count); }
int sys_insw(port_t port, void *to, size_t count) { return string(DIO_INPUT | DIO_WORD, port, to, count); }

int sys_outsb(port_t port, const void *from, size_t count)
{
    return string(DIO_OUTPUT | DIO_BYTE, port, from, count);
}

int sys_outsw(port_t port, const void *from, size_t count)
{
    return string(DIO_OUTPUT | DIO_WORD, port, from, count);
}

int sys_vdevio(struct skink_port_request *requests, size_t count)
{
    return (int)CALL(VDEVIO, address_of(requests), count);
}

int sys_umap(const void *address, uint64_t *physical)
{
    if (!physical)
        return -EFAULT;
    int64_t result = CALL(UMAP, address_of(address));
    if (result < 0)
        return (int)result;
    *physical = (uint64_t)result;
    return OK;
}

int sys_vircopy(endpoint_t from, uint64_t from_address, endpoint_t to, uint64_t to_address, size_t bytes)
{
    return done(CALL(VIRCOPY, from, from_address, to, to_address, bytes));
}

int sys_physcopy(endpoint_t from, uint64_t from_address, endpoint_t to, uint64_t to_address, size_t bytes)
{
    return done(CALL(PHYSCOPY, from, from_address, to, to_address, bytes));
}

int sys_virvcopy(const struct skink_copy_request *requests, size_t count)
{
    return (int)CALL(VIRVCOPY, address_of(requests), count);
}

int sys_physvcopy(const struct skink_copy_request *requests, size_t count)
{
    return (int)CALL(PHYSVCOPY, address_of(requests), count);
}

int sys_safecopyfrom(endpoint_t granter, cp_grant_id_t grant, uint64_t offset, void *to, size_t bytes)
{
    return done(CALL(SAFECOPYFROM, granter, grant, offset, address_of(to), bytes));
}

int sys_safecopyto(endpoint_t granter, cp_grant_id_t grant, uint64_t offset, const void *from, size_t bytes)
{
    return done(CALL(SAFECOPYTO, granter, grant, offset, address_of(from), bytes));
}

int sys_irqsetpolicy(int irq, int policy, const int *hook)
{
    return hook ? done(CALL(IRQSET, (uint64_t)irq, (uint64_t)*hook, (uint64_t)policy)) : -EFAULT;
}

int sys_irqenable(const int *hook) { return hook ? done(CALL(IRQENABLE, (uint64_t)*hook)) : -EFAULT; }
int sys_irqdisable(const int *hook) { return hook ? done(CALL(IRQDISABLE, (uint64_t)*hook)) : -EFAULT; }
int sys_irqrmpolicy(const int *hook) { return hook ? done(CALL(IRQREMOVE, (uint64_t)*hook)) : -EFAULT; }

int sys_setalarm(uint64_t deadline_ns)
{
    return done(CALL(SETALARM, deadline_ns));
}

int sys_privctl(endpoint_t service, const struct skink_privileges *privileges)
{
    return done(CALL(PRIVCTL, service, address_of(privileges)));
}

int sys_get_tsc(int function, unsigned long *high32, unsigned long *low32)
{
    if (function != GETTSC)
        return -EINVAL;
    if (!high32 || !low32)
        return -EFAULT;
    uint64_t halves[2];
    int64_t result = system_call(SKINK_SYS_GETTSC, (const uint64_t[6]){0}, halves);
    if (result < 0)
        return (int)result;
    *high32 = halves[0];
    *low32 = halves[1];
    return OK;
}
