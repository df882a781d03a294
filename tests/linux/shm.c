/* System V shared memory: segments, attaching, permissions, removal. */
#include "behaviour.h"
#include <sys/ipc.h>
#include <sys/shm.h>

#define PAGE 4096L

/* A segment that goes with its last attachment, or with remove_owned. */
static int owned[16], owned_count;
static void remove_owned(void) {
    for (int i = 0; i < owned_count; i++)
        shmctl(owned[i], IPC_RMID, NULL);
}

static int new_segment(size_t bytes, int mode) {
    int segment = must(shmget(IPC_PRIVATE, bytes, IPC_CREAT | mode));
    owned[owned_count++] = segment;
    return segment;
}

/* A behaviour whose segments are removed at its end. */
#define BEHAVIOUR_OF_SHM(title)                     \
    static void JOIN(body_, __LINE__)(void);        \
    BEHAVIOUR(title) {                              \
        JOIN(body_, __LINE__)();                    \
        remove_owned();                             \
    }                                               \
    static void JOIN(body_, __LINE__)(void)

static char *attach(int segment, int flags) { return show_address(shmat(segment, NULL, flags)); }

static void show_about(int segment) {
    struct shmid_ds about;
    if (shmctl(segment, IPC_STAT, &about) < 0)
        show(-1);
    else
        note("%ld bytes, %lu attached, mode %o", (long)about.shm_segsz, (unsigned long)about.shm_nattch, about.shm_perm.mode);
}

BEHAVIOUR_OF_SHM("shmget with bad sizes, of a key that does not exist, of one that does") {
    show(shmget(IPC_PRIVATE, 0, IPC_CREAT | 0600));
    show(shmget(0x5ca1ab30, PAGE, 0600));
    int segment = must(shmget(0x5ca1ab30, 100, IPC_CREAT | IPC_EXCL | 0600));
    owned[owned_count++] = segment;
    show(shmget(0x5ca1ab30, 100, IPC_CREAT | IPC_EXCL | 0600));
    show(shmget(0x5ca1ab30, 101, 0600));
    note("%d", shmget(0x5ca1ab30, 0, 0) == segment);
    AS(USER) { show(shmget(0x5ca1ab30, 0, 0400)); }
}
BEHAVIOUR_OF_SHM("shmat of a segment that does not exist, at bad addresses, with unknown flags") {
    int segment = new_segment(PAGE, 0600);
    attach(0x7fffff, 0);
    show_address(shmat(segment, (void *)(0x10000000 + 5), 0));
    note("%d", shmat(segment, (void *)(0x10000000 + 5), SHM_RND) == (void *)0x10000000);
    show_address(shmat(segment, NULL, SHM_REMAP));
}
BEHAVIOUR_OF_SHM("shmat without permission") {
    int segment = new_segment(PAGE, 0640), open_to_all = new_segment(PAGE, 0444);
    AS(USER) {
        attach(segment, 0);
        attach(segment, SHM_RDONLY);
        attach(open_to_all, 0);
        attach(open_to_all, SHM_RDONLY);
    }
}
BEHAVIOUR_OF_SHM("a new segment is zero, and shared by all who attach it") {
    char *at = attach(new_segment(PAGE, 0600), 0);
    note("%d", at[100]);
    IN_CHILD { at[100] = 'x'; }
    note("%c", at[100]);
}
BEHAVIOUR_OF_SHM("two attachments in one process are the same memory") {
    int segment = new_segment(PAGE, 0600);
    char *one = attach(segment, 0), *two = attach(segment, 0);
    one[0] = 'x';
    note("%d %c", one != two, two[0]);
}
BEHAVIOUR_OF_SHM("SHM_RDONLY memory cannot be written") {
    volatile char *at = attach(new_segment(PAGE, 0600), SHM_RDONLY);
    IN_CHILD { at[0] = 1; }
}
BEHAVIOUR_OF_SHM("shmdt of what is not attached") {
    char *at = attach(new_segment(PAGE, 0600), 0);
    show(shmdt(bad()));
    show(shmdt(at + PAGE));
    show(shmdt(at));
    show(shmdt(at));
}
BEHAVIOUR_OF_SHM("fork attaches, exit and shmdt detach: the count") {
    int segment = new_segment(PAGE, 0600);
    char *at = attach(segment, 0);
    IN_CHILD { show_about(segment); }
    show_about(segment);
    shmdt(at);
    show_about(segment);
}
BEHAVIOUR_OF_SHM("a removed segment lives until the last detaches, without its key") {
    int segment = must(shmget(0x5ca1ab31, PAGE, IPC_CREAT | 0600));
    char *at = attach(segment, 0);
    show(shmctl(segment, IPC_RMID, NULL));
    at[0] = 'x';
    show_about(segment);
    show(shmget(0x5ca1ab31, PAGE, 0600));
    attach(segment, 0);
    show(shmdt(at));
}
BEHAVIOUR_OF_SHM("a removed segment that nobody has attached is gone at once") {
    int segment = must(shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600));
    show(shmctl(segment, IPC_RMID, NULL));
    show_about(segment);
    show(shmctl(segment, IPC_RMID, NULL));
}
BEHAVIOUR_OF_SHM("shmctl with unknown commands, bad memory, of nothing, by another user") {
    struct shmid_ds about;
    int segment = new_segment(PAGE, 0600);
    show(shmctl(segment, 7777, &about));
    show(shmctl(segment, IPC_STAT, bad()));
    show(shmctl(0x7fffff, IPC_STAT, &about));
    AS(USER) {
        show(shmctl(segment, IPC_STAT, &about));
        show(shmctl(segment, IPC_RMID, NULL));
        show(shmctl(segment, IPC_SET, &about));
    }
}
BEHAVIOUR_OF_SHM("IPC_STAT: size as asked for, creator and last user") {
    struct shmid_ds about;
    int segment = new_segment(100, 0640);
    show(shmctl(segment, IPC_STAT, &about));
    note("%ld %d %d", (long)about.shm_segsz, about.shm_cpid == getpid(), about.shm_lpid);
    shmat(segment, NULL, 0);
    shmctl(segment, IPC_STAT, &about);
    note("%d", about.shm_lpid == getpid());
}
BEHAVIOUR_OF_SHM("IPC_SET changes owner and permissions") {
    struct shmid_ds about;
    int segment = new_segment(PAGE, 0600);
    shmctl(segment, IPC_STAT, &about);
    about.shm_perm.mode = 0444;
    about.shm_perm.uid = USER;
    show(shmctl(segment, IPC_SET, &about));
    show_about(segment);
    AS(USER) { show(shmctl(segment, IPC_RMID, NULL)); }
}
BEHAVIOUR_OF_SHM("munmap of an attachment detaches") {
    int segment = new_segment(PAGE, 0600);
    char *at = attach(segment, 0);
    show(munmap(at, PAGE));
    show_about(segment);
}
BEHAVIOUR_OF_SHM("execve detaches") {
    int segment = new_segment(PAGE, 0600);
    char *words[] = {"sh", "-c", "exit 0", NULL};
    attach(segment, 0);
    pid_t child = fork();
    if (child == 0)
        execve("/bin/sh", words, NULL);
    wait_for(child);
    show_about(segment);
}
BEHAVIOUR_OF_SHM("memory behind the last whole page of a segment") {
    char *at = attach(new_segment(PAGE + 1, 0600), 0);
    at[2 * PAGE - 1] = 'x';
    note("%c", at[2 * PAGE - 1]);
}
