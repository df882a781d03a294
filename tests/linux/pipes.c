/* pipe, pipe2, FIFOs: data, ends, sizes, SIGPIPE, atomic writes. It is long because it is a list. */
#include "behaviour.h"
#include <sys/socket.h>

static int in, out;
static void new_pipe(int flags) {
    int ends[2];
    must(pipe2(ends, flags));
    in = ends[0];
    out = ends[1];
}

/* Writes until there is no room left, and returns how much went in. The pipe does not wait. */
static long fill(size_t piece) {
    static char bytes[1 << 17];
    long sum = 0;
    for (long written; (written = write(out, bytes, piece)) > 0;)
        sum += written;
    return sum;
}

static short events(int fd) {
    struct pollfd asked = {.fd = fd, .events = POLLIN | POLLOUT};
    poll(&asked, 1, 0);
    return asked.revents;
}

BEHAVIOUR("pipe makes two descriptors, the reading one first") {
    int ends[2];
    show(pipe(ends));
    note("%d %d", ends[0], ends[1]);
    note("%o %o", fcntl(ends[0], F_GETFL), fcntl(ends[1], F_GETFL));
}
BEHAVIOUR("pipe with bad memory makes no descriptors") {
    show(pipe(bad()));
    show(open("/dev/null", O_RDONLY));
}
BEHAVIOUR("pipe2 with unknown flags") {
    int ends[2];
    show(pipe2(ends, O_APPEND));
    show(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    note("%d %o", fcntl(ends[0], F_GETFD), fcntl(ends[1], F_GETFL));
}
BEHAVIOUR("pipe with one descriptor left") {
    int ends[2] = {7, 7};
    struct rlimit few = {4, 4};
    setrlimit(RLIMIT_NOFILE, &few);
    show(pipe(ends));
    note("%d %d", ends[0], ends[1]);
    show(open("/dev/null", O_RDONLY));
}
BEHAVIOUR("the reading end cannot be written, the writing end not read") {
    char byte;
    new_pipe(0);
    show(write(in, "", 1));
    show(read(out, &byte, 1));
}
BEHAVIOUR("bytes come out in the order in which they went in") {
    new_pipe(0);
    write(out, "abc", 3);
    write(out, "def", 3);
    show_read(in, 4);
    show_read(in, 4);
}
BEHAVIOUR("read of an empty pipe without waiting") {
    new_pipe(O_NONBLOCK);
    show_read(in, 1);
}
BEHAVIOUR("read of length 0 of an empty pipe does not wait") {
    char byte;
    new_pipe(0);
    show(read(in, &byte, 0));
}
BEHAVIOUR("read without writers is the end, what is in the pipe comes before") {
    new_pipe(0);
    write(out, "last", 4);
    close(out);
    show_read(in, 9);
    show_read(in, 9);
}
BEHAVIOUR("a child that has the writing end open keeps the pipe from ending") {
    struct gate gate = new_gate();
    new_pipe(O_NONBLOCK);
    pid_t child = fork();
    if (child == 0) {
        pass_gate(gate);
        _exit(0);
    }
    close(out);
    show_read(in, 1);
    open_gate(gate);
    wait_for(child);
    show_read(in, 1);
}
BEHAVIOUR("write without readers is EPIPE and SIGPIPE") {
    new_pipe(0);
    handle(SIGPIPE, 0);
    close(in);
    show(write(out, "x", 1));
    note("signals %d", handled);
}
BEHAVIOUR("SIGPIPE kills who does not expect it") {
    new_pipe(0);
    close(in);
    IN_CHILD { write(out, "x", 1); }
}
BEHAVIOUR("write of nothing without readers") {
    new_pipe(0);
    close(in);
    show(write(out, "", 0));
}
BEHAVIOUR("a pipe holds 65536 bytes") {
    new_pipe(O_NONBLOCK);
    show(fill(4096));
    show(write(out, "x", 1));
}
BEHAVIOUR("a write up to PIPE_BUF goes in whole or not at all") {
    static char bytes[PIPE_BUF];
    new_pipe(O_NONBLOCK);
    fill(4096);
    show(read(in, bytes, 100));
    show(write(out, bytes, PIPE_BUF));
    show(read(in, bytes, PIPE_BUF - 100));
    show(write(out, bytes, PIPE_BUF));
}
BEHAVIOUR("a write above PIPE_BUF goes in as far as there is room") {
    static char bytes[2 * PIPE_BUF];
    new_pipe(O_NONBLOCK);
    fill(4096);
    read(in, bytes, PIPE_BUF);
    show(write(out, bytes, 2 * PIPE_BUF));
}
BEHAVIOUR("a waiting write of more than the pipe holds ends when all is in") {
    static char bytes[200000];
    new_pipe(0);
    pid_t child = fork();
    if (child == 0) {
        show(write(out, bytes, sizeof bytes));
        _exit(0);
    }
    close(out);
    long sum = 0;
    for (long length; (length = read(in, bytes, 50000)) > 0;)
        sum += length;
    wait_for(child);
    show(sum);
}
BEHAVIOUR("a waiting writer is told when the last reader goes") {
    new_pipe(0);
    fcntl(out, F_SETFL, O_NONBLOCK);
    fill(4096);
    fcntl(out, F_SETFL, 0);
    pid_t child = fork();
    if (child == 0) {
        close(in);
        handle(SIGPIPE, 0);
        show(write(out, "x", 1));
        note("signals %d", handled);
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    close(in);
    wait_for(child);
}
BEHAVIOUR("a waiting write that is interrupted returns what is in already") {
    static char bytes[100000];
    new_pipe(0);
    pid_t child = fork();
    if (child == 0) {
        handle(SIGUSR1, 0);
        show(write(out, bytes, sizeof bytes));
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    wait_for(child);
}
BEHAVIOUR("a waiting read is interrupted, or restarted with SA_RESTART") {
    new_pipe(0);
    for (int restart = 0; restart <= 1; restart++) {
        pid_t child = fork();
        if (child == 0) {
            handle(SIGUSR1, restart ? SA_RESTART : 0);
            show_read(in, 1);
            note("signals %d", handled);
            _exit(0);
        }
        sleep_ms(20);
        wait_until_asleep(child);
        kill(child, SIGUSR1);
        if (restart) {
            sleep_ms(20);
            write(out, "x", 1);
        }
        wait_for(child);
    }
}
BEHAVIOUR("read into bad memory keeps the bytes in the pipe") {
    new_pipe(0);
    write(out, "text", 4);
    show(read(in, bad(), 4));
    show_read(in, 4);
}
BEHAVIOUR("write from bad memory puts nothing into the pipe") {
    new_pipe(O_NONBLOCK);
    show(write(out, bad(), 4));
    show_read(in, 4);
}
BEHAVIOUR("FIONREAD of a pipe counts the bytes in it") {
    int count = -1;
    new_pipe(0);
    write(out, "text", 4);
    show(ioctl(in, FIONREAD, &count));
    note("%d", count);
}
BEHAVIOUR("poll of a pipe: empty, with bytes, full, at its end, without readers") {
    char byte;
    new_pipe(O_NONBLOCK);
    note("%x %x", events(in), events(out));
    write(out, "x", 1);
    note("%x %x", events(in), events(out));
    read(in, &byte, 1);
    fill(4096);
    note("%x", events(out));
    int copy = dup(out);
    close(in);
    note("%x", events(copy));
    new_pipe(0);
    close(out);
    note("%x", events(in));
}
BEHAVIOUR("a full pipe is writable again when there is room for PIPE_BUF") {
    static char bytes[PIPE_BUF];
    new_pipe(O_NONBLOCK);
    fill(4096);
    read(in, bytes, PIPE_BUF - 1);
    note("%x", events(out));
    read(in, bytes, 1);
    note("%x", events(out));
}
BEHAVIOUR("F_GETPIPE_SZ and F_SETPIPE_SZ") {
    new_pipe(0);
    show(fcntl(in, F_GETPIPE_SZ));
    show(fcntl(in, F_SETPIPE_SZ, 1));
    show(fcntl(out, F_GETPIPE_SZ));
    show(fcntl(in, F_SETPIPE_SZ, 5000));
    show(fcntl(in, F_SETPIPE_SZ, 1 << 20));
    show(fcntl(in, F_SETPIPE_SZ, 0));
    show(fcntl(0, F_GETPIPE_SZ));
}
BEHAVIOUR("F_SETPIPE_SZ below what is in the pipe") {
    new_pipe(O_NONBLOCK);
    fill(4096);
    show(fcntl(in, F_SETPIPE_SZ, 4096));
}
BEHAVIOUR("F_SETPIPE_SZ beyond the most, by a user") {
    AS(USER) {
        new_pipe(0);
        show(fcntl(in, F_SETPIPE_SZ, 1 << 21));
    }
}
BEHAVIOUR("pipes through /proc/self/fd are opened again, with another access mode") {
    char path[32];
    new_pipe(0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", in);
    int other = open(path, O_WRONLY);
    show(other);
    write(other, "text", 4);
    show_read(in, 4);
}
BEHAVIOUR("mkfifo of existing and impossible names") {
    make("f", "");
    show(mkfifo("f", 0600));
    show(mkfifo("none/p", 0600));
    show(mkfifo("p", 0600));
    show(mkfifo("p", 0600));
    show_mode("p");
}
BEHAVIOUR("opening a FIFO for writing without waiting needs a reader") {
    mkfifo("p", 0600);
    show(open("p", O_WRONLY | O_NONBLOCK));
    int reader = open("p", O_RDONLY | O_NONBLOCK);
    show(reader);
    show(open("p", O_WRONLY | O_NONBLOCK));
}
BEHAVIOUR("opening a FIFO for both does not wait") {
    mkfifo("p", 0600);
    int both = open("p", O_RDWR);
    write(both, "text", 4);
    show_read(both, 4);
}
BEHAVIOUR("reader and writer of a FIFO wait for each other") {
    mkfifo("p", 0600);
    pid_t child = fork();
    if (child == 0) {
        int writer = open("p", O_WRONLY);
        write(writer, "text", 4);
        _exit(0);
    }
    int reader = open("p", O_RDONLY);
    show_read(reader, 4);
    wait_for(child);
    show_read(reader, 4);
}
BEHAVIOUR("an open of a FIFO that waits is interrupted") {
    mkfifo("p", 0600);
    pid_t child = fork();
    if (child == 0) {
        handle(SIGUSR1, 0);
        show(open("p", O_RDONLY));
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    wait_for(child);
}
BEHAVIOUR("bytes in a FIFO are gone when nobody has it open") {
    mkfifo("p", 0600);
    int both = open("p", O_RDWR);
    write(both, "text", 4);
    close(both);
    show_read(open("p", O_RDONLY | O_NONBLOCK), 4);
}
BEHAVIOUR("a FIFO without writers: the end, without a wait, before the first and after the last") {
    mkfifo("p", 0600);
    int reader = open("p", O_RDONLY | O_NONBLOCK);
    show_read(reader, 4);
    int writer = open("p", O_WRONLY);
    show_read(reader, 4);
    close(writer);
    show_read(reader, 4);
}
BEHAVIOUR("poll of a FIFO: POLLHUP after the last writer, not before the first") {
    mkfifo("p", 0600);
    int reader = open("p", O_RDONLY | O_NONBLOCK);
    note("%x", events(reader));
    int writer = open("p", O_WRONLY);
    note("%x", events(reader));
    close(writer);
    note("%x", events(reader));
    writer = open("p", O_WRONLY);
    note("%x", events(reader));
}
BEHAVIOUR("opening a FIFO without permission") {
    mkfifo("p", 0600);
    AS(USER) {
        show(open("p", O_RDONLY | O_NONBLOCK));
        show(open("p", O_RDWR));
    }
}
BEHAVIOUR("size and times of a FIFO") {
    struct stat at;
    mkfifo("p", 0600);
    int both = open("p", O_RDWR);
    write(both, "text", 4);
    fstat(both, &at);
    note("%ld", (long)at.st_size);
}
BEHAVIOUR("a packet pipe keeps the pieces apart") {
    new_pipe(O_DIRECT | O_NONBLOCK);
    write(out, "abc", 3);
    write(out, "def", 3);
    show_read(in, 9);
    show_read(in, 2);
    show_read(in, 9);
}
BEHAVIOUR("a packet pipe: read of length 0, write of length 0") {
    new_pipe(O_DIRECT | O_NONBLOCK);
    show(write(out, "", 0));
    show_read(in, 9);
    write(out, "abc", 3);
    char byte;
    show(read(in, &byte, 0));
    show_read(in, 9);
}
BEHAVIOUR("a packet pipe: what a short read leaves of a packet is dropped") {
    new_pipe(O_DIRECT | O_NONBLOCK);
    write(out, "abcdef", 6);
    write(out, "ghi", 3);
    show_read(in, 2);
    show_read(in, 2);
    show_read(in, 2);
}
BEHAVIOUR("a packet pipe: a write of more than PIPE_BUF is several packets") {
    static char bytes[10000];
    new_pipe(O_DIRECT | O_NONBLOCK);
    show(write(out, bytes, sizeof bytes));
    for (int i = 0; i < 4; i++)
        show(read(in, bytes, sizeof bytes));
}
BEHAVIOUR("a packet pipe: pieces of writev are one packet, readv takes one packet") {
    char a[2], b[9];
    struct iovec pieces[] = {{"ab", 2}, {"", 0}, {"cde", 3}}, room[] = {{a, sizeof a}, {b, sizeof b}};
    new_pipe(O_DIRECT | O_NONBLOCK);
    show(writev(out, pieces, 3));
    show(write(out, "f", 1));
    show(readv(in, room, 2));
    show_bytes(b, 3);
    show(readv(in, room, 2));
}
BEHAVIOUR("a packet pipe has room for as many packets as pages") {
    new_pipe(O_DIRECT | O_NONBLOCK);
    int packets = 0;
    while (write(out, "x", 1) == 1)
        packets++;
    note("%d %s", packets, strerrorname_np(errno));
    note("%x", events(out));
    show_read(in, 9);
    note("%x", events(out));
    show(write(out, "y", 1));
    show(write(out, "z", 1));
}
BEHAVIOUR("a packet pipe of another size") {
    new_pipe(O_DIRECT | O_NONBLOCK);
    show(fcntl(out, F_SETPIPE_SZ, 4 * 4096));
    int packets = 0;
    while (write(out, "x", 1) == 1)
        packets++;
    note("%d", packets);
    show(fcntl(out, F_SETPIPE_SZ, 4096));
    show(fcntl(out, F_SETPIPE_SZ, 8 * 4096));
    show(write(out, "y", 1));
}
BEHAVIOUR("a packet pipe: FIONREAD counts all packets") {
    int bytes;
    new_pipe(O_DIRECT | O_NONBLOCK);
    write(out, "abc", 3);
    write(out, "de", 2);
    ioctl(in, FIONREAD, &bytes);
    note("%d", bytes);
}
BEHAVIOUR("a packet pipe: a reader that waits gets one packet") {
    new_pipe(O_DIRECT);
    struct gate ready = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        open_gate(ready);
        show_read(in, 2);
        show_read(in, 9);
        show_read(in, 9);
        _exit(0);
    }
    pass_gate(ready);
    wait_until_asleep(child);
    write(out, "abc", 3);
    write(out, "def", 3);
    write(out, "ghi", 3);
    wait_for(child);
}
BEHAVIOUR("a packet pipe: a writer that waits writes all of its packets") {
    static char bytes[20 * 4096];
    new_pipe(O_DIRECT);
    pid_t child = must(fork());
    if (child == 0) {
        show(write(out, bytes, sizeof bytes));
        _exit(0);
    }
    close(out);
    wait_until_asleep(child);
    long sum = 0;
    int packets = 0;
    for (ssize_t length; (length = read(in, bytes, sizeof bytes)) > 0; packets++)
        sum += length;
    wait_for(child);
    note("%ld %d", sum, packets);
}
BEHAVIOUR("F_SETFL O_DIRECT makes packets of what is written from then on") {
    new_pipe(O_NONBLOCK);
    show(fcntl(out, F_SETFL, O_NONBLOCK | O_DIRECT));
    note("%d", !!(fcntl(out, F_GETFL) & O_DIRECT));
    write(out, "ab", 2);
    write(out, "cd", 2);
    show(fcntl(out, F_SETFL, O_NONBLOCK));
    write(out, "ef", 2);
    write(out, "gh", 2);
    for (int i = 0; i < 4; i++)
        show_read(in, 9);
}
BEHAVIOUR("a packet pipe without readers") {
    new_pipe(O_DIRECT);
    close(in);
    signal(SIGPIPE, SIG_IGN);
    show(write(out, "x", 1));
}
BEHAVIOUR("a packet pipe: packets come before the end") {
    new_pipe(O_DIRECT);
    write(out, "ab", 2);
    write(out, "cd", 2);
    close(out);
    show_read(in, 9);
    show_read(in, 9);
    show_read(in, 9);
}
BEHAVIOUR("a packet pipe: bad memory of the writer, of the reader") {
    new_pipe(O_DIRECT | O_NONBLOCK);
    show(write(out, bad(), 3));
    show_read(in, 9);
    write(out, "abc", 3);
    show(read(in, bad(), 9));
    show_read(in, 9);
}
BEHAVIOUR("F_SETFL O_DIRECT of a socket") {
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    show(fcntl(ends[0], F_SETFL, O_DIRECT));
    show(fcntl(must(open("/dev/null", O_RDWR)), F_SETFL, O_DIRECT));
}
BEHAVIOUR("two writers of up to PIPE_BUF do not mix their bytes") {
    static char bytes[PIPE_BUF];
    new_pipe(0);
    for (int writer = 0; writer < 2; writer++)
        if (fork() == 0) {
            memset(bytes, 'a' + writer, sizeof bytes);
            for (int i = 0; i < 50; i++)
                must(write(out, bytes, sizeof bytes));
            _exit(0);
        }
    close(out);
    int mixed = 0, whole = 0;
    for (;;) {
        size_t length = 0;
        for (ssize_t more; length < sizeof bytes && (more = read(in, bytes + length, sizeof bytes - length)) > 0;)
            length += more;
        if (length == 0)
            break;
        whole++;
        for (size_t i = 1; i < length; i++)
            mixed += bytes[i] != bytes[0];
    }
    note("%d pieces, %d mixed", whole, mixed);
}
