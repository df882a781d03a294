/* POSIX shared memory and named semaphores between processes, by glibc: prints the same on Linux and on Skink. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *why(long result) { return result < 0 ? strerror(errno) : "done"; }

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_barrier_t barrier;
    int turn, count;
};

static void play(struct shared *shared, int mine) {
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&shared->mutex);
        while (shared->turn != mine) pthread_cond_wait(&shared->condition, &shared->mutex);
        shared->turn = 1 - mine;
        shared->count++;
        pthread_cond_broadcast(&shared->condition);
        pthread_mutex_unlock(&shared->mutex);
    }
    pthread_barrier_wait(&shared->barrier);
}

static struct shared *attach(int flags) {
    int file = shm_open("/named-test", flags, 0600);
    if (file < 0) return NULL;
    if (flags & O_CREAT && ftruncate(file, sizeof(struct shared)) != 0) perror("ftruncate");
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return shared;
}

static void memory(void) {
    struct shared *shared = attach(O_RDWR | O_CREAT | O_EXCL);
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    pthread_barrierattr_t barrier;
    pthread_mutexattr_init(&mutex), pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
    pthread_condattr_init(&condition), pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_init(&barrier), pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &mutex);
    pthread_cond_init(&shared->condition, &condition);
    pthread_barrier_init(&shared->barrier, &barrier, 2);
    printf("again %s\n", attach(O_RDWR | O_CREAT | O_EXCL) ? "made" : strerror(errno));
    if (fork() == 0) {
        /* Not the inherited mapping: one of its own, by name. */
        struct shared *own = attach(O_RDWR);
        munmap(shared, sizeof *shared);
        play(own, 1);
        pthread_mutex_lock(&own->mutex);
        _exit(0);
    }
    play(shared, 0);
    wait(NULL);
    printf("count %d\n", shared->count);
    int locked = pthread_mutex_lock(&shared->mutex);
    printf("lock %s\n", strerror(locked));
    printf("consistent %d\n", pthread_mutex_consistent(&shared->mutex));
    pthread_mutex_unlock(&shared->mutex);
    printf("unlink %s", why(shm_unlink("/named-test")));
    printf(", %s\n", why(shm_unlink("/named-test")));
    printf("still %d\n", shared->count);
}

static void semaphores(void) {
    sem_unlink("/one-test"), sem_unlink("/two-test");
    printf("none %s\n", sem_open("/one-test", 0) == SEM_FAILED ? strerror(errno) : "open");
    sem_t *one = sem_open("/one-test", O_CREAT | O_EXCL, 0600, 0), *two = sem_open("/two-test", O_CREAT, 0600, 2);
    printf("again %s\n", sem_open("/one-test", O_CREAT | O_EXCL, 0600, 0) == SEM_FAILED ? strerror(errno) : "open");
    printf("same %d\n", sem_open("/one-test", 0) == one);
    if (fork() == 0) {
        sem_t *own = sem_open("/one-test", 0);
        for (int i = 0; i < 100; i++) sem_wait(two), sem_post(own);
        sem_close(own);
        _exit(0);
    }
    for (int i = 0; i < 100; i++) sem_wait(one), sem_post(two);
    wait(NULL);
    int value;
    sem_getvalue(two, &value), printf("two %d", value);
    sem_getvalue(one, &value), printf(" one %d\n", value);
    struct timespec past = {1, 0};
    printf("try %s", why(sem_trywait(one)));
    printf(", timed %s\n", why(sem_timedwait(one, &past)));
    printf("close %d %d unlink %d %d\n", sem_close(one), sem_close(two), sem_unlink("/one-test"), sem_unlink("/two-test"));
    printf("gone %s\n", sem_open("/one-test", 0) == SEM_FAILED ? strerror(errno) : "open");
}

static void nameless(void) {
    char path[64], text[64] = {0};
    struct stat status;
    int file = memfd_create("test", MFD_CLOEXEC);
    printf("memfd %s", why(ftruncate(file, 8192)));
    fstat(file, &status);
    printf(" %ld bytes, %ld links, mode %o", (long)status.st_size, (long)status.st_nlink, status.st_mode);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    readlink(path, text, sizeof text);
    printf(" %s\n", text);
    fflush(stdout);
    char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (fork() == 0) {
        strcpy(at + 5000, "by the child");
        _exit(0);
    }
    wait(NULL);
    printf("memfd %s\n", at + 5000);
    pread(file, text, 12, 5000);
    printf("read %.12s\n", text);
    printf("flags %s\n", why(memfd_create("x", 64)));
}

int main(void) {
    struct statfs system;
    struct stat folder;
    statfs("/dev/shm", &system), stat("/dev/shm", &folder);
    printf("%lx %o\n", (long)system.f_type, folder.st_mode);
    fflush(stdout), memory();
    fflush(stdout), semaphores();
    nameless();
    return 0;
}
