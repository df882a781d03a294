/* Throughput of file copies, each brought to the disk by fsync, while the disk's driver is killed every half second of virtual time:
 * ticks of a copy undisturbed and disturbed, and the throughput that is left in thousandths. Only on Skink. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../rs.h"
#include "ticks.h"

/* Both files together fit in the 8 MiB that are always free on a root in memory. */
enum { FILE_BYTES = 3 << 20, PIECE = 64 << 10, COPIES = 400, PERIOD_US = 500000 };

static char piece[PIECE];
static volatile unsigned *kills;

static void copy(const char *from, const char *to)
{
    int source = open(from, O_RDONLY), target = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    check(source >= 0 && target >= 0, "open");
    for (int bytes = 0; bytes < FILE_BYTES; bytes += PIECE) {
        check(read(source, piece, PIECE) == PIECE, "read");
        check(write(target, piece, PIECE) == PIECE, "write");
    }
    check(fsync(target) == 0, "fsync");
    close(source);
    close(target);
}

static uint64_t copies(void)
{
    uint64_t start = ticks();
    for (int count = 0; count < COPIES; count++)
        copy("/tmp/from", "/tmp/to");
    return (ticks() - start) / COPIES;
}

static pid_t start_killer(void)
{
    pid_t killer = fork();
    check(killer >= 0, "fork");
    while (killer == 0) {
        usleep(PERIOD_US);
        check(service_call(SKINK_RS_SERVICE_CALL_KILL, "ramdisk", NULL, 0) == 0, "kill");
        ++*kills;
    }
    return killer;
}

int main(void)
{
    int file = open("/tmp/from", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    check(file >= 0, "open");
    for (int bytes = 0; bytes < FILE_BYTES; bytes += PIECE) {
        memset(piece, bytes >> 16, PIECE);
        check(write(file, piece, PIECE) == PIECE, "write");
    }
    close(file);
    kills = mmap(NULL, sizeof *kills, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(kills != MAP_FAILED, "mmap");
    copy("/tmp/from", "/tmp/to");
    uint64_t undisturbed = copies();
    pid_t killer = start_killer();
    uint64_t disturbed = copies();
    kill(killer, SIGKILL);
    waitpid(killer, NULL, 0);
    printf("copy_3m_fsync %llu\n", (unsigned long long)undisturbed);
    printf("copy_3m_fsync_disk_killed %llu\n", (unsigned long long)disturbed);
    printf("copy_3m_fsync_kills %u\n", *kills);
    printf("copy_throughput_left_permille %llu\n", (unsigned long long)(undisturbed * 1000 / disturbed));
    return 0;
}
