/* drvs_init starts the node once; NULL takes all limits. */
#include "m3test.h"

int main(void)
{
    drvs_usr_t d;
    SHOW(mnx_getdrvsinfo(&d));
    SHOW(mnx_drvs_init(3, NULL));
    SHOW(mnx_drvs_init(3, NULL));
    SHOW(mnx_getdrvsinfo(&d));
    printf("%d containers, %d nodes, %d processes, %d tasks, %d system processes\n", d.d_nr_vms, d.d_nr_nodes,
           d.d_nr_procs, d.d_nr_tasks, d.d_nr_sysprocs);
    printf("copies of %d bytes, version %d\n", d.d_max_copylen, d.d_version);
    return 0;
}
