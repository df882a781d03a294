/* readers: users read and change files of theirs at random, and compare all that they read with what they have written.
 *
 * usage: readers USERS FILES STEPS
 *
 * Prints for each user that found something else where, and how many did not.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_USER = 1000, MOST = 3 * 4096 };

/* What a file is to hold. */
struct file {
    unsigned size;
    unsigned char *bytes;
};

static struct file *files;
static uint64_t state;

static unsigned below(unsigned end)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned)((state * 0x2545f4914f6cdd1d) >> 40) % end;
}

static void fill(unsigned char *at, unsigned bytes)
{
    for (unsigned each = 0; each < bytes; each++)
        at[each] = (unsigned char)below(256);
}

static void fail(const char *what, unsigned number)
{
    printf("user %u: %s of file %u\n", getuid(), what, number);
    exit(1);
}

static int open_file(unsigned number, int flags)
{
    char name[16];
    snprintf(name, sizeof name, "%u", number);
    int file = open(name, flags, 0600);
    if (file < 0)
        fail("open", number);
    return file;
}

static void write_at(int file, unsigned number, unsigned position, unsigned bytes)
{
    if (pwrite(file, files[number].bytes + position, bytes, position) != (ssize_t)bytes)
        fail("write", number);
}

/* A new file in place of one, as editors do. */
static void replace(unsigned number)
{
    char name[16];
    int file = open("new", O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (file < 0)
        fail("creation", number);
    files[number].size = below(MOST);
    memset(files[number].bytes, 0, MOST);
    fill(files[number].bytes, files[number].size);
    write_at(file, number, 0, files[number].size);
    close(file);
    snprintf(name, sizeof name, "%u", number);
    if (rename("new", name) != 0)
        fail("rename", number);
}

static void compare(int file, unsigned number)
{
    static unsigned char found[MOST];
    struct file *expected = &files[number];
    unsigned position = below(2) ? 0 : below(MOST), bytes = below(2) ? MOST : below(MOST);
    unsigned left = expected->size > position ? expected->size - position : 0;
    unsigned most = bytes < left ? bytes : left;
    if (most > MOST - position)
        most = MOST - position;
    if (pread(file, found, bytes, position) != (ssize_t)most)
        fail("length", number);
    if (memcmp(found, expected->bytes + position, most) != 0)
        fail("content", number);
}

static void compare_mapped(int file, unsigned number)
{
    unsigned size = files[number].size;
    if (size == 0)
        return;
    void *mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED)
        fail("map", number);
    if (memcmp(mapped, files[number].bytes, size) != 0)
        fail("mapped content", number);
    munmap(mapped, size);
}

static void change(int file, unsigned number)
{
    struct file *to = &files[number];
    unsigned position = below(MOST), bytes = 1 + below(MOST - position);
    fill(to->bytes + position, bytes);
    write_at(file, number, position, bytes);
    if (to->size < position + bytes)
        to->size = position + bytes;
}

static void truncate_it(int file, unsigned number)
{
    unsigned size = below(MOST);
    if (ftruncate(file, size) != 0)
        fail("truncation", number);
    memset(files[number].bytes + size, 0, MOST - size);
    files[number].size = size;
}

static void step(unsigned count)
{
    unsigned number = below(count), what = below(20);
    if (what == 0)
        return replace(number);
    int file = open_file(number, O_RDWR);
    if (what == 1)
        truncate_it(file, number);
    else if (what < 5)
        change(file, number);
    else if (what == 5)
        compare_mapped(file, number);
    else
        compare(file, number);
    close(file);
}

/* What one user does. */
static int run(unsigned user, unsigned count, unsigned steps)
{
    char folder[32];
    state = 88172645463325252 + user;
    snprintf(folder, sizeof folder, "/home/readers.%u", user);
    if (mkdir(folder, 0700) != 0 || chown(folder, user, user) != 0 || setgid(user) != 0 || setuid(user) != 0 || chdir(folder) != 0)
        return 1;
    files = calloc(count, sizeof *files);
    for (unsigned number = 0; number < count; number++) {
        files[number].bytes = malloc(MOST);
        replace(number);
    }
    while (steps-- > 0)
        step(count);
    for (unsigned number = 0; number < count; number++) {
        int file = open_file(number, O_RDONLY);
        compare(file, number);
        close(file);
    }
    return 0;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    unsigned users = (unsigned)atoi(words[1]), good = 0;
    mkdir("/home", 0755);
    for (unsigned user = 0; user < users; user++) {
        if (fork() == 0)
            return run(FIRST_USER + user, (unsigned)atoi(words[2]), (unsigned)atoi(words[3]));
    }
    int status;
    while (wait(&status) > 0)
        good += status == 0;
    printf("%u of %u users found what they had written\n", good, users);
    return good != users;
}
