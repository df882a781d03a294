/* mmap, munmap, mprotect, mremap, msync, madvise, mincore, mlock, brk. */
#include "behaviour.h"

#define PAGE 4096L
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)

static char *pages(long count) {
    char *memory = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0);
    must(memory == MAP_FAILED ? -1 : 0);
    return memory;
}

static int file_of(long bytes, int flags) {
    int fd = must(open("f", O_CREAT | O_RDWR | O_TRUNC, 0666));
    must(ftruncate(fd, bytes));
    if (bytes >= 4)
        must(pwrite(fd, "text", 4, 0));
    close(fd);
    return must(open("f", flags));
}

static char *map(int fd, long bytes, int protection, int flags) { return show_address(mmap(NULL, bytes, protection, flags, fd, 0)); }

/* Whether the page of the address can be read: asked of the kernel, which returns EFAULT. */
static int readable(const void *address) {
    int p[2], can;
    pipe(p);
    can = write(p[1], address, 1) == 1;
    close(p[0]);
    close(p[1]);
    return can;
}

static void touch(volatile char *address) { *address = 1; }

BEHAVIOUR("mmap of length 0") { map(-1, 0, PROT_READ, ANONYMOUS); }
BEHAVIOUR("mmap of more than there can be") {
    show_address(mmap(NULL, SIZE_MAX - 5000, PROT_READ, ANONYMOUS, -1, 0));
    show_address(mmap(NULL, 1UL << 47, PROT_READ, ANONYMOUS, -1, 0));
}
BEHAVIOUR("mmap without MAP_SHARED and MAP_PRIVATE") { map(-1, PAGE, PROT_READ, MAP_ANONYMOUS); }
BEHAVIOUR("mmap of a bad descriptor") {
    map(99, PAGE, PROT_READ, MAP_PRIVATE);
    map(-1, PAGE, PROT_READ, MAP_SHARED);
}
BEHAVIOUR("mmap of anonymous memory ignores the descriptor") { map(99, PAGE, PROT_READ, ANONYMOUS); }
BEHAVIOUR("mmap at an offset that is no multiple of a page") {
    int fd = file_of(PAGE, O_RDWR);
    show_address(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 100));
    show_address((void *)syscall(SYS_mmap, NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, -PAGE));
}
BEHAVIOUR("mmap at a fixed address that is no multiple of a page") {
    char *at = pages(1);
    show_address(mmap(at + 1, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0));
}
BEHAVIOUR("mmap at a fixed address beyond the user's addresses") {
    show_address(mmap((void *)0x7ffffffff000, 2 * PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0));
    show_address(mmap((void *)0xffff800000000000, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0));
}
BEHAVIOUR("mmap at a hint that is no multiple of a page takes another address") {
    char *at = mmap((void *)0x10000001, PAGE, PROT_READ, ANONYMOUS, -1, 0);
    note("%d", at != MAP_FAILED && (uintptr_t)at % PAGE == 0);
}
BEHAVIOUR("mmap MAP_FIXED replaces what is there") {
    char *at = pages(2);
    touch(at);
    touch(at + PAGE);
    mmap(at, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0);
    note("%d %d", at[0], at[PAGE]);
}
BEHAVIOUR("mmap MAP_FIXED_NOREPLACE") {
    char *at = pages(2);
    show_address(mmap(at, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    munmap(at, 2 * PAGE);
    note("%d", mmap(at, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at);
}
BEHAVIOUR("mmap: shared and writable wants a descriptor for writing") {
    int fd = file_of(PAGE, O_RDONLY);
    map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED);
    map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    map(fd, PAGE, PROT_READ, MAP_SHARED);
}
BEHAVIOUR("mmap of a descriptor for writing alone") {
    int fd = file_of(PAGE, O_WRONLY);
    map(fd, PAGE, PROT_WRITE, MAP_SHARED);
    map(fd, PAGE, PROT_READ, MAP_PRIVATE);
}
BEHAVIOUR("mmap of a pipe and of a directory") {
    int p[2];
    pipe(p);
    map(p[0], PAGE, PROT_READ, MAP_PRIVATE);
    map(open(".", O_RDONLY), PAGE, PROT_READ, MAP_PRIVATE);
}
BEHAVIOUR("mmap of /dev/zero is anonymous memory") {
    int fd = open("/dev/zero", O_RDWR);
    char *at = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    note("%d", at[5]);
    touch(at);
}
BEHAVIOUR("a private mapping does not change the file") {
    char *at = map(file_of(PAGE, O_RDWR), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    at[0] = 'T';
    show_read(open("f", O_RDONLY), 4);
}
BEHAVIOUR("a shared mapping changes the file") {
    char *at = map(file_of(PAGE, O_RDWR), PAGE, PROT_READ | PROT_WRITE, MAP_SHARED);
    at[0] = 'T';
    show_read(open("f", O_RDONLY), 4);
}
BEHAVIOUR("a shared mapping sees what write writes") {
    int fd = file_of(PAGE, O_RDWR);
    char *at = map(fd, PAGE, PROT_READ, MAP_SHARED);
    pwrite(fd, "T", 1, 0);
    show_bytes(at, 4);
}
BEHAVIOUR("two shared mappings of a file are one, also after the descriptor is closed") {
    int fd = file_of(PAGE, O_RDWR);
    char *one = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED), *two = map(fd, PAGE, PROT_READ, MAP_SHARED);
    close(fd);
    one[1] = 'E';
    show_bytes(two, 4);
}
BEHAVIOUR("the page behind the end of the file: zeros in the last page, SIGBUS behind") {
    char *at = map(file_of(10, O_RDWR), 3 * PAGE, PROT_READ, MAP_SHARED);
    note("%d", at[100]);
    IN_CHILD { note("%d", ((volatile char *)at)[PAGE]); }
}
BEHAVIOUR("a mapping grows with the file") {
    int fd = file_of(10, O_RDWR);
    char *at = map(fd, 2 * PAGE, PROT_READ, MAP_SHARED);
    must(ftruncate(fd, 2 * PAGE));
    note("%d", at[PAGE]);
}
BEHAVIOUR("truncating a file takes the pages from its mappings") {
    int fd = file_of(2 * PAGE, O_RDWR);
    volatile char *at = map(fd, 2 * PAGE, PROT_READ, MAP_SHARED);
    note("%d", at[PAGE]);
    must(ftruncate(fd, 10));
    IN_CHILD { note("%d", at[PAGE]); }
}
BEHAVIOUR("bytes behind the end of the file are not written to it") {
    int fd = file_of(10, O_RDWR);
    char *at = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED);
    at[20] = 'X';
    msync(at, PAGE, MS_SYNC);
    show(size_of(fd));
}
BEHAVIOUR("a mapping of a file that is removed lives on") {
    char *at = map(file_of(PAGE, O_RDWR), PAGE, PROT_READ | PROT_WRITE, MAP_SHARED);
    unlink("f");
    at[0] = 'T';
    show_bytes(at, 4);
}
BEHAVIOUR("private memory is copied by fork, shared memory is not") {
    char *own = pages(1), *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    IN_CHILD {
        own[0] = 1;
        shared[0] = 1;
    }
    note("%d %d", own[0], shared[0]);
}
BEHAVIOUR("PROT_NONE can be neither read nor written") {
    char *at = mmap(NULL, PAGE, PROT_NONE, ANONYMOUS, -1, 0);
    note("%d", readable(at));
    IN_CHILD { touch(at); }
}
BEHAVIOUR("memory that may not be executed") {
    char *at = pages(1);
    at[0] = (char)0xc3;
    IN_CHILD { ((void (*)(void))at)(); }
    must(mprotect(at, PAGE, PROT_READ | PROT_EXEC));
    IN_CHILD {
        ((void (*)(void))at)();
        note("returned");
    }
}
BEHAVIOUR("munmap of a bad address, of length 0, of nothing") {
    char *at = pages(1);
    show(munmap(at + 1, PAGE));
    show(munmap(at, 0));
    show(munmap(at, PAGE));
    show(munmap(at, PAGE));
    show(munmap((void *)0x7ffffffff000, 4 * PAGE));
}
BEHAVIOUR("munmap of a part") {
    char *at = pages(3);
    show(munmap(at + PAGE, 1));
    note("%d%d%d", readable(at), readable(at + PAGE), readable(at + 2 * PAGE));
}
BEHAVIOUR("mprotect of a bad address, of what is not mapped, with unknown rights") {
    char *at = pages(3);
    show(mprotect(at + 1, PAGE, PROT_READ));
    show(mprotect(at, PAGE, 0x77));
    show(mprotect(at, 0, PROT_READ));
    munmap(at + PAGE, PAGE);
    show(mprotect(at, 3 * PAGE, PROT_READ));
    show(mprotect(at, PAGE, PROT_READ | PROT_GROWSDOWN));
}
BEHAVIOUR("mprotect that meets a gap has changed what is before it") {
    char *at = pages(3);
    munmap(at + PAGE, PAGE);
    show(mprotect(at, 3 * PAGE, PROT_READ));
    IN_CHILD { touch(at); }
    IN_CHILD { touch(at + 2 * PAGE); }
}
BEHAVIOUR("mprotect PROT_WRITE of a shared mapping of a descriptor for reading") {
    int fd = file_of(PAGE, O_RDONLY);
    char *shared = map(fd, PAGE, PROT_READ, MAP_SHARED), *own = map(fd, PAGE, PROT_READ, MAP_PRIVATE);
    show(mprotect(shared, PAGE, PROT_READ | PROT_WRITE));
    show(mprotect(own, PAGE, PROT_READ | PROT_WRITE));
}
BEHAVIOUR("mprotect changes back and forth") {
    char *at = pages(1);
    at[0] = 'x';
    show(mprotect(at, PAGE, PROT_NONE));
    note("%d", readable(at));
    show(mprotect(at, PAGE, PROT_READ));
    note("%c", at[0]);
    IN_CHILD { touch(at); }
}
BEHAVIOUR("mremap with bad addresses, lengths and flags") {
    char *at = pages(2);
    show_address(mremap(at + 1, PAGE, PAGE, 0));
    show_address(mremap(at, PAGE, 0, 0));
    show_address(mremap(at, PAGE, PAGE, 0x77));
    show_address(mremap(at, PAGE, PAGE, MREMAP_FIXED, at));
    munmap(at, 2 * PAGE);
    show_address(mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
}
BEHAVIOUR("mremap shrinks in place") {
    char *at = pages(3);
    note("%d", mremap(at, 3 * PAGE, PAGE, 0) == at);
    note("%d%d", readable(at), readable(at + PAGE));
}
BEHAVIOUR("mremap grows where there is room, and fails without MREMAP_MAYMOVE where there is none") {
    char *at = pages(4);
    munmap(at + PAGE, PAGE);
    at[0] = 'x';
    note("%d", mremap(at, PAGE, 2 * PAGE, 0) == at);
    show_address(mremap(at, 2 * PAGE, 3 * PAGE, 0));
    char *moved = mremap(at, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    note("%d %c %d %d", moved != at, moved[0], moved[7 * PAGE], readable(at));
}
BEHAVIOUR("mremap MREMAP_FIXED replaces what is there") {
    char *from = pages(1), *to = pages(1);
    from[0] = 'x';
    to[0] = 'y';
    note("%d", mremap(from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    note("%c %d", to[0], readable(from));
}
BEHAVIOUR("mremap to overlapping addresses") {
    char *at = pages(4);
    show_address(mremap(at, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + PAGE));
}
BEHAVIOUR("mremap of old length 0 makes a second mapping of shared memory, and fails for private") {
    char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *own = pages(1);
    char *second = show_address(mremap(shared, 0, PAGE, MREMAP_MAYMOVE));
    if (second != MAP_FAILED) {
        shared[0] = 'x';
        note("%c", second[0]);
    }
    show_address(mremap(own, 0, PAGE, MREMAP_MAYMOVE));
}
BEHAVIOUR("msync and madvise of locked memory: nothing is invalidated or dropped, but by MADV_DONTNEED_LOCKED") {
    char *at = pages(3);
    must(mlock(at + PAGE, PAGE));
    show(msync(at, PAGE, MS_SYNC | MS_INVALIDATE));
    show(msync(at, 2 * PAGE, MS_SYNC | MS_INVALIDATE));
    show(msync(at, 2 * PAGE, MS_INVALIDATE));
    show(msync(at, 2 * PAGE, MS_SYNC));
    show(madvise(at, 2 * PAGE, MADV_DONTNEED));
    show(madvise(at, 2 * PAGE, MADV_FREE));
    at[PAGE] = 'x';
    show(madvise(at, 2 * PAGE, 24 /* MADV_DONTNEED_LOCKED */));
    show(at[PAGE]);
    munmap(at + 2 * PAGE, PAGE);
    show(msync(at, 3 * PAGE, MS_INVALIDATE));
    must(munlock(at, 2 * PAGE));
    show(msync(at, 2 * PAGE, MS_INVALIDATE));
    show(madvise(at, 2 * PAGE, MADV_DONTNEED));
}
// What /proc/self/maps has after the inode of the region that begins there: nothing, or where in the line the name begins, and its last part.
static void note_mapped(void *at) {
    char line[400], start[20];
    int after = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    snprintf(start, sizeof start, "%08lx-", (unsigned long)at);
    while (fgets(line, sizeof line, maps))
        if (strncmp(line, start, strlen(start)) == 0)
            break;
    sscanf(line, "%*s %*s %*s %*s %*u%n", &after);
    char *name = strrchr(line, '/');
    if (name)
        note("%ld %s", (long)(strchr(line, '/') - line), strtok(name + 1, "\n"));
    else
        note("%d", strcmp(line + after, " \n"));
    fclose(maps);
}
BEHAVIOUR("/proc/self/maps names the file of each mapping, and nothing where there is none") {
    make("one", "1");
    make("two", "2");
    int one = must(open("one", O_RDWR)), two = must(open("two", O_RDWR));
    char *private = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, one, 0);
    char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, two, 0);
    char *executable = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, two, 0);
    close(one);
    close(two);
    note_mapped(private);
    note_mapped(shared);
    note_mapped(executable);
    note_mapped(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
// Stores through a shared mapping, unmaps it, and shows what two ways of reading find then.
static void note_stored(int fd) {
    char byte = 0;
    must(ftruncate(fd, 3 * PAGE));
    char *at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(at, 'x', 3 * PAGE);
    must(munmap(at, 3 * PAGE));
    show(pread(fd, &byte, 1, 2 * PAGE));
    at = mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    note("%c %c %c", byte, at[0], at[3 * PAGE - 1]);
    must(munmap(at, 3 * PAGE));
}
BEHAVIOUR("what was stored through a mapping is in the file: a memfd, a file without a name, one that is unlinked while it is mapped") {
    note_stored(must(memfd_create("m", 0)));
    int fd = must(open("f", O_CREAT | O_RDWR, 0600));
    unlink("f");
    note_stored(fd);
    fd = must(open("g", O_CREAT | O_RDWR, 0600));
    must(ftruncate(fd, PAGE));
    char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), byte = 0;
    at[9] = 'y';
    unlink("g");
    must(munmap(at, PAGE));
    show(pread(fd, &byte, 1, 9));
    note("%c", byte);
}
BEHAVIOUR("a memfd keeps what was stored while it was mapped in a process that has ended") {
    int fd = must(memfd_create("m", 0));
    must(ftruncate(fd, PAGE));
    pid_t child = fork();
    if (child == 0) {
        char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        at[0] = 'z';
        _exit(0);
    }
    waitpid(child, NULL, 0);
    char byte = 0;
    show(pread(fd, &byte, 1, 0));
    note("%c", byte);
}
BEHAVIOUR("msync with bad flags, addresses and gaps") {
    char *at = pages(2);
    show(msync(at, PAGE, MS_SYNC | MS_ASYNC));
    show(msync(at, PAGE, 0x77));
    show(msync(at + 1, PAGE, MS_SYNC));
    show(msync(at, PAGE, 0));
    munmap(at + PAGE, PAGE);
    show(msync(at, 2 * PAGE, MS_SYNC));
    show(msync(at, PAGE, MS_ASYNC));
}
BEHAVIOUR("madvise with unknown advice, bad addresses, gaps") {
    char *at = pages(3);
    show(madvise(at, PAGE, 77));
    show(madvise(at + 1, PAGE, MADV_DONTNEED));
    show(madvise(at, 0, MADV_DONTNEED));
    show(madvise(at, 0, 77));
    munmap(at + PAGE, PAGE);
    show(madvise(at, 3 * PAGE, MADV_DONTNEED));
    show(madvise(at, 3 * PAGE, MADV_NORMAL));
}
BEHAVIOUR("MADV_DONTNEED empties private memory, and shows the file again") {
    char *at = pages(1), *mapped = map(file_of(PAGE, O_RDWR), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    at[0] = 'x';
    mapped[0] = 'T';
    show(madvise(at, PAGE, MADV_DONTNEED));
    show(madvise(mapped, PAGE, MADV_DONTNEED));
    note("%d", at[0]);
    show_bytes(mapped, 4);
}
BEHAVIOUR("MADV_DONTNEED leaves what is in shared memory") {
    char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    at[0] = 'x';
    show(madvise(at, PAGE, MADV_DONTNEED));
    note("%c", at[0]);
}
BEHAVIOUR("MADV_DONTFORK and MADV_WIPEONFORK") {
    char *not_there = pages(1), *empty = pages(1);
    empty[0] = 'x';
    show(madvise(not_there, PAGE, MADV_DONTFORK));
    show(madvise(empty, PAGE, MADV_WIPEONFORK));
    IN_CHILD { note("%d %d", readable(not_there), empty[0]); }
    note("%d %c", readable(not_there), empty[0]);
}
BEHAVIOUR("MADV_WIPEONFORK of a file") {
    show(madvise(map(file_of(PAGE, O_RDWR), PAGE, PROT_READ, MAP_PRIVATE), PAGE, MADV_WIPEONFORK));
}
BEHAVIOUR("MADV_POPULATE_READ of what may not be read") {
    show(madvise(mmap(NULL, PAGE, PROT_NONE, ANONYMOUS, -1, 0), PAGE, MADV_POPULATE_READ));
    show(madvise(read_only(), PAGE, MADV_POPULATE_WRITE));
    show(madvise(pages(1), PAGE, MADV_POPULATE_WRITE));
}
BEHAVIOUR("mincore: bad addresses, gaps, bad memory") {
    unsigned char present[4];
    char *at = pages(2);
    show(mincore(at + 1, PAGE, present));
    show(mincore(at, PAGE, bad()));
    show(mincore(at, SIZE_MAX, present));
    munmap(at + PAGE, PAGE);
    show(mincore(at, 2 * PAGE, present));
}
BEHAVIOUR("mincore tells which pages of anonymous memory were touched") {
    unsigned char present[3] = {9, 9, 9};
    char *at = pages(3);
    touch(at + PAGE);
    show(mincore(at, 3 * PAGE, present));
    note("%d%d%d", present[0] & 1, present[1] & 1, present[2] & 1);
}
BEHAVIOUR("mlock and munlock of a gap, mlock2 with unknown flags") {
    char *at = pages(3);
    munmap(at + PAGE, PAGE);
    show(mlock(at, 3 * PAGE));
    show(munlock(at, 3 * PAGE));
    show(mlock2(at, PAGE, 0x77));
    show(mlock(at, PAGE));
}
BEHAVIOUR("mlock fills the memory") {
    unsigned char present[2] = {0, 0};
    char *at = pages(2);
    show(mlock(at, 2 * PAGE));
    mincore(at, 2 * PAGE, present);
    note("%d%d", present[0] & 1, present[1] & 1);
}
BEHAVIOUR("mlockall with unknown flags") {
    show(mlockall(0));
    show(mlockall(0x77));
    show(mlockall(MCL_ONFAULT));
    show(munlockall());
}
BEHAVIOUR("MAP_POPULATE fills the memory") {
    unsigned char present[2] = {0, 0};
    char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, ANONYMOUS | MAP_POPULATE, -1, 0);
    mincore(at, 2 * PAGE, present);
    note("%d%d", present[0] & 1, present[1] & 1);
}
BEHAVIOUR("brk: the end moves, what is below it can be used, errors leave it") {
    char *end = (char *)syscall(SYS_brk, 0);
    note("%ld", syscall(SYS_brk, end + 10000) - (long)end);
    touch(end + 9999);
    note("%ld", syscall(SYS_brk, 8) - (long)end);
    note("%ld", syscall(SYS_brk, end) - (long)end);
    note("%d", readable((char *)(((uintptr_t)end + 2 * PAGE) & -PAGE)));
}
BEHAVIOUR("memory above the end comes back empty") {
    char *end = (char *)syscall(SYS_brk, 0);
    end = (char *)(((uintptr_t)end + PAGE) & -PAGE);
    syscall(SYS_brk, end + PAGE);
    end[5] = 'x';
    syscall(SYS_brk, end);
    syscall(SYS_brk, end + PAGE);
    note("%d", end[5]);
}
BEHAVIOUR("MAP_GROWSDOWN memory has the size that was asked for at once") {
    char *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    show(at != MAP_FAILED);
    touch(at + 4 * PAGE - 1);
    touch(at);
}
BEHAVIOUR("MAP_SHARED_VALIDATE refuses flags that it does not know") {
    int fd = file_of(PAGE, O_RDWR);
    map(fd, PAGE, PROT_READ, MAP_SHARED_VALIDATE);
    map(fd, PAGE, PROT_READ, MAP_SHARED_VALIDATE | 1 << 22);
    map(fd, PAGE, PROT_READ, MAP_SHARED | 1 << 22);
}
BEHAVIOUR("the stack grows") {
    volatile char large[1 << 20];
    large[0] = 1;
    large[sizeof large - 1] = 1;
    show(large[0]);
}
BEHAVIOUR("an endless recursion ends with SIGSEGV") {
    IN_CHILD {
        struct rlimit small = {1 << 20, 1 << 20};
        setrlimit(RLIMIT_STACK, &small);
        for (volatile char *at = (volatile char *)&small;; at -= PAGE)
            *at = 1;
    }
}
