/* System V shared memory: attaches and counts them, and prints what it sees: the same as on Linux.
 * usage: shared_memory [work]
 * With `work` several processes count in a segment that they attach and detach, and the counts and attaches are checked: for services that
 * die meanwhile. Otherwise it is started by the superuser. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, KEY = 0x5c1e, NOBODY = 65534 };

static const char *name_of(int error)
{
    return error ? strerrorname_np(error) : "ok";
}

static void say(const char *what, long result)
{
    printf("%s: %s\n", what, name_of(result == -1 ? errno : 0));
}

static struct shmid_ds status(int id)
{
    struct shmid_ds ds;
    memset(&ds, 0, sizeof ds);
    if (shmctl(id, IPC_STAT, &ds) < 0)
        printf("IPC_STAT: %s\n", name_of(errno));
    return ds;
}

static void attaches(const char *what, int id)
{
    printf("%s: %lu\n", what, (unsigned long) status(id).shm_nattch);
}

static char *attach(int id, void *at, int flags)
{
    char *memory = shmat(id, at, flags);
    if (memory == (void *) -1) {
        printf("shmat: %s\n", name_of(errno));
        exit(1);
    }
    return memory;
}

/* What a child's accesses come to: 0, or the signal. */
static int try_access(char *at, int write)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (write)
            *(volatile char *) at = 1;
        else
            (void) *(volatile char *) at;
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void making(void)
{
    puts("-- making");
    int id = shmget(KEY, 3 * PAGE + 5, IPC_CREAT | 0640);
    say("new", id);
    say("the same key, shorter", shmget(KEY, 10, 0) == id ? 0 : -1);
    say("longer", shmget(KEY, 4 * PAGE, 0));
    say("exclusive", shmget(KEY, 10, IPC_CREAT | IPC_EXCL));
    say("unknown key", shmget(KEY + 1, 10, 0));
    say("no length", shmget(KEY + 1, 0, IPC_CREAT | 0600));
    say("too long", shmget(KEY + 1, -1UL, IPC_CREAT | 0600));
    struct shmid_ds ds = status(id);
    printf("key %x mode %o size %zu uid %u cuid %u\n", ds.shm_perm.__key, ds.shm_perm.mode, ds.shm_segsz, ds.shm_perm.uid, ds.shm_perm.cuid);
    printf("attaches %lu, made by me %d, last %d, attached %ld, detached %ld\n", (unsigned long) ds.shm_nattch, ds.shm_cpid == getpid(), ds.shm_lpid, ds.shm_atime, ds.shm_dtime);
    printf("changed now %d\n", labs(time(NULL) - ds.shm_ctime) <= 5);
    say("remove", shmctl(id, IPC_RMID, NULL));
    say("again", shmctl(id, IPC_RMID, NULL));
    say("status", shmctl(id, IPC_STAT, &ds));
    say("attach", (long) shmat(id, NULL, 0));
    say("command", shmctl(id, 4711, &ds));
    int one = shmget(IPC_PRIVATE, 1, 0600), two = shmget(IPC_PRIVATE, 1, 0600);
    printf("private ones differ: %d\n", one != two);
    shmctl(one, IPC_RMID, NULL), shmctl(two, IPC_RMID, NULL);
}

static void addresses(void)
{
    puts("-- addresses");
    int id = shmget(IPC_PRIVATE, 3 * PAGE, 0600);
    char *free_range = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(free_range, 16 * PAGE);
    char *first = attach(id, NULL, 0);
    printf("zeros: %d\n", first[0] == 0 && first[3 * PAGE - 1] == 0);
    strcpy(first, "hello");
    char *second = attach(id, free_range + 4 * PAGE, 0);
    printf("where it was wanted: %d, the same memory: %s\n", second == free_range + 4 * PAGE, second);
    say("not a page", (long) shmat(id, free_range + 1, 0));
    char *third = attach(id, free_range + PAGE + 77, SHM_RND | SHM_RDONLY);
    printf("rounded down: %d\n", third == free_range + PAGE);
    say("in use", (long) shmat(id, free_range + PAGE, 0));
    say("in use at its end", (long) shmat(id, free_range + 2 * PAGE, 0));
    say("replace nothing", (long) shmat(id, NULL, SHM_REMAP));
    attaches("attaches", id);
    say("replace", shmat(id, free_range + PAGE, SHM_REMAP) == free_range + PAGE ? 0 : -1);
    attaches("attaches", id);
    say("beyond", (long) shmat(id, (void *) 0x7fffffffe000, 0));
    say("at the end", (long) shmat(id, (void *) -PAGE, 0));
    say("detach", shmdt(third));
    say("again", shmdt(third));
    say("detach within", shmdt(second + PAGE));
    say("detach not a page", shmdt(second + 1));
    say("detach other memory", shmdt((void *) (((long) &making) & -PAGE)));
    attaches("attaches", id);
    printf("still there: %s\n", first);
    shmdt(first), shmdt(second);
    attaches("attaches", id);
    shmctl(id, IPC_RMID, NULL);
}

static void rights_of_memory(void)
{
    puts("-- rights of memory");
    int id = shmget(IPC_PRIVATE, 2 * PAGE, 0600);
    char *read_only = attach(id, NULL, SHM_RDONLY), *both = attach(id, NULL, 0), *code = attach(id, NULL, SHM_EXEC);
    printf("read %d write %d\n", try_access(read_only, 0), try_access(read_only, 1));
    say("mprotect for writing", mprotect(read_only, PAGE, PROT_READ | PROT_WRITE));
    say("mprotect", mprotect(both, PAGE, PROT_READ));
    printf("write %d, second page %d\n", try_access(both, 1), try_access(both + PAGE, 1));
    code[0] = (char) 0xc3;
    ((void (*)(void)) code)();
    puts("executed");
    say("detach all of it", shmdt(both));
    shmdt(read_only), shmdt(code);
    attaches("attaches", id);
    shmctl(id, IPC_RMID, NULL);
}

static void counting(void)
{
    puts("-- counting");
    int id = shmget(IPC_PRIVATE, 8 * PAGE, 0600), ends[2], child_status;
    char *memory = attach(id, NULL, 0), byte;
    pipe(ends);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        read(ends[0], &byte, 1);
        strcpy(memory + PAGE, "from the child");
        _exit(0);
    }
    attaches("after fork", id);
    printf("last: me %d\n", status(id).shm_lpid == getpid());
    write(ends[1], "", 1);
    waitpid(child, &child_status, 0);
    attaches("after its end", id);
    printf("last: the child %d; %s\n", status(id).shm_lpid == child, memory + PAGE);
    if ((child = fork()) == 0) {
        execl("/proc/self/exe", "shared_memory", "nothing", NULL);
        _exit(1);
    }
    waitpid(child, &child_status, 0);
    printf("exec ended with %d\n", WEXITSTATUS(child_status));
    attaches("after exec", id);
    munmap(memory + 2 * PAGE, PAGE);
    attaches("a hole in it", id);
    munmap(memory + 3 * PAGE, PAGE);
    attaches("a larger hole", id);
    printf("moved: %d\n", mremap(memory, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory + 64 * PAGE) == memory + 64 * PAGE);
    attaches("after mremap", id);
    printf("content: %s\n", memory + 65 * PAGE);
    say("detach the rest", shmdt(memory));
    attaches("attaches", id);
    say("detach what was moved", shmdt(memory + 64 * PAGE));
    attaches("attaches", id);
    memory = attach(id, NULL, 0);
    char *grown = mremap(memory, 8 * PAGE, 10 * PAGE, MREMAP_MAYMOVE);
    printf("grown: %d, behind its end %d\n", grown != MAP_FAILED, try_access(grown + 9 * PAGE, 0));
    attaches("attaches", id);
    madvise(grown, 10 * PAGE, MADV_DONTFORK);
    child = fork();
    if (child == 0) {
        read(ends[0], &byte, 1);
        _exit(0);
    }
    attaches("not for children", id);
    write(ends[1], "", 1);
    waitpid(child, &child_status, 0);
    struct shmid_ds ds = status(id);
    printf("times %d\n", labs(time(NULL) - ds.shm_atime) <= 5 && labs(time(NULL) - ds.shm_dtime) <= 5);
    shmctl(id, IPC_RMID, NULL);
    shmdt(grown);
    close(ends[0]), close(ends[1]);
}

static void removal(void)
{
    puts("-- removal");
    struct shmid_ds ds;
    int id = shmget(KEY, PAGE, IPC_CREAT | 0600), child_status;
    char *memory = attach(id, NULL, 0);
    strcpy(memory, "kept");
    say("remove", shmctl(id, IPC_RMID, NULL));
    ds = status(id);
    printf("key %x mode %o attaches %lu\n", ds.shm_perm.__key, ds.shm_perm.mode, (unsigned long) ds.shm_nattch);
    say("its key", shmget(KEY, PAGE, 0));
    int other = shmget(KEY, PAGE, IPC_CREAT | 0600);
    printf("another: %d\n", other != id);
    char *again = attach(id, NULL, 0);
    printf("attached again: %s\n", again);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        pause();
    shmdt(memory), shmdt(again);
    attaches("the child's", id);
    kill(child, SIGKILL);
    waitpid(child, &child_status, 0);
    say("gone", shmctl(id, IPC_STAT, &ds));
    say("attach", (long) shmat(id, NULL, 0));
    say("remove", shmctl(id, IPC_RMID, NULL));
    say("the other", shmctl(other, IPC_RMID, NULL));
}

static void as_nobody(int id)
{
    struct shmid_ds ds;
    int found = 0;
    setgroups(0, NULL);
    setgid(NOBODY), setuid(NOBODY);
    say("status", shmctl(id, IPC_STAT, &ds));
    say("attach", (long) shmat(id, NULL, 0));
    say("read", (long) shmat(id, NULL, SHM_RDONLY));
    say("execute", (long) shmat(id, NULL, SHM_RDONLY | SHM_EXEC));
    say("get", shmget(KEY, 0, 0600));
    say("get to read", shmget(KEY, 0, 0));
    say("remove", shmctl(id, IPC_RMID, NULL));
    say("set", shmctl(id, IPC_SET, &ds));
    say("lock", shmctl(id, SHM_LOCK, NULL));
    int most = shmctl(0, SHM_INFO, (struct shmid_ds *) &(struct shm_info) { 0 });
    for (int at = 0; at <= most; at++)
        found += shmctl(at, SHM_STAT_ANY, &ds) == id;
    printf("found by SHM_STAT_ANY: %d\n", found);
}

static void rights(void)
{
    puts("-- rights");
    struct shmid_ds ds;
    static const int modes[] = { 0600, 0604, 0607, 0040 };
    for (int at = 0; at < 4; at++) {
        int id = shmget(KEY, PAGE, IPC_CREAT | modes[at]), child_status;
        printf("mode %o\n", modes[at]);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            as_nobody(id);
            exit(0);
        }
        waitpid(child, &child_status, 0);
        shmctl(id, IPC_RMID, NULL);
    }
    int id = shmget(IPC_PRIVATE, PAGE, 0), child_status;
    ds = status(id);
    ds.shm_perm.uid = NOBODY;
    ds.shm_perm.gid = 77;
    ds.shm_perm.mode = 01777600;
    say("give away", shmctl(id, IPC_SET, &ds));
    ds = status(id);
    printf("uid %u gid %u mode %o cuid %u\n", ds.shm_perm.uid, ds.shm_perm.gid, ds.shm_perm.mode, ds.shm_perm.cuid);
    say("lock", shmctl(id, SHM_LOCK, NULL));
    printf("mode %o\n", status(id).shm_perm.mode);
    say("unlock", shmctl(id, SHM_UNLOCK, NULL));
    printf("mode %o\n", status(id).shm_perm.mode);
    fflush(stdout);
    if (!fork()) {
        setuid(NOBODY);
        say("attach what is mine", (long) shmat(id, NULL, 0));
        say("remove what is mine", shmctl(id, IPC_RMID, NULL));
        exit(0);
    }
    wait(&child_status);
    say("status", shmctl(id, IPC_STAT, &ds));
    say("set", shmctl(id, IPC_SET, &ds));
    id = shmget(IPC_PRIVATE, PAGE, 0600);
    say("bad address", shmctl(id, IPC_STAT, (void *) 8));
    say("bad address", shmctl(id, IPC_SET, (void *) 8));
    shmctl(id, IPC_RMID, NULL);
}

static void information(void)
{
    puts("-- information");
    struct shminfo limits;
    struct shm_info used, before;
    shmctl(0, SHM_INFO, (struct shmid_ds *) &before);
    int id = shmget(IPC_PRIVATE, 5 * PAGE, 0600);
    char *memory = attach(id, NULL, 0);
    memory[0] = memory[2 * PAGE] = 1;
    int highest = shmctl(0, IPC_INFO, (struct shmid_ds *) &limits);
    printf("at least one: %d, shmmin %lu, shmmni %d\n", highest >= 0, limits.shmmin, limits.shmmni >= 128);
    printf("highest: %d\n", shmctl(0, SHM_INFO, (struct shmid_ds *) &used) == highest);
    printf("segments %d, pages %lu, resident %lu, swapped %lu\n", used.used_ids - before.used_ids, used.shm_tot - before.shm_tot, used.shm_rss - before.shm_rss, used.shm_swp);
    struct shmid_ds ds;
    int found = 0;
    for (int at = 0; at <= highest; at++)
        found += shmctl(at, SHM_STAT, &ds) == id && ds.shm_segsz == 5 * PAGE;
    printf("found by SHM_STAT: %d\n", found);
    say("no such index", shmctl(highest + 1, SHM_STAT, &ds));
    char line[256];
    FILE *list = fopen("/proc/sysvipc/shm", "r");
    fgets(line, sizeof line, list);
    printf("%s", line);
    while (fgets(line, sizeof line, list)) {
        unsigned mode;
        unsigned long size, attached, resident, rest[9];
        int key, number;
        sscanf(line, "%d %d %o %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu", &key, &number, &mode, &size, rest, rest + 1, &attached, rest + 2, rest + 3, rest + 4, rest + 5, rest + 6, rest + 7, rest + 8, &resident);
        if (number == id)
            printf("mode %o size %lu attaches %lu resident %lu, of %d columns\n", mode, size, attached, resident, (int) strlen(line));
    }
    fclose(list);
    shmctl(id, IPC_RMID, NULL);
}

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s (%s)\n", what, name_of(errno));
        exit(1);
    }
}

/* Attaches, counts, detaches, so often. */
static void count_in(int id, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        long *counts = shmat(id, NULL, 0);
        expect(counts != (void *) -1, "attach");
        __atomic_fetch_add(counts, 1, __ATOMIC_SEQ_CST);
        counts[PAGE / sizeof(long) * (round % 7 + 1)] = round;
        expect(shmdt(counts) == 0, "detach");
    }
}

static void work(void)
{
    enum { WORKERS = 4, ROUNDS = 10 };
    struct shmid_ds ds;
    int child_status;
    int id = shmget(IPC_PRIVATE, 8 * PAGE, 0600);
    expect(id >= 0, "make");
    long *counts = shmat(id, NULL, 0);
    expect(counts != (void *) -1, "attach");
    for (int worker = 0; worker < WORKERS; worker++)
        if (!fork()) {
            count_in(id, ROUNDS);
            exit(0);
        }
    for (int worker = 0; worker < WORKERS; worker++) {
        wait(&child_status);
        expect(child_status == 0, "worker");
    }
    expect(*counts == WORKERS * ROUNDS, "count");
    expect(shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_nattch == 1, "attaches");
    expect(shmctl(id, IPC_RMID, NULL) == 0, "remove");
    expect(shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_nattch == 1, "attaches of what is removed");
    expect(shmdt(counts) == 0, "detach");
    expect(shmctl(id, IPC_STAT, &ds) < 0 && errno == EINVAL, "it is gone");
    puts("counted");
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count > 1 && !strcmp(arguments[1], "nothing"))
        return 7;
    if (count > 1) {
        work();
        return 0;
    }
    making();
    addresses();
    rights_of_memory();
    counting();
    removal();
    rights();
    information();
    return 0;
}
