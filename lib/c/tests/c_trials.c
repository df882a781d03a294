/* c_trials: a service that calls every function of the library, with and without the right to it, and logs the results.
 * Its privileges are in systems/c_trials.toml: the ports of the parallel port, a virtual clock, IRQ 7, and copies of its own memory. */
#include <skink/memory.h>
#include <skink/service.h>

/* The parallel port's data register, which can be read back; beyond the last port; the keyboard's, to which this service has no right. */
enum { DATA = 0x378, LAST = 0x37f, FOREIGN = 0x60 };
/* The virtual clock: its low half, 32 bits wide, which increases from read to read. */
enum { TICKER = 0x9000 };
/* IRQ of this service, and the serial line's. */
enum { IRQ = 7, FOREIGN_IRQ = 4 };

/* Endpoint of an empty slot. */
enum { DEAD = 127 | 5 << 12 };
static void *const NOWHERE = (void *)0x10;
static int failures;

static void expect(const char *what, int64_t got, int64_t wanted)
{
    if (got != wanted) {
        service_log("%s gave %d instead of %d", what, (int)got, (int)wanted);
        failures++;
    }
}

#define EXPECT(call, wanted) expect(#call, (call), (wanted))

static void ports_by_messages(void)
{
    uint8_t byte = 0;
    uint16_t word = 0;
    uint32_t wide = 0, later = 0;
    EXPECT(sys_outb(DATA, 0x5a), OK);
    EXPECT(sys_inb(DATA, &byte), OK);
    EXPECT(byte, 0x5a);
    EXPECT(sys_outw(DATA, 0x00a5), OK);
    EXPECT(sys_inw(DATA, &word), OK);
    EXPECT(word & 0xff, 0xa5);
    EXPECT(sys_outl(TICKER, 1), OK);
    EXPECT(sys_inl(TICKER, &wide), OK);
    EXPECT(sys_inl(TICKER, &later), OK);
    EXPECT(later > wide, true);
    EXPECT(sys_devio(DIO_INPUT | DIO_BYTE, DATA, &wide), OK);
    EXPECT(wide, 0xa5);

    EXPECT(sys_inb(FOREIGN, &byte), -ECALLDENIED);
    EXPECT(sys_outb(FOREIGN, 0), -ECALLDENIED);
    EXPECT(sys_inw(LAST, &word), -ECALLDENIED);
    EXPECT(sys_outl(LAST - 2, 0), -ECALLDENIED);
    EXPECT(sys_inb(DATA, NULL), -EFAULT);
    EXPECT(sys_inw(DATA, NULL), -EFAULT);
    EXPECT(sys_inl(DATA, NULL), -EFAULT);
    EXPECT(sys_devio(DIO_INPUT | 3, DATA, &wide), -EINVAL);
    EXPECT(sys_devio(DIO_INPUT, DATA, &wide), -EINVAL);
}

static void strings_and_vectors(void)
{
    uint8_t bytes[4] = {1, 2, 3, 4};
    uint16_t words[2] = {0};
    EXPECT(sys_outsb(DATA, bytes, 4), OK);
    EXPECT(sys_insb(DATA, bytes, 4), OK);
    EXPECT(bytes[0], 4);
    EXPECT(sys_insw(DATA, words, 2), OK);
    EXPECT(words[1] & 0xff, 4);
    EXPECT(sys_outsw(DATA, words, 1), OK);
    EXPECT(sys_sdevio(DIO_INPUT | DIO_BYTE, DATA, bytes, 2), OK);
    EXPECT(sys_insb(FOREIGN, bytes, 4), -ECALLDENIED);
    EXPECT(sys_insb(DATA, NOWHERE, 4), -EFAULT);
    EXPECT(sys_outsb(DATA, NOWHERE, 4), -EFAULT);

    struct skink_port_request requests[3] = {
        {DATA, SKINK_PRIVILEGE_IO_OUT | 1, 0x77},
        {DATA, SKINK_PRIVILEGE_IO_IN | 1, 0},
        {FOREIGN, SKINK_PRIVILEGE_IO_IN | 1, 0},
    };
    EXPECT(sys_vdevio(requests, 3), 2);
    EXPECT(requests[1].value, 0x77);
    EXPECT(sys_vdevio(requests + 2, 1), -ECALLDENIED);
    EXPECT(sys_vdevio(NOWHERE, 1), -EFAULT);
}

static void ports_by_the_hal(void)
{
    uint8_t bytes[2] = {8, 9};
    uint16_t words[2] = {0};
    uint32_t wide[2] = {0};
    EXPECT(hsys_outb(DATA, 0x81), OK);
    EXPECT(hsys_inb(DATA), 0x81);
    EXPECT(hsys_outw(DATA, 0x42), OK);
    EXPECT(hsys_inw(DATA) & 0xff, 0x42);
    EXPECT(hsys_outl(TICKER, 1), OK);
    wide[0] = (uint32_t)hsys_inl(TICKER);
    EXPECT(hsys_inl(TICKER) > wide[0], true);
    EXPECT(hsys_outsb(DATA, bytes, 2), OK);
    EXPECT(hsys_insb(DATA, bytes, 2), OK);
    EXPECT(bytes[0], 9);
    EXPECT(hsys_insw(DATA, words, 2), OK);
    EXPECT(hsys_outsw(DATA, words, 1), OK);
    EXPECT(hsys_insl(TICKER, wide, 2), OK);
    EXPECT(wide[1] > wide[0], true);
    EXPECT(hsys_outsl(TICKER, wide, 2), OK);

    EXPECT(hsys_inb(FOREIGN), -ECALLDENIED);
    EXPECT(hsys_outb(FOREIGN, 0), -ECALLDENIED);
    EXPECT(hsys_inw(LAST), -ECALLDENIED);
    EXPECT(hsys_inl(LAST), -ECALLDENIED);
    EXPECT(hsys_insb(FOREIGN, bytes, 2), -ECALLDENIED);
    EXPECT(hsys_insb(DATA, NOWHERE, 2), -EFAULT);
    EXPECT(hsys_outsb(DATA, NOWHERE, 2), -EFAULT);
    EXPECT(hal_call(3, DATA, 0, 0), -EBADCALL);
    EXPECT(hal_call(64, DATA, 0, 0), -EBADCALL);
}

static void ports_by_instruction(void)
{
    uint8_t bytes[2] = {8, 0x19};
    uint16_t words[1] = {0};
    uint32_t wide[2] = {0};
    i386outb(DATA, 0x91);
    EXPECT(i386inb(DATA), 0x91);
    i386outw(DATA, 0x52);
    EXPECT(i386inw(DATA) & 0xff, 0x52);
    i386outl(TICKER, 1);
    wide[0] = i386inl(TICKER);
    EXPECT(i386inl(TICKER) > wide[0], true);
    i386outsb(DATA, bytes, 2);
    i386insb(DATA, bytes, 2);
    EXPECT(bytes[0], 0x19);
    i386insw(DATA, words, 1);
    EXPECT(words[0] & 0xff, 0x19);
    i386outsw(DATA, words, 1);
    i386insl(TICKER, wide, 2);
    EXPECT(wide[1] > wide[0], true);
    i386outsl(TICKER, wide, 2);
}

static void copies(void)
{
    static char from[16] = "a copied text", to[16];
    uint64_t physical_from = 0, physical_to = 0;
    uintptr_t source = (uintptr_t)from, target = (uintptr_t)to;
    EXPECT(sys_vircopy(SELF, source, SELF, target, sizeof to), OK);
    EXPECT(memcmp(from, to, sizeof to), 0);
    EXPECT(sys_vircopy(SELF, (uintptr_t)NOWHERE, SELF, target, 1), -EFAULT);
    EXPECT(sys_vircopy(DEAD, 0, SELF, target, 1), -EDEADSRCDST);

    EXPECT(sys_umap(from, &physical_from), OK);
    EXPECT(sys_umap(to, &physical_to), OK);
    EXPECT(physical_from % 4096, source % 4096);
    EXPECT(sys_umap(NOWHERE, &physical_to), -EFAULT);
    EXPECT(sys_umap(from, NULL), -EFAULT);

    struct skink_copy_request requests[2] = {
        {SELF, SELF, source, target, 4},
        {DEAD, SELF, source, target, 4},
    };
    memset(to, 0, sizeof to);
    EXPECT(sys_virvcopy(requests, 2), 1);
    EXPECT(memcmp(from, to, 4), 0);
    EXPECT(sys_virvcopy(requests + 1, 1), -EDEADSRCDST);
    EXPECT(sys_virvcopy(NOWHERE, 1), -EFAULT);

    /* Physical memory outside of the service's ranges. */
    EXPECT(sys_physcopy(NONE, physical_from, SELF, target, 1), -ECALLDENIED);
    requests[0].from = NONE;
    EXPECT(sys_physvcopy(requests, 1), -ECALLDENIED);

    EXPECT(sys_safecopyfrom(SKINK_ENDPOINT_RS, 0, 0, to, 1), -EPERM);
    EXPECT(sys_safecopyto(SKINK_ENDPOINT_RS, 0, 0, from, 1), -EPERM);
    EXPECT(sys_safecopyfrom(DEAD, 0, 0, to, 1), -EDEADSRCDST);
}

static void interrupts_and_time(void)
{
    const int hook = 3, no_hook = 4, bad_hook = 64;
    unsigned long high = 0, low = 0, later_high = 0, later_low = 0;
    EXPECT(sys_irqsetpolicy(IRQ, SKINK_KERNEL_IRQ_REENABLE, &hook), OK);
    EXPECT(sys_irqsetpolicy(IRQ, SKINK_KERNEL_IRQ_REENABLE, &hook), -EBUSY);
    EXPECT(sys_irqdisable(&hook), OK);
    EXPECT(sys_irqenable(&hook), OK);
    EXPECT(sys_irqrmpolicy(&hook), OK);
    EXPECT(sys_irqrmpolicy(&hook), -EINVAL);
    EXPECT(sys_irqenable(&no_hook), -EINVAL);
    EXPECT(sys_irqdisable(&no_hook), -EINVAL);
    EXPECT(sys_irqsetpolicy(FOREIGN_IRQ, SKINK_KERNEL_IRQ_REENABLE, &hook), -ECALLDENIED);
    EXPECT(sys_irqsetpolicy(IRQ, 9, &hook), -EINVAL);
    EXPECT(sys_irqsetpolicy(IRQ, SKINK_KERNEL_IRQ_REENABLE, &bad_hook), -EINVAL);
    EXPECT(sys_irqsetpolicy(IRQ, SKINK_KERNEL_IRQ_REENABLE, NULL), -EFAULT);

    EXPECT(sys_get_tsc(GETTSC, &high, &low), OK);
    EXPECT(sys_get_tsc(GETTSC, &later_high, &later_low), OK);
    EXPECT((later_high << 32 | later_low) > (high << 32 | low), 1);
    EXPECT(sys_get_tsc(GETTSC + 1, &high, &low), -EINVAL);
    EXPECT(sys_get_tsc(GETTSC, NULL, &low), -EFAULT);

    EXPECT(sys_setalarm(1), OK);
    message m;
    EXPECT(receive(CLOCK, &m), OK);
    EXPECT(m.label, SKINK_KERNEL_NOTIFY);
    EXPECT(sys_setalarm(1), OK);
    EXPECT(receive33(CLOCK, &m), OK);
    EXPECT(m.source, CLOCK);
    struct skink_privileges all = {0};
    EXPECT(sys_privctl(service_start()->endpoint, &all), -ECALLDENIED);
}

static void primitives(void)
{
    /* Every service may call ds; pm is not among the destinations. */
    const endpoint_t ds = SKINK_ENDPOINT_DS, pm = SKINK_ENDPOINT_PM;
    message m = {.label = SKINK_DS_LOOKUP};
    memcpy(REQUEST(&m, ds_lookup), "rs", 2);
    message same = m;
    EXPECT(sendrec(ds, &m), OK);
    EXPECT(m.words[0], 0);
    EXPECT(REPLY(&m, ds_lookup)->endpoint & 0xfff, SKINK_ENDPOINT_SLOT_RS);
    EXPECT(sendrec33(ds, &same), OK);
    EXPECT(memcmp(&m, &same, sizeof m), 0);

    EXPECT(send(pm, &m), -ECALLDENIED);
    EXPECT(send33(pm, &m), -ECALLDENIED);
    EXPECT(sendnb(pm, &m), -ECALLDENIED);
    EXPECT(sendnb33(pm, &m), -ECALLDENIED);
    EXPECT(sendrec(pm, &m), -ECALLDENIED);
    EXPECT(sendrec33(pm, &m), -ECALLDENIED);
    EXPECT(notify(pm), -ECALLDENIED);
    EXPECT(notify33(pm), -ECALLDENIED);
    EXPECT(receive(DEAD, &m), -EDEADSRCDST);
    EXPECT(receive33(DEAD, &m), -EDEADSRCDST);
    EXPECT(send33(ds, NOWHERE), -EFAULT);
    EXPECT(sendrec33(ds, NOWHERE), -EFAULT);
    EXPECT(system_call(1000, (const uint64_t[6]){0}, NULL), -EBADCALL);
    EXPECT(kernel_call(63, (const uint64_t[6]){0}, NULL), -EBADCALL);
    EXPECT(kernel_call(64, (const uint64_t[6]){0}, NULL), -ENOSYS);
    /* Not in the mask: by message and by trap. */
    EXPECT(system_call(SKINK_SYS_SETGRANTS, (const uint64_t[6]){0}, NULL), -EBADCALL);
    EXPECT(kernel_call(SKINK_SYS_SETGRANTS, (const uint64_t[6]){0}, NULL), -ECALLDENIED);
}

static bool request(message *m)
{
    service_reply(m, -ENOSYS);
    return true;
}

/* Last, after the service is ready: an instruction cannot return an error, so the denied access kills this service. */
static void end(uint64_t now_ns)
{
    (void)now_ns;
    i386inb(FOREIGN);
    service_log("a denied instruction has returned");
}

int main(void)
{
    if (service_start()->kind == SKINK_LAYOUT_START_KIND_FRESH) {
        ports_by_messages();
        strings_and_vectors();
        ports_by_the_hal();
        ports_by_instruction();
        copies();
        interrupts_and_time();
        primitives();
        EXPECT(service_argument_is("key", "value"), true);
        EXPECT(service_argument_is("key", "valu"), false);
        EXPECT(service_argument_is("other", "x"), false);
        service_log("%d failed", failures);
        sys_setalarm(1);
    } else {
        service_log("born again");
    }
    static const struct service service = {.request = request, .alarm = end};
    service_run(&service);
}
