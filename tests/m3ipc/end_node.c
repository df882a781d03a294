/* Ends what an earlier program has left: where nodes outlive programs, each test begins with none. */
#include <m3ipc.h>

int main(void)
{
    mnx_drvs_end();
    return 0;
}
