/* Descriptors and names that are not there: every call that has one fails with EMOLFAULT, and does nothing. What may only be read is enough for calls that
 * only read, and a name may end where the memory does. */
#include "pointers.h"

static char *name_at_the_end(const char *name)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    return strcpy(pages + PAGE - strlen(name) - 1, name);
}

int main(void)
{
    VM_usr_t vm;
    make_pointers();
    bad[0].place = (void *)16; /* null is the default of drvs_init */
    setvbuf(stdout, NULL, _IOLBF, 0);
    SHOW_BAD(mnx_drvs_init(0, p));
    bad[0].place = NULL;
    begin();
    SHOW(mnx_bind(0, 1));
    SHOW_BAD(mnx_getdrvsinfo(p));
    SHOW_BAD(mnx_vm_init(p));
    SHOW_BAD(mnx_getvminfo(0, p));
    SHOW_BAD(mnx_getprocinfo(0, 1, p));
    SHOW_BAD(mnx_getpriv(0, 1, p));
    SHOW_BAD(mnx_setpriv(0, 1, p));
    SHOW_BAD(mnx_getnodeinfo(0, p));
    SHOW_BAD(mnx_getproxyinfo(0, p, p, p));
    SHOW_BAD(mnx_alloc(p, 100));
    SHOW(mnx_getvminfo(0, (VM_usr_t *)read_only));
    SHOW(mnx_getprocinfo(0, 1, (proc_usr_t *)read_only));
    SHOW(mnx_getpriv(0, 1, (priv_usr_t *)read_only));
    SHOW(mnx_alloc((void **)read_only, 100));
    VM_usr_t *other = (VM_usr_t *)page(PROT_READ | PROT_WRITE);
    *other = (VM_usr_t){.vm_vmid = 1, .vm_name = "other"};
    mprotect(other, PAGE, PROT_READ);
    SHOW(mnx_vm_init(other));
    SHOW_BAD(mnx_getvminfo(1, p));

    /* Half of a name is one that is not there. */
    char *half = bad[3].place;
    memset(half, 'x', 4);
    SHOW(mnx_add_node(0, 3));
    SHOW_BAD(mnx_rmtbind(0, p, 20, 3));
    SHOW_BAD(mnx_node_up(p, 3, 0));
    SHOW_BAD(mnx_proxies_bind(p, 0, 1, 1, 4096));
    SHOW(mnx_rmtbind(0, name_at_the_end("remote"), 20, 3));
    SHOW(mnx_getvminfo(0, &vm));
    SHOW(vm.vm_bound);
    return 0;
}
