/* Asynchronous I/O as Linux itself has it: contexts, what io_submit refuses, what events tell, waiting. The file is long because the calls
 * refuse and report so much of their own. */
#include "behaviour.h"
#include <linux/aio_abi.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define DATA 77

static long setup(unsigned requests, aio_context_t *context) { return syscall(SYS_io_setup, requests, context); }
static long destroy(aio_context_t context) { return syscall(SYS_io_destroy, context); }
static long submit(aio_context_t context, long count, struct iocb **requests) {
    return syscall(SYS_io_submit, context, count, requests);
}
static long get(aio_context_t context, long least, long most, void *events, void *timeout) {
    return syscall(SYS_io_getevents, context, least, most, events, timeout);
}

static const struct timespec now = {0, 0};

static aio_context_t new_context(unsigned requests) {
    aio_context_t context = 0;
    must(setup(requests, &context));
    return context;
}

static struct iocb request(int fd, int opcode, const void *buffer, size_t length, long long offset) {
    return (struct iocb){.aio_data = DATA,
                         .aio_fildes = fd,
                         .aio_lio_opcode = opcode,
                         .aio_buf = (uintptr_t)buffer,
                         .aio_nbytes = length,
                         .aio_offset = offset};
}

/* Shows what an event tells. */
static void show_event(const struct io_event *event) {
    if (event->res < 0)
        note("%s", strerrorname_np(-event->res));
    else
        note("%lld", (long long)event->res);
}

/* Submits one request: shows the error, or what its event tells. */
static void try_in(aio_context_t context, struct iocb request) {
    struct iocb *pointer = &request;
    struct io_event event;
    long submitted = submit(context, 1, &pointer);
    if (submitted != 1) {
        note("(%s)", submitted == 0 ? "0" : strerrorname_np(errno));
        return;
    }
    must(get(context, 1, 1, &event, NULL));
    show_event(&event);
    if (event.data != request.aio_data || event.obj != (uintptr_t)pointer || event.res2 != 0)
        note("?");
}

static void try(struct iocb request) {
    aio_context_t context = new_context(4);
    try_in(context, request);
    destroy(context);
}

static int file(void) {
    make("f", "0123456789");
    return must(open("f", O_RDWR));
}

BEHAVIOUR("io_setup of no requests, of too many, with an id in place, and to bad memory") {
    aio_context_t context = 0;
    show(setup(0, &context));
    show(setup(0x800001, &context));
    show(setup(65537, &context));
    show(setup(1, bad()));
    show(setup(1, read_only()));
    context = 1;
    show(setup(1, &context));
    show(context);
}
BEHAVIOUR("an id is the address of memory, which ends with the context") {
    aio_context_t context = new_context(1);
    volatile unsigned *ring = (void *)context;
    note("%d %d", context % 4096 == 0, ring[0] != ~0U);
    show(destroy(context));
    show(msync((void *)context, 4096, MS_ASYNC));
    show(destroy(context));
}
BEHAVIOUR("calls with ids of no context") {
    struct io_event event;
    aio_context_t context = new_context(1);
    struct iocb one = request(0, IOCB_CMD_PREAD, &event, 1, 0);
    show(destroy(0));
    show(destroy(context + 4096 * 16));
    show(submit(0, 0, NULL));
    show(submit(8, 1, NULL));
    show(get(0, 0, 1, &event, NULL));
    show(syscall(SYS_io_cancel, 0, &one, &event));
}
BEHAVIOUR("io_submit of a negative count, of none, and of bad pointers") {
    aio_context_t context = new_context(4);
    struct iocb *requests[] = {NULL};
    show(submit(context, -1, requests));
    show(submit(context, 0, bad()));
    show(submit(context, 1, bad()));
    show(submit(context, 1, requests));
    requests[0] = bad();
    show(submit(context, 1, requests));
}
BEHAVIOUR("a request in memory that cannot be written to") {
    int fd = file();
    char text[4];
    aio_context_t context = new_context(4);
    struct iocb *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *place = request(fd, IOCB_CMD_PREAD, text, 4, 0);
    place->aio_key = 5;
    show(submit(context, 1, &place));
    show(place->aio_key);
    must(mprotect(place, 4096, PROT_READ));
    show(submit(context, 1, &place));
}
BEHAVIOUR("requests of unknown kinds, and with a reserved field") {
    char text[4];
    static const int kinds[] = {4, IOCB_CMD_NOOP, 9, 60};
    int fd = file();
    for (int i = 0; i < 4; i++)
        try(request(fd, kinds[i], text, 4, 0));
    struct iocb reserved = request(fd, IOCB_CMD_PREAD, text, 4, 0);
    reserved.aio_reserved2 = 1;
    try(reserved);
    try(request(99, 60, text, 4, 0));
}
BEHAVIOUR("descriptors that are not open, or not for this") {
    char text[4] = "abc";
    int fd = file(), writes = must(open("f", O_WRONLY)), reads = must(open("f", O_RDONLY)), path = must(open("f", O_PATH));
    (void)fd;
    try(request(99, IOCB_CMD_PREAD, text, 4, 0));
    try(request(writes, IOCB_CMD_PREAD, text, 4, 0));
    try(request(reads, IOCB_CMD_PWRITE, text, 4, 0));
    try(request(path, IOCB_CMD_PREAD, text, 4, 0));
    try(request(path, IOCB_CMD_FSYNC, NULL, 0, 0));
    try(request(reads, IOCB_CMD_FSYNC, NULL, 0, 0));
}
BEHAVIOUR("buffers that are bad memory: an error of the event; a vector that is: of the call") {
    int fd = file();
    try(request(fd, IOCB_CMD_PREAD, bad(), 4, 0));
    try(request(fd, IOCB_CMD_PWRITE, bad(), 4, 0));
    try(request(fd, IOCB_CMD_PREAD, (void *)0xffff800000000000, 4, 0));
    try(request(fd, IOCB_CMD_PREADV, bad(), 2, 0));
    struct iovec none[1];
    try(request(fd, IOCB_CMD_PREADV, none, 1025, 0));
    try(request(fd, IOCB_CMD_PREADV, none, 0, 0));
}
BEHAVIOUR("negative offsets and lengths") {
    char text[4];
    int fd = file();
    try(request(fd, IOCB_CMD_PREAD, text, 4, -1));
    try(request(fd, IOCB_CMD_PWRITE, text, 4, -5));
    try(request(fd, IOCB_CMD_PREAD, text, -1, 0));
    try(request(fd, IOCB_CMD_PREAD, text, 0, 0));
}
BEHAVIOUR("reads and writes, of one buffer or of several") {
    char text[16] = "", more[16] = "";
    int fd = file();
    struct iovec both[2] = {{text, 3}, {more, 4}};
    try(request(fd, IOCB_CMD_PREAD, text, 4, 2));
    show_bytes(text, 4);
    try(request(fd, IOCB_CMD_PREAD, text, 4, 100));
    try(request(fd, IOCB_CMD_PWRITE, "AB", 2, 1));
    try(request(fd, IOCB_CMD_PREADV, both, 2, 0));
    show_bytes(text, 3);
    show_bytes(more, 4);
    try(request(fd, IOCB_CMD_PWRITEV, both, 2, 8));
    show_file("f");
    show(lseek(fd, 0, SEEK_CUR));
}
BEHAVIOUR("a write to a file that is open for appending goes to its end") {
    (void)file();
    int fd = must(open("f", O_RDWR | O_APPEND));
    try(request(fd, IOCB_CMD_PWRITE, "ab", 2, 0));
    try(request(fd, IOCB_CMD_PWRITE, "cd", 2, 0));
    show_file("f");
}
BEHAVIOUR("fsync and fdatasync, whose other fields are 0") {
    int fd = file(), directory = must(open(".", O_RDONLY));
    int pipes[2];
    must(pipe(pipes));
    try(request(fd, IOCB_CMD_FSYNC, NULL, 0, 0));
    try(request(fd, IOCB_CMD_FDSYNC, NULL, 0, 0));
    try(request(directory, IOCB_CMD_FSYNC, NULL, 0, 0));
    try(request(fd, IOCB_CMD_FSYNC, &fd, 0, 0));
    try(request(fd, IOCB_CMD_FSYNC, NULL, 1, 0));
    try(request(fd, IOCB_CMD_FSYNC, NULL, 0, 1));
    try(request(pipes[0], IOCB_CMD_FSYNC, NULL, 0, 0));
    try(request(0, IOCB_CMD_FDSYNC, NULL, 0, 0));
}
BEHAVIOUR("flags of preadv2 and pwritev2") {
    char text[4];
    int fd = file();
    static const int flags[] = {1, 2, 4, 16, 0x100000};
    for (int i = 0; i < 5; i++) {
        struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0);
        one.aio_rw_flags = flags[i];
        try(one);
    }
    struct iocb append = request(fd, IOCB_CMD_PWRITE, "ab", 2, 0);
    append.aio_rw_flags = 16;
    try(append);
    show_file("f");
}
BEHAVIOUR("priorities, which count with their flag alone") {
    char text[4];
    int fd = file();
    static const int priorities[] = {2 << 13 | 4, 3 << 13, 0, 1, 7 << 13 | 4, 1 << 13 | 1};
    for (int i = 0; i < 6; i++) {
        struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0);
        one.aio_reqprio = priorities[i];
        try(one);
        one.aio_flags = IOCB_FLAG_IOPRIO;
        try(one);
    }
    AS(USER) {
        struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0);
        one.aio_flags = IOCB_FLAG_IOPRIO;
        one.aio_reqprio = 1 << 13 | 1;
        try(one);
    }
}
BEHAVIOUR("an eventfd is told of each completion, and of nothing that was not submitted") {
    char text[4];
    uint64_t count = 0;
    int fd = file(), counter = must(eventfd(0, EFD_NONBLOCK));
    struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0);
    one.aio_flags = IOCB_FLAG_RESFD;
    one.aio_resfd = counter;
    try(one);
    try(one);
    one.aio_buf = 8;
    try(one);
    one.aio_fildes = 99;
    try(one);
    show(read(counter, &count, 8));
    show(count);
    show(read(counter, &count, 8));
    one.aio_resfd = fd;
    one.aio_fildes = fd;
    try(one);
    one.aio_resfd = 99;
    try(one);
}
BEHAVIOUR("pipes, whatever the offset") {
    char text[16] = "";
    int pipes[2];
    must(pipe(pipes));
    try(request(pipes[1], IOCB_CMD_PWRITE, "abc", 3, 0));
    try(request(pipes[1], IOCB_CMD_PWRITE, "de", 2, 7));
    try(request(pipes[0], IOCB_CMD_PREAD, text, 16, 5));
    show_bytes(text, 5);
    fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    try(request(pipes[0], IOCB_CMD_PREAD, text, 16, 0));
}
BEHAVIOUR("sockets, at offset 0 alone") {
    char text[16] = "";
    int both[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, both));
    try(request(both[0], IOCB_CMD_PWRITE, "abc", 3, 0));
    try(request(both[0], IOCB_CMD_PWRITE, "abc", 3, 9));
    try(request(both[1], IOCB_CMD_PREAD, text, 16, 0));
    show_bytes(text, 3);
}
BEHAVIOUR("directories, epolls and eventfds") {
    char text[16];
    try(request(must(open(".", O_RDONLY)), IOCB_CMD_PREAD, text, 8, 0));
    try(request(must(syscall(SYS_epoll_create1, 0)), IOCB_CMD_PREAD, text, 8, 0));
    try(request(must(eventfd(3, 0)), IOCB_CMD_PREAD, text, 8, 0));
    try(request(must(eventfd(0, EFD_NONBLOCK)), IOCB_CMD_PREAD, text, 8, 0));
}
BEHAVIOUR("devices") {
    char text[4] = "abc";
    int zero = must(open("/dev/zero", O_RDWR));
    try(request(0, IOCB_CMD_PREAD, text, 4, 0));
    try(request(0, IOCB_CMD_PWRITE, text, 4, 0));
    try(request(zero, IOCB_CMD_PREAD, text, 4, 0));
    show_bytes(text, 4);
}
BEHAVIOUR("a write to a pipe without readers") {
    int pipes[2];
    must(pipe(pipes));
    close(pipes[0]);
    signal(SIGPIPE, SIG_IGN);
    try(request(pipes[1], IOCB_CMD_PWRITE, "x", 1, 0));
    handle(SIGPIPE, 0);
    try(request(pipes[1], IOCB_CMD_PWRITE, "x", 1, 0));
    show(handled);
}
BEHAVIOUR("requests behind a bad one are not submitted") {
    char text[4];
    int fd = file();
    aio_context_t context = new_context(8);
    struct iocb good = request(fd, IOCB_CMD_PREAD, text, 4, 0), wrong = request(99, IOCB_CMD_PREAD, text, 4, 0);
    struct iocb *requests[] = {&good, &good, &wrong, &good};
    struct io_event events[8];
    show(submit(context, 4, requests));
    show(get(context, 0, 8, events, (void *)&now));
    show(submit(context, 2, requests + 2));
    show(get(context, 0, 8, events, (void *)&now));
}
BEHAVIOUR("a context takes as many requests as it was made for, and has an end") {
    char text[4];
    int fd = file(), submitted = 0;
    aio_context_t context = new_context(8);
    struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0), *pointer = &one;
    struct io_event events[8];
    while (submitted < 100000 && submit(context, 1, &pointer) == 1)
        submitted++;
    note("%s", strerrorname_np(errno));
    note("%d", submitted >= 8);
    show(get(context, 8, 8, events, NULL));
    show(submit(context, 1, &pointer));
}
BEHAVIOUR("events come in the order of completion, and each once") {
    char text[4];
    int fd = file();
    aio_context_t context = new_context(8);
    struct iocb requests[3], *pointers[3];
    struct io_event events[8];
    for (int i = 0; i < 3; i++) {
        requests[i] = request(fd, IOCB_CMD_PREAD, text, i + 1, 0);
        pointers[i] = requests + i;
    }
    show(submit(context, 3, pointers));
    show(get(context, 1, 2, events, NULL));
    show_event(events);
    show_event(events + 1);
    show(get(context, 1, 8, events, NULL));
    show_event(events);
    show(get(context, 0, 8, events, NULL));
}
BEHAVIOUR("io_getevents with impossible numbers, and with bad memory") {
    char text[4];
    int fd = file();
    aio_context_t context = new_context(8);
    struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0), *pointers[] = {&one, &one};
    struct io_event events[8];
    show(get(context, 2, 1, events, (void *)&now));
    show(get(context, -1, 1, events, (void *)&now));
    show(get(context, 0, -1, events, (void *)&now));
    show(get(context, 0, 0, events, NULL));
    show(get(context, 1, 1, events, bad()));
    show(get(0, 1, 1, events, bad()));
    must(submit(context, 2, pointers));
    show(get(context, 1, 2, bad(), (void *)&now));
    show(get(context, 1, 2, edge(sizeof events[0]), (void *)&now));
    show(get(context, 0, 2, events, (void *)&now));
}
BEHAVIOUR("io_getevents waits for its time, and then gives what there is") {
    char text[4];
    int fd = file();
    aio_context_t context = new_context(8);
    struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0), *pointer = &one;
    struct io_event events[8];
    struct timespec soon = {0, 50000000}, odd = {0, 1000000000};
    long long began = now_ms();
    show(get(context, 1, 8, events, &soon));
    must(submit(context, 1, &pointer));
    show(get(context, 2, 8, events, &soon));
    note("%d", now_ms() - began >= 95);
    must(submit(context, 1, &pointer));
    show(get(context, 1, 8, events, &odd));
}

static aio_context_t shared;
static volatile int waits;
static struct io_event collected[8];
static void *collect(void *least) {
    waits = syscall(SYS_gettid);
    show(get(shared, (intptr_t)least, 8, collected, NULL));
    return NULL;
}
static void wait_until_collector_sleeps(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", waits);
    wait_until_stat_says_asleep(path);
}
static pthread_t start_collecting(intptr_t least) {
    pthread_t thread;
    waits = 0;
    pthread_create(&thread, NULL, collect, (void *)least);
    while (waits == 0)
        sleep_ms(1);
    wait_until_collector_sleeps();
    return thread;
}
BEHAVIOUR("io_getevents waits until there are enough") {
    char text[4];
    int fd = file();
    shared = new_context(8);
    struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0), *pointers[] = {&one, &one};
    pthread_t thread = start_collecting(3);
    show(submit(shared, 2, pointers));
    wait_until_collector_sleeps();
    note("more");
    show(submit(shared, 1, pointers));
    pthread_join(thread, NULL);
}
BEHAVIOUR("io_destroy ends a wait") {
    shared = new_context(8);
    pthread_t thread = start_collecting(1);
    must(destroy(shared));
    pthread_join(thread, NULL);
}
BEHAVIOUR("a signal ends a wait, and what has completed is given") {
    char text[4];
    int fd = file();
    struct io_event events[8];
    struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0), *pointer = &one;
    struct gate gate = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        aio_context_t context = new_context(8);
        handle(SIGUSR1, SA_RESTART);
        open_gate(gate);
        show(get(context, 1, 8, events, NULL));
        must(submit(context, 1, &pointer));
        open_gate(gate);
        show(get(context, 2, 8, events, NULL));
        show(handled);
        _exit(0);
    }
    for (int i = 0; i < 2; i++) {
        pass_gate(gate);
        wait_until_asleep(child);
        kill(child, SIGUSR1);
    }
    wait_for(child);
}
BEHAVIOUR("io_pgetevents waits with its own signal mask") {
    struct io_event events[8];
    sigset_t none = set_of(0);
    struct {
        const sigset_t *set;
        size_t bytes;
    } mask = {&none, 8}, wrong = {&none, 4};
    aio_context_t context = new_context(8);
    handle(SIGUSR1, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    show(syscall(SYS_io_pgetevents, context, 1, 8, events, NULL, bad()));
    show(syscall(SYS_io_pgetevents, context, 1, 8, events, NULL, &wrong));
    show(syscall(SYS_io_pgetevents, context, 1, 8, events, &now, NULL));
    show(handled);
    show(syscall(SYS_io_pgetevents, context, 1, 8, events, NULL, &mask));
    show(handled);
}
BEHAVIOUR("io_submit waits for a pipe, until somebody writes or a signal comes") {
    int pipes[2];
    must(pipe(pipes));
    struct gate gate = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        char text[8];
        handle(SIGUSR1, SA_RESTART);
        aio_context_t context = new_context(8);
        open_gate(gate);
        try_in(context, request(pipes[0], IOCB_CMD_PREAD, text, 8, 0));
        open_gate(gate);
        try_in(context, request(pipes[0], IOCB_CMD_PREAD, text, 8, 0));
        show(handled);
        _exit(0);
    }
    pass_gate(gate);
    wait_until_asleep(child);
    must(write(pipes[1], "abc", 3));
    pass_gate(gate);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    wait_for(child);
}
BEHAVIOUR("io_cancel of what has completed, with a wrong key, and of bad memory") {
    char text[4];
    int fd = file();
    aio_context_t context = new_context(8);
    struct iocb one = request(fd, IOCB_CMD_PREAD, text, 4, 0), *pointer = &one;
    struct io_event events[8];
    must(submit(context, 1, &pointer));
    show(syscall(SYS_io_cancel, context, &one, events));
    one.aio_key = 5;
    show(syscall(SYS_io_cancel, context, &one, events));
    show(syscall(SYS_io_cancel, context, bad(), events));
    show(get(context, 0, 8, events, (void *)&now));
}
BEHAVIOUR("a child has none of its parent's contexts, but their memory") {
    aio_context_t context = new_context(8);
    IN_CHILD {
        show(msync((void *)context, 4096, MS_ASYNC));
        show(submit(context, 0, NULL));
        show(destroy(context));
        aio_context_t own = new_context(8);
        show(submit(own, 0, NULL));
    }
    show(submit(context, 0, NULL));
}
BEHAVIOUR("a context works on when its memory is unmapped by munmap of what is beside it") {
    aio_context_t one = new_context(8), other = new_context(8);
    show(destroy(one));
    show(submit(other, 0, NULL));
    one = new_context(8);
    show(submit(one, 0, NULL));
    note("%d", one != other);
}

static long number_in(const char *path) {
    char text[64] = "";
    int fd = must(open(path, O_RDONLY));
    must(read(fd, text, sizeof text - 1));
    close(fd);
    return atol(text);
}
BEHAVIOUR("the numbers in /proc/sys/fs") {
    show(number_in("/proc/sys/fs/aio-max-nr"));
    long before = number_in("/proc/sys/fs/aio-nr");
    aio_context_t context = new_context(1000);
    show(number_in("/proc/sys/fs/aio-nr") - before);
    destroy(context);
}
BEHAVIOUR("contexts end with their process") {
    long before = number_in("/proc/sys/fs/aio-nr");
    IN_CHILD {
        new_context(1000);
        new_context(1000);
    }
    for (int i = 0; i < 1000 && number_in("/proc/sys/fs/aio-nr") != before; i++)
        sleep_ms(2);
    show(number_in("/proc/sys/fs/aio-nr") - before);
}
