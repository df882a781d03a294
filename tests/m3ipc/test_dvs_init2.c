/* drvs_init refuses numbers beyond their limits, and takes smaller ones. */
#include "m3test.h"

int main(void)
{
    drvs_usr_t all = {NR_VMS, NR_NODES, NR_PROCS, NR_TASKS, NR_SYS_PROCS, MAXCOPYLEN, MAXCOPYLEN, 0, 0};
    drvs_usr_t d = all;
    SHOW(mnx_drvs_init(-1, NULL));
    SHOW(mnx_drvs_init(NR_NODES, NULL));
    d.d_nr_vms = NR_VMS + 1;
    SHOW(mnx_drvs_init(0, &d));
    d = all;
    d.d_nr_procs = 0;
    SHOW(mnx_drvs_init(0, &d));
    d = all;
    d.d_max_copylen = MAXCOPYLEN + 1;
    SHOW(mnx_drvs_init(0, &d));
    d = all;
    d.d_nr_vms = 2;
    d.d_nr_nodes = 4;
    SHOW(mnx_drvs_init(4, &d));
    SHOW(mnx_drvs_init(2, &d));
    SHOW(mnx_getdrvsinfo(&d));
    printf("%d containers, %d nodes\n", d.d_nr_vms, d.d_nr_nodes);
    SHOW(container(2));
    SHOW(container(1));
    return 0;
}
