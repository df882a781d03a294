// SPDX-License-Identifier: MIT OR GPL-2.0
/* /proc/drvs: what the node, its containers and their processes are, in the form that was published. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include "module.h"

static struct proc_dir_entry *root;

static int show_info(struct seq_file *file, void *unused)
{
    drvs_usr_t limits;
    int number;

    mutex_lock(&node.mutex);
    limits = node.limits;
    number = node.number;
    mutex_unlock(&node.mutex);
    seq_printf(file, "nodeid=%d\n", number);
    if (number < 0)
        return 0;
    seq_printf(file, "nr_vms=%d\nnr_nodes=%d\nnr_procs=%d\nnr_tasks=%d\nnr_sysprocs=%d\nmax_copybuf=%d\nmax_copylen=%d\n", limits.d_nr_vms,
               limits.d_nr_nodes, limits.d_nr_procs, limits.d_nr_tasks, limits.d_nr_sysprocs, limits.d_max_copybuf, limits.d_max_copylen);
    seq_printf(file, "dbglvl=%d\nversion=%d\nsizeof(proc)=%zu\nsizeof(VM)=%zu\nsizeof(node)=%zu\n", limits.d_dbglvl, limits.d_version,
               sizeof(proc_usr_t), sizeof(VM_usr_t), sizeof(node_usr_t));
    return 0;
}

static int show_nodes(struct seq_file *file, void *unused)
{
    int number, vm;

    if (READ_ONCE(node.number) < 0)
        return 0;
    seq_puts(file, "ID Flags Proxies -pxsent- -pxrcvd- 10987654321098765432109876543210 Name\n");
    for (number = 0; number < node.limits.d_nr_nodes; number++) {
        node_usr_t n;

        describe_node(number, &n);
        if (!n.n_flags && !n.n_vms)
            continue;
        seq_printf(file, "%2d %5X %7d %8lu %8lu ", number, n.n_flags, n.n_proxies == NONE ? -1 : n.n_proxies, n.n_pxsent, n.n_pxrcvd);
        for (vm = NR_VMS - 1; vm >= 0; vm--)
            seq_putc(file, n.n_vms & 1u << vm ? 'X' : '-');
        seq_printf(file, " %.16s\n", n.n_name);
    }
    return 0;
}

/* The container whose file this is. */
static struct container *container_of_file(struct seq_file *file)
{
    return get_container((long)pde_data(file_inode(file->file)));
}

static int show_vm_info(struct seq_file *file, void *unused)
{
    struct container *container = container_of_file(file);
    VM_usr_t vm;
    int number;

    if (IS_ERR(container))
        return 0;
    describe_container(container, &vm);
    put_container(container);
    seq_printf(file, "vmid=%d\nflags=%X\nnr_procs=%d\nnr_tasks=%d\nnr_sysprocs=%d\nnr_nodes=%d\nbound=%d\nname=%.16s\nnodes=", vm.vm_vmid,
               vm.vm_flags, vm.vm_nr_procs, vm.vm_nr_tasks, vm.vm_nr_sysprocs, vm.vm_nr_nodes, vm.vm_bound, vm.vm_name);
    for (number = NR_NODES - 1; number >= 0; number--)
        seq_putc(file, vm.vm_nodes & 1u << number ? 'X' : '-');
    seq_putc(file, '\n');
    return 0;
}

/* Shows a line for each process that is bound. */
static int show_each(struct seq_file *file, const char *heading, void (*show)(struct seq_file *file, const proc_usr_t *p))
{
    struct container *container = container_of_file(file);
    int i;

    if (IS_ERR(container))
        return 0;
    seq_puts(file, heading);
    for (i = 0; i < SLOTS; i++) {
        proc_usr_t p;

        rcu_read_lock();
        describe_process(&container->slots[i], &p);
        rcu_read_unlock();
        if (!(p.p_rts_flags & RTS_SLOT_FREE))
            show(file, &p);
    }
    put_container(container);
    return 0;
}

static void show_process(struct seq_file *file, const proc_usr_t *p)
{
    seq_printf(file, "%2d %3d %8d %6d %2d %5X %4X %8d %8d %5d %4d %.16s\n", p->p_vmid, p->p_nr, p->p_endpoint, p->p_lpid, p->p_nodeid,
               p->p_rts_flags, p->p_misc_flags, p->p_getfrom, p->p_sendto, p->p_waitmigr, p->p_proxy == NONE ? -1 : p->p_proxy, p->p_name);
}

static int show_procs(struct seq_file *file, void *unused)
{
    return show_each(file, "VM pnr -endpnt- -lpid- nd flags misc -getfrm- -sendto -wmig -prx name\n", show_process);
}

static void show_counts(struct seq_file *file, const proc_usr_t *p)
{
    seq_printf(file, "%2d %3d %8d %6d %2d %9lu %9lu %9lu %9lu\n", p->p_vmid, p->p_nr, p->p_endpoint, p->p_lpid, p->p_nodeid, p->p_lclsent,
               p->p_rmtsent, p->p_lclcopy, p->p_rmtcopy);
}

static int show_stats(struct seq_file *file, void *unused)
{
    return show_each(file, "VM pnr -endpnt- -lpid- nd -lclsent- -rmtsent- -lclcopy- -rmtcopy-\n", show_counts);
}

/* Makes the folder of a container; without one it works too. */
struct proc_dir_entry *make_proc(int vmid)
{
    struct proc_dir_entry *folder;
    void *data = (void *)(long)vmid;
    char name[8];

    snprintf(name, sizeof name, "VM%d", vmid);
    folder = root ? proc_mkdir(name, root) : NULL;
    if (folder) {
        proc_create_single_data("info", 0444, folder, show_vm_info, data);
        proc_create_single_data("procs", 0444, folder, show_procs, data);
        proc_create_single_data("stats", 0444, folder, show_stats, data);
    }
    return folder;
}

int start_proc(void)
{
    root = proc_mkdir("drvs", NULL);
    if (!root)
        return -ENOMEM;
    proc_create_single("info", 0444, root, show_info);
    proc_create_single("nodes", 0444, root, show_nodes);
    return 0;
}

void stop_proc(void)
{
    proc_remove(root);
}
