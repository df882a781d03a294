/* Space: a mapping of holes for which there is none is refused, and so is fallocate; the file stays as it was. Not as on Linux, where a
   mapping succeeds and a store ends in SIGBUS. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *why(long result) { return result < 0 ? strerror(errno) : "done"; }

int main(int count, char **arguments) {
    struct stat status;
    int file = open(arguments[1], O_RDWR | O_CREAT, 0600);
    ftruncate(file, 1 << 20);
    printf("mmap %s", why((long)mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)));
    printf(", of what there is space for %s\n", mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED ? "no" : "done");
    ftruncate(file, 4096);
    printf("fallocate %s", why(fallocate(file, 0, 0, 1 << 20)));
    printf(", %s", why(fallocate(file, 0, 0, 20000)));
    printf(", %s", why(fallocate(file, 0, 0, 0)));
    fstat(file, &status);
    printf(", size %ld, blocks %ld\n", (long)status.st_size, (long)status.st_blocks);
    return 0;
}
