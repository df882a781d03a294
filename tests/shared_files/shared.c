/* Shared mappings of files in the folder that is given: prints the same on Linux and on Skink, whatever file system it is on. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static sigjmp_buf after_fault;

static void on_fault(int signal) { siglongjmp(after_fault, signal); }

/* What happens when a byte is read, or written. */
static const char *touch(volatile char *at, int write) {
    int signal = sigsetjmp(after_fault, 1);
    if (signal != 0) return signal == SIGBUS ? "SIGBUS" : "SIGSEGV";
    if (write) *at = 'w';
    else (void)*at;
    return "fine";
}

static const char *why(long result) { return result < 0 ? strerror(errno) : "done"; }

static const char *error_of(void *at) { return at == MAP_FAILED ? strerror(errno) : "mapped"; }

static int new_file(const char *name, int bytes) {
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < bytes; i++) {
        char letter = 'a' + i / PAGE;
        if (i % 512 == 0 && write(file, &letter, 1) != 1) perror("write");
        else if (i % 512 != 0) i += 511 - i % 512, lseek(file, i + 1 < bytes ? i + 1 : bytes, SEEK_SET);
    }
    if (ftruncate(file, bytes) != 0) perror("ftruncate");
    return file;
}

static char *map(int file, int pages, int rights) {
    char *at = mmap(NULL, pages * PAGE, rights, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) perror("mmap"), exit(1);
    return at;
}

static void coherence(void) {
    char text[64] = {0};
    int file = new_file("coherence", 3 * PAGE);
    char *one = map(file, 3, PROT_READ | PROT_WRITE), *two = map(file, 3, PROT_READ);
    printf("%c%c%c\n", one[0], one[PAGE], two[2 * PAGE]);
    strcpy(one + PAGE - 3, "across");
    pread(file, text, 6, PAGE - 3);
    printf("read %s, other map %.6s\n", text, two + PAGE - 3);
    pwrite(file, "written", 7, 2 * PAGE - 4);
    printf("maps %.7s %.7s\n", one + 2 * PAGE - 4, two + 2 * PAGE - 4);
    char *private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, PAGE);
    private[100] = 'p';
    printf("private %.3s, shared %d\n", private, one[PAGE + 100]);
    /* From and into mappings of the same file. */
    pwrite(file, one + PAGE - 3, 6, 200);
    pread(file, one + 300, 6, PAGE - 3);
    printf("self %.6s %.6s\n", two + 200, two + 300);
    int other = open("other", O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(other, "sent", 4);
    off_t from = 0;
    lseek(file, 500, SEEK_SET);
    printf("sendfile %zd", sendfile(file, other, &from, 4));
    printf(" %.4s\n", two + 500);
    lseek(file, 0, SEEK_END);
    write(file, "end", 3);
    printf("size %ld\n", (long)lseek(file, 0, SEEK_END));
    munmap(one, 3 * PAGE), munmap(two, 3 * PAGE);
    pread(file, text, 6, 300);
    printf("after munmap %s\n", text);
    close(other), close(file);
}

static void processes(void) {
    char text[64] = {0};
    int file = new_file("processes", 2 * PAGE);
    char *at = map(file, 2, PROT_READ | PROT_WRITE);
    close(file);
    int ends[2], back[2];
    pipe(ends), pipe(back);
    if (fork() == 0) {
        read(ends[0], text, 1);
        printf("child sees %.6s\n", at);
        fflush(stdout);
        strcpy(at + PAGE, "child");
        write(back[1], "x", 1);
        /* A map of its own, by name, which ends with it. */
        file = open("processes", O_RDWR);
        strcpy(map(file, 2, PROT_READ | PROT_WRITE) + 100, "gone");
        _exit(0);
    }
    strcpy(at, "parent");
    write(ends[1], "x", 1);
    read(back[0], text, 1);
    printf("parent sees %s\n", at + PAGE);
    wait(NULL);
    printf("after exit %s\n", at + 100);
    munmap(at, 2 * PAGE);
    file = open("processes", O_RDONLY);
    pread(file, text, 6, 0), printf("file %s", text);
    pread(file, text, 6, PAGE), printf(" %s", text);
    pread(file, text, 5, 100), printf(" %s\n", text);
    close(file);
}

static void ends(void) {
    char text[8] = {0};
    int file = new_file("ends", PAGE + 100);
    char *at = map(file, 4, PROT_READ | PROT_WRITE);
    printf("behind the end %d %s", at[PAGE + 100], touch(at + 2 * PAGE, 0));
    printf(" %s\n", touch(at + 3 * PAGE, 1));
    ftruncate(file, 3 * PAGE);
    printf("longer %d %s\n", at[PAGE + 200], touch(at + 2 * PAGE, 1));
    pread(file, text, 1, 2 * PAGE), printf("file %s\n", text);
    at[10] = 'k', at[1000] = 'l';
    ftruncate(file, 100);
    printf("shorter %c %d %s %s\n", at[10], at[1000], touch(at + PAGE, 0), touch(at + 2 * PAGE, 1));
    ftruncate(file, 2 * PAGE);
    printf("longer %c %d %d %s\n", at[10], at[1000], at[PAGE], touch(at + 2 * PAGE, 0));
    pwrite(file, "far", 3, 3 * PAGE);
    printf("hole %d far %s\n", at[2 * PAGE], at + 3 * PAGE);
    close(open("ends", O_WRONLY | O_TRUNC));
    printf("empty %s\n", touch(at, 0));
    printf("read into nothing: %zd", pread(file, text, 8, 0));
    ftruncate(file, PAGE);
    int null = open("/dev/zero", O_RDONLY);
    printf(" %s\n", why(read(null, at + 2 * PAGE, 4)));
    munmap(at, 4 * PAGE), close(file), close(null);
}

static void rights(void) {
    close(new_file("rights", PAGE));
    int reader = open("rights", O_RDONLY), writer = open("rights", O_WRONLY), both = open("rights", O_RDWR);
    printf("reader %s\n", error_of(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0)));
    printf("writer %s\n", error_of(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, writer, 0)));
    char *private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader, 0);
    printf("private %s\n", error_of(private));
    char *readable = map(reader, 1, PROT_READ), *later = map(both, 1, PROT_READ);
    printf("rights %s", why(mprotect(readable, PAGE, PROT_READ | PROT_WRITE)));
    printf(", not yet %s", touch(later, 1));
    printf(", later %s", why(mprotect(later, PAGE, PROT_READ | PROT_WRITE)));
    printf(" %s", touch(later, 1));
    printf(" %c\n", *readable);
    printf("taken %s", why(mprotect(later, PAGE, PROT_READ)));
    printf(" %s", touch(later, 1));
    printf(" given %s", why(mprotect(later, PAGE, PROT_READ | PROT_WRITE)));
    printf(" %s\n", touch(later, 1));
    printf("msync %s", why(msync(later, PAGE, MS_SYNC)));
    printf(", %s", why(msync(later, PAGE, MS_ASYNC)));
    printf(", %s", why(msync(later, PAGE, MS_SYNC | MS_ASYNC)));
    munmap(later, PAGE);
    printf(", %s", why(msync(later, PAGE, MS_SYNC)));
    printf(", %s\n", why(msync(readable + 1, PAGE, MS_SYNC)));
    munmap(readable, PAGE), munmap(private, PAGE), close(reader), close(writer), close(both);
}

static void nameless(void) {
    int file = new_file("nameless", 2 * PAGE);
    char *at = map(file, 2, PROT_READ | PROT_WRITE);
    unlink("nameless");
    close(file);
    strcpy(at + PAGE, "still here");
    printf("nameless %s\n", at + PAGE);
    munmap(at, 2 * PAGE);
    /* Executed after it was made by a mapping. */
    int busy = open("/bin/true", O_RDONLY), program = open("true", O_RDWR | O_CREAT | O_TRUNC, 0700);
    off_t bytes = lseek(busy, 0, SEEK_END);
    ftruncate(program, bytes);
    char *from = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, busy, 0);
    char *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, program, 0);
    memcpy(to, from, bytes);
    munmap(to, bytes);
    close(program);
    printf("program %d\n", system("./true"));
}

int main(int count, char **arguments) {
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGBUS, &action, NULL), sigaction(SIGSEGV, &action, NULL);
    if (count < 2 || chdir(arguments[1]) != 0) return perror("chdir"), 1;
    coherence(), fflush(stdout);
    processes(), fflush(stdout);
    ends(), rights(), nameless();
    return 0;
}
