/* Files that two processes map shared, store to and read, by calls too. */
#include "behaviour.h"
#include <linux/futex.h>

#define PAGE 4096L
#define PAGES 3
#define ROUNDS 4

/* Each kind of file that can be mapped: on the disk, in memory, without a name. */
static int file_of_kind(int kind) {
    int fd = must(kind == 0 ? open("f", O_CREAT | O_RDWR | O_TRUNC, 0666)
                  : kind == 1 ? open("/dev/shm/behaviour.f", O_CREAT | O_RDWR | O_TRUNC, 0666) : memfd_create("f", 0));
    if (kind == 1)
        must(unlink("/dev/shm/behaviour.f"));
    must(ftruncate(fd, PAGES * PAGE));
    for (int page = 0; page < PAGES; page++)
        must(pwrite(fd, "file", 4, page * PAGE));
    return fd;
}
#define EACH_KIND(fd) for (int kind_ = 0, fd; kind_ < 3 && (fd = file_of_kind(kind_)) >= 0; close(fd), kind_++)

static char *map(int fd, int rights) {
    char *at = mmap(NULL, PAGES * PAGE, rights, MAP_SHARED, fd, 0);
    must(at == MAP_FAILED ? -1 : 0);
    return at;
}
static char *writable(int fd) { return map(fd, PROT_READ | PROT_WRITE); }

static void show_at(int fd, long offset, size_t length) {
    char text[64];
    show_bytes(text, pread(fd, text, length, offset));
}

/* Two processes that take turns: the child's body runs when the parent says go, and says done. */
struct turns {
    struct gate go, done;
};
static struct turns new_turns(void) { return (struct turns){new_gate(), new_gate()}; }
static void let(struct turns turns) {
    open_gate(turns.go);
    pass_gate(turns.done);
}

BEHAVIOUR("what two processes store in turn, the other sees, and so do calls") {
    EACH_KIND(fd) {
        struct turns turns = new_turns();
        char *at = writable(fd);
        pid_t child = fork();
        if (child == 0) {
            char *own = writable(fd);
            for (int round = 0; round < ROUNDS; round++) {
                pass_gate(turns.go);
                show_bytes(own + round % PAGES * PAGE, 4);
                show_at(fd, round % PAGES * PAGE, 4);
                memset(own + (round + 1) % PAGES * PAGE, 'a' + round, 2);
                open_gate(turns.done);
            }
            _exit(0);
        }
        for (int round = 0; round < ROUNDS; round++) {
            memset(at + round % PAGES * PAGE, 'A' + round, 3);
            let(turns);
            show_bytes(at + (round + 1) % PAGES * PAGE, 4);
            show_at(fd, (round + 1) % PAGES * PAGE, 4);
        }
        wait_for(child);
        munmap(at, PAGES * PAGE);
        show_at(fd, PAGE, 4);
    }
}
BEHAVIOUR("what one process writes by calls is in the mapping of the other") {
    EACH_KIND(fd) {
        struct turns turns = new_turns();
        char *at = writable(fd);
        pid_t child = fork();
        if (child == 0) {
            for (int round = 0; round < ROUNDS; round++) {
                char text[16];
                pass_gate(turns.go);
                snprintf(text, sizeof text, "round %d", round);
                must(pwrite(fd, text, 7, round % PAGES * PAGE + PAGE - 4));
                open_gate(turns.done);
            }
            _exit(0);
        }
        for (int round = 0; round < ROUNDS; round++) {
            let(turns);
            show_bytes(at + round % PAGES * PAGE + PAGE - 4, round % PAGES == PAGES - 1 ? 4 : 7);
            at[round % PAGES * PAGE + PAGE - 3] = '!';
            show_at(fd, round % PAGES * PAGE + PAGE - 4, 7);
        }
        wait_for(child);
        show(size_of(fd));
    }
}
BEHAVIOUR("stores of two processes to one page are both kept, through msync and the end of one") {
    EACH_KIND(fd) {
        struct turns turns = new_turns();
        char *at = writable(fd);
        pid_t child = fork();
        if (child == 0) {
            pass_gate(turns.go);
            at[1] = 'c';
            show(msync(at, PAGE, MS_SYNC));
            at[3] = 'c';
            _exit(0);
        }
        at[0] = 'p';
        open_gate(turns.go);
        wait_for(child);
        at[2] = 'p';
        show(msync(at, PAGES * PAGE, MS_SYNC));
        show_at(fd, 0, 4);
        munmap(at, PAGES * PAGE);
        show_at(fd, 0, 4);
    }
}
BEHAVIOUR("two processes that store at once to all pages lose nothing, while one reads the file") {
    enum { STORES = 64 };
    EACH_KIND(fd) {
        pid_t child = fork();
        int second = child == 0, wrong = 0;
        char *at = writable(fd), byte;
        for (int i = 0; i < PAGES * STORES; i++) {
            long offset = i % PAGES * PAGE + i / PAGES * 2 + second + 100;
            at[offset] = 'A' + i % 26 + 32 * second;
            if (i % 8 == 0)
                wrong += pread(fd, &byte, 1, offset) != 1 || byte != at[offset];
        }
        if (child == 0)
            _exit(wrong);
        wait_for(child);
        note("%d", wrong);
        for (int i = 0; i < PAGES * STORES; i++) {
            char pair[2];
            must(pread(fd, pair, 2, i % PAGES * PAGE + i / PAGES * 2 + 100));
            wrong += pair[0] != 'A' + i % 26 || pair[1] != 'a' + i % 26;
        }
        note("%d", wrong);
    }
}
BEHAVIOUR("two processes count in one word of a file") {
    enum { EACH = 500 };
    EACH_KIND(fd) {
        unsigned *at = (unsigned *)writable(fd), count;
        *at = 0;
        pid_t child = fork();
        for (int i = 0; i < EACH; i++)
            __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST);
        if (child == 0)
            _exit(0);
        wait_for(child);
        must(pread(fd, &count, sizeof count, 0));
        note("%u %u", *at, count);
    }
}
BEHAVIOUR("a futex in a file wakes the process that waits in a mapping of its own") {
    EACH_KIND(fd) {
        unsigned *at = (unsigned *)writable(fd);
        *at = 0;
        pid_t child = fork();
        if (child == 0) {
            unsigned *own = (unsigned *)writable(fd);
            while (__atomic_load_n(own, __ATOMIC_SEQ_CST) == 0)
                syscall(SYS_futex, own, FUTEX_WAIT, 0, NULL, NULL, 0);
            note("%u", *own);
            _exit(0);
        }
        wait_until_asleep(child);
        __atomic_store_n(at, 7, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, at, FUTEX_WAKE, 1, NULL, NULL, 0);
        wait_for(child);
    }
}
BEHAVIOUR("a file that one process truncates ends in the mapping of the other, and grows with zeros") {
    EACH_KIND(fd) {
        struct turns turns = new_turns();
        char *at = writable(fd);
        at[PAGE + 100] = 'x';
        at[2 * PAGE] = 'y';
        pid_t child = fork();
        if (child == 0) {
            pass_gate(turns.go);
            show(ftruncate(fd, PAGE + 50));
            open_gate(turns.done);
            pass_gate(turns.go);
            show(ftruncate(fd, PAGES * PAGE));
            at[2 * PAGE + 1] = 'z';
            open_gate(turns.done);
            _exit(0);
        }
        let(turns);
        show_bytes(at + PAGE, 4);
        IN_CHILD { at[2 * PAGE] = 1; }
        let(turns);
        show_bytes(at + PAGE + 98, 4);
        show_bytes(at + 2 * PAGE, 4);
        show_at(fd, 2 * PAGE, 4);
        wait_for(child);
    }
}
BEHAVIOUR("a file that one process makes longer is longer in the mapping of the other") {
    EACH_KIND(fd) {
        must(ftruncate(fd, PAGE));
        struct turns turns = new_turns();
        char *at = writable(fd);
        pid_t child = fork();
        if (child == 0) {
            pass_gate(turns.go);
            show(pwrite(fd, "more", 4, PAGE + 10));
            open_gate(turns.done);
            _exit(0);
        }
        let(turns);
        show_bytes(at + PAGE + 8, 8);
        at[PAGE + 8] = 's';
        at[PAGE + 20] = 's';
        show_at(fd, PAGE + 8, 16);
        wait_for(child);
    }
}
BEHAVIOUR("a private mapping shows what another process stores until it is written to") {
    EACH_KIND(fd) {
        struct turns turns = new_turns();
        char *own = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        pid_t child = fork();
        if (child == 0) {
            char *at = writable(fd);
            for (char letter = 'a'; letter < 'c'; letter++) {
                pass_gate(turns.go);
                at[1] = at[PAGE + 1] = letter;
                open_gate(turns.done);
            }
            _exit(0);
        }
        let(turns);
        show_bytes(own, 4);
        own[0] = 'P';
        let(turns);
        show_bytes(own, 4);
        show_bytes(own + PAGE, 4);
        show_at(fd, 0, 4);
        wait_for(child);
    }
}
BEHAVIOUR("what is stored after the file's descriptor and name are gone is there for the other process") {
    struct turns turns = new_turns();
    make("f", "file");
    pid_t child = fork();
    if (child == 0) {
        int fd = must(open("f", O_RDWR));
        char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        open_gate(turns.done);
        pass_gate(turns.go);
        at[0] = 'F';
        open_gate(turns.done);
        pass_gate(turns.go);
        show_bytes(at, 4);
        _exit(0);
    }
    int fd = must(open("f", O_RDWR));
    pass_gate(turns.done);
    must(unlink("f"));
    let(turns);
    show_at(fd, 0, 8);
    must(pwrite(fd, "L", 1, 1));
    open_gate(turns.go);
    wait_for(child);
    show_at(fd, 0, 8);
}
BEHAVIOUR("what a process stored that is killed is in the file") {
    EACH_KIND(fd) {
        struct gate stored = new_gate();
        pid_t child = fork();
        if (child == 0) {
            char *at = writable(fd);
            at[0] = at[2 * PAGE] = 'K';
            open_gate(stored);
            pause();
        }
        pass_gate(stored);
        kill(child, SIGKILL);
        wait_for(child);
        show_at(fd, 0, 4);
        show_at(fd, 2 * PAGE, 4);
        show_bytes(map(fd, PROT_READ), 4);
    }
}
