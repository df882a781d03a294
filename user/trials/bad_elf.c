/* bad_elf: programs that are cut, changed or random are refused or die; nobody else notices.
 * usage: bad_elf PROGRAM COUNT [SEED]. Makes COUNT variants of PROGRAM in /tmp, runs each, and tells how they ended. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIANT "/tmp/variant"

static uint64_t random_state;

static uint64_t random_number(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull;
}

static size_t load(const char *path, unsigned char **data)
{
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status) != 0 || (*data = malloc(status.st_size)) == NULL ||
        read(file, *data, status.st_size) != status.st_size) {
        perror(path);
        exit(1);
    }
    close(file);
    return status.st_size;
}

/* Changes the copy; most changes hit the headers, where they matter. → new size. */
static size_t change(unsigned char *data, size_t size)
{
    size_t headers = size < 1024 ? size : 1024;
    uint64_t number = random_number();
    switch (number % 4) {
    case 0:
        return (number >> 8) % (number & 64 ? headers : size);
    case 1:
        for (size_t i = 0; i < 512 && i < size; i++)
            data[i] = random_number();
        if (number & 64)
            memcpy(data, "\177ELF\2\1\1", 7);
        return size;
    default:
        for (uint64_t flips = 1 + (number >> 8) % 8; flips > 0; flips--)
            data[random_number() % (number & 64 ? headers : size)] ^= 1 << random_number() % 8;
        return size;
    }
}

static void store(const unsigned char *data, size_t size)
{
    unlink(VARIANT);
    int file = open(VARIANT, O_CREAT | O_WRONLY, 0755);
    if (file < 0 || write(file, data, size) != (ssize_t)size) {
        perror(VARIANT);
        exit(1);
    }
    close(file);
}

/* Runs the variant, for a second at most. → wait status. */
static int run(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct itimerval second = {{0, 0}, {1, 0}};
        setitimer(ITIMER_REAL, &second, NULL);
        int nowhere = open("/dev/null", O_RDWR);
        dup2(nowhere, 0);
        dup2(nowhere, 1);
        dup2(nowhere, 2);
        execl(VARIANT, "true", (char *)NULL);
        _exit(errno == ENOEXEC ? 126 : 127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("bad_elf");
        exit(1);
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bad_elf PROGRAM COUNT [SEED]\n");
        return 2;
    }
    unsigned char *original;
    size_t size = load(argv[1], &original);
    unsigned char *copy = malloc(size);
    int count = atoi(argv[2]), refused = 0, killed = 0, ended = 0;
    random_state = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
    for (int i = 0; i < count; i++) {
        memcpy(copy, original, size);
        store(copy, change(copy, size));
        int status = run();
        if (WIFSIGNALED(status))
            killed++;
        else if (WEXITSTATUS(status) == 126)
            refused++;
        else
            ended++;
    }
    unlink(VARIANT);
    fprintf(stderr, "%d variants: %d refused, %d killed, %d ended by themselves\n", count, refused, killed, ended);
    return refused == 0;
}
