/* The vDSO: found in the auxiliary vector, its symbols looked up by hand; each clock read both ways. */
#include "behaviour.h"
#include <elf.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>

#define PAGE 4096

/* The auxiliary vector as it lies behind the environment. */
static unsigned long auxiliary(unsigned long kind) {
    char **at = environ;
    while (*at)
        at++;
    for (Elf64_auxv_t *entry = (Elf64_auxv_t *)(at + 1); entry->a_type != AT_NULL; entry++)
        if (entry->a_type == kind)
            return entry->a_un.a_val;
    return 0;
}

static const char *image;

/* What the image says of itself. */
static struct {
    const Elf64_Sym *symbols;
    const char *strings;
    const Elf64_Half *versions;
    const Elf64_Verdef *definitions;
    const Elf64_Word *hash;
    int has_relocations, has_gnu_hash;
    unsigned long soname;
} dynamic;

static void read_image(void) {
    /* environ is the program's own as long as nobody has changed it. */
    image = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (!image) {
        note("(no vDSO)");
        _exit(0);
    }
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Phdr *segments = (const void *)(image + header->e_phoff);
    const Elf64_Dyn *entries = NULL;
    for (int i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_DYNAMIC)
            entries = (const void *)(image + segments[i].p_offset);
    for (; entries && entries->d_tag != DT_NULL; entries++) {
        const void *at = image + entries->d_un.d_ptr;
        switch (entries->d_tag) {
        case DT_SYMTAB: dynamic.symbols = at; break;
        case DT_STRTAB: dynamic.strings = at; break;
        case DT_VERSYM: dynamic.versions = at; break;
        case DT_VERDEF: dynamic.definitions = at; break;
        case DT_HASH: dynamic.hash = at; break;
        case DT_SONAME: dynamic.soname = entries->d_un.d_val; break;
        case DT_GNU_HASH: dynamic.has_gnu_hash = 1; break;
        case DT_RELA: case DT_REL: case DT_JMPREL: case DT_TEXTREL: dynamic.has_relocations = 1; break;
        }
    }
}

static const char *version_of(int symbol) {
    const Elf64_Verdef *definition = dynamic.definitions;
    while (definition->vd_ndx != (dynamic.versions[symbol] & 0x7fff)) {
        if (!definition->vd_next)
            return "none";
        definition = (const void *)((const char *)definition + definition->vd_next);
    }
    return dynamic.strings + ((const Elf64_Verdaux *)((const char *)definition + definition->vd_aux))->vda_name;
}

static void *find(const char *name) {
    if (!image)
        read_image();
    for (unsigned i = 1; dynamic.hash && i < dynamic.hash[1]; i++)
        if (strcmp(dynamic.strings + dynamic.symbols[i].st_name, name) == 0 && strcmp(version_of(i), "LINUX_2.6") == 0)
            return (void *)(image + dynamic.symbols[i].st_value);
    note("(no %s)", name);
    return NULL;
}

static int (*gettime(void))(clockid_t, struct timespec *) { return find("__vdso_clock_gettime"); }

static long long ns(struct timespec time) {
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static long long by_call(clockid_t clock) {
    struct timespec now;
    must(syscall(SYS_clock_gettime, clock, &now));
    return ns(now);
}

static long long by_image(clockid_t clock) {
    static int (*function)(clockid_t, struct timespec *);
    struct timespec now;
    if (!function)
        function = gettime();
    return function(clock, &now) == 0 ? ns(now) : -1;
}

/* How often a clock goes back when it is read both ways by turns. */
static int steps_back(clockid_t clock) {
    long long last = 0;
    int back = 0;
    for (int i = 0; i < 2000; i++) {
        long long now = i % 2 ? by_call(clock) : by_image(clock);
        back += now < last;
        last = now;
    }
    return back;
}

static const clockid_t exact[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_TAI};

static void show_steps_back(void) {
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        show(steps_back(exact[i]));
}

/* The line of /proc/self/maps with this name. Returns whether there is one. */
static int mapped(const char *name, unsigned long *start, unsigned long *end, char *rights) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = 0;
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, name) != NULL && sscanf(line, "%lx-%lx %4s", start, end, rights) == 3;
    if (maps)
        fclose(maps);
    return found;
}

BEHAVIOUR("the auxiliary vector names an ELF image of a shared object") {
    unsigned long at = auxiliary(AT_SYSINFO_EHDR);
    note("%d %d", at != 0 && at % PAGE == 0, at == getauxval(AT_SYSINFO_EHDR));
    const Elf64_Ehdr *header = (const void *)at;
    note("%d %d %d", memcmp(header->e_ident, ELFMAG, SELFMAG) == 0, header->e_type == ET_DYN, header->e_machine == EM_X86_64);
    int loads = 0, frames = 0;
    const Elf64_Phdr *segments = (const void *)(at + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        frames += segments[i].p_type == PT_GNU_EH_FRAME;
        if (segments[i].p_type == PT_LOAD) {
            loads++;
            note("%d", segments[i].p_flags == (PF_R | PF_X));
        }
    }
    note("%d %d", loads, frames);
}
BEHAVIOUR("the image has a name, hash tables, and nothing to relocate") {
    read_image();
    note("%s %d %d %d", dynamic.strings + dynamic.soname, dynamic.hash != NULL, dynamic.has_gnu_hash, dynamic.has_relocations);
}
BEHAVIOUR("each function is there with its version") {
    static const char *const names[] = {"clock_gettime", "gettimeofday", "time", "clock_getres", "getcpu"};
    for (int i = 0; i < 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "__vdso_%s", names[i]);
        note("%d", find(name) != NULL);
    }
    find("__vdso_none");
}
BEHAVIOUR("no clock goes back when it is read both ways") {
    show_steps_back();
}
BEHAVIOUR("coarse clocks do not go back, and differ by less than a second") {
    static const clockid_t clocks[][2] = {{CLOCK_REALTIME, CLOCK_REALTIME_COARSE}, {CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE}};
    for (int i = 0; i < 2; i++) {
        long long difference = by_image(clocks[i][0]) - by_image(clocks[i][1]);
        note("%d %d", steps_back(clocks[i][1]), difference > -1000000000 && difference < 1000000000);
    }
}
BEHAVIOUR("clocks of processor time are read, too") {
    note("%d %d", by_image(CLOCK_PROCESS_CPUTIME_ID) >= 0, by_image(CLOCK_THREAD_CPUTIME_ID) >= 0);
    show(steps_back(CLOCK_PROCESS_CPUTIME_ID));
    show(steps_back(CLOCK_THREAD_CPUTIME_ID));
}
BEHAVIOUR("unknown clocks fail as by the system call") {
    int (*function)(clockid_t, struct timespec *) = gettime();
    struct timespec now;
    for (clockid_t clock = 10; clock < 70; clock++) {
        long called = syscall(SYS_clock_gettime, clock, &now);
        int result = function(clock, &now);
        if (result != (called == 0 ? 0 : -errno))
            note("(%d: %d)", clock, result);
    }
    show(function(-1, &now));
    show(function(99, &now));
    show(function(0x7fffffff, &now));
    show(function(10, &now));
}
BEHAVIOUR("a clock of another process is the system call's") {
    struct timespec now;
    clockid_t none = (clockid_t)(~0x3ffffffu << 3 | 2);
    note("%d", gettime()(none, &now) == (syscall(SYS_clock_gettime, none, &now) == 0 ? 0 : -errno));
}
BEHAVIOUR("clock_getres") {
    int (*function)(clockid_t, struct timespec *) = find("__vdso_clock_getres");
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        struct timespec one = {7, 7}, other = {8, 8};
        show(function(exact[i], &one));
        syscall(SYS_clock_getres, exact[i], &other);
        note("%lld %lld", ns(one), ns(other));
    }
    show(function(CLOCK_MONOTONIC, NULL));
    show(function(99, NULL));
    show(function(-1, NULL));
}
BEHAVIOUR("gettimeofday with and without a time zone") {
    int (*function)(struct timeval *, struct timezone *) = find("__vdso_gettimeofday");
    struct timeval now = {-1, -1};
    struct timezone zone = {-1, -1};
    long long before = by_call(CLOCK_REALTIME) / 1000;
    show(function(&now, &zone));
    long long after = by_call(CLOCK_REALTIME) / 1000, time = now.tv_sec * 1000000ll + now.tv_usec;
    note("%d %d %d", time >= before && time <= after, zone.tz_minuteswest, zone.tz_dsttime);
    now.tv_usec = -1;
    show(function(&now, NULL));
    note("%d", now.tv_usec >= 0 && now.tv_usec < 1000000);
    zone.tz_dsttime = -1;
    show(function(NULL, &zone));
    note("%d", zone.tz_dsttime);
    show(function(NULL, NULL));
}
BEHAVIOUR("time") {
    long (*function)(long *) = find("__vdso_time");
    long stored = -1, before = by_call(CLOCK_REALTIME) / 1000000000 - 1, now = function(&stored);
    note("%d %d", now == stored, now >= before && now <= before + 5);
    note("%d", function(NULL) >= now);
}
BEHAVIOUR("getcpu") {
    long (*function)(unsigned *, unsigned *, void *) = find("__vdso_getcpu");
    unsigned processor = 77777, node = 77777;
    show(function(&processor, &node, NULL));
    note("%d %u", processor < 77777, node);
    show(function(NULL, NULL, NULL));
}
BEHAVIOUR("a clock that is read into bad memory is SIGSEGV") {
    pid_t child = fork();
    if (child == 0) {
        gettime()(CLOCK_MONOTONIC, bad());
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    show_status(status);
}
BEHAVIOUR("a child reads the clocks, and its child") {
    long long before = by_image(CLOCK_MONOTONIC);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child != 0) {
            waitpid(child, NULL, 0);
            if (i > 0)
                _exit(0);
            break;
        }
        show(by_image(CLOCK_MONOTONIC) < before);
        show_steps_back();
    }
}
static void *in_thread(void *unused) {
    show_steps_back();
    return unused;
}
BEHAVIOUR("a thread reads the clocks") {
    pthread_t thread;
    must(pthread_create(&thread, NULL, in_thread, NULL));
    pthread_join(thread, NULL);
}
BEHAVIOUR("/proc/self/maps names both mappings, which cannot be written") {
    unsigned long start, end;
    char rights[8];
    if (mapped("[vdso]", &start, &end, rights))
        note("%s %d", rights, start == auxiliary(AT_SYSINFO_EHDR));
    if (mapped("[vvar]", &start, &end, rights))
        note("%s", rights);
}
/* Runs `act` in a child and shows how that ended. */
static void in_child(void (*act)(char *)) {
    pid_t child = fork();
    if (child == 0) {
        act((char *)getauxval(AT_SYSINFO_EHDR));
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    show_status(status);
}
static void write_image(char *at) { *(volatile char *)at = 1; }
static void write_clocks(char *at) { *(volatile char *)(at - PAGE) = 1; }
BEHAVIOUR("writing to either mapping is SIGSEGV") {
    in_child(write_image);
    in_child(write_clocks);
}
static void read_by_image(char *unused) {
    (void)unused;
    by_image(CLOCK_MONOTONIC);
}
/* The whole image: parts of it have the rights of all. */
static char *whole_image(unsigned long *bytes) {
    unsigned long start = 0, end = 0;
    char rights[8];
    must(mapped("[vdso]", &start, &end, rights) ? 0 : -1);
    *bytes = end - start;
    return (char *)start;
}
BEHAVIOUR("mprotect: without the right to execute the image is useless, with it it works again") {
    unsigned long bytes;
    char *at = whole_image(&bytes);
    by_image(CLOCK_MONOTONIC);
    show(mprotect(at, bytes, PROT_NONE));
    in_child(read_by_image);
    note("%d", by_call(CLOCK_MONOTONIC) > 0);
    show(mprotect(at, bytes, PROT_READ));
    in_child(read_by_image);
    show(mprotect(at, bytes, PROT_READ | PROT_EXEC));
    in_child(read_by_image);
    show_steps_back();
}
BEHAVIOUR("mprotect: a program may write to its own copy of the image") {
    unsigned long bytes;
    char *at = whole_image(&bytes);
    show(mprotect(at, bytes, PROT_READ | PROT_WRITE));
    at[bytes - 1] = 77;
    show(mprotect(at, bytes, PROT_READ | PROT_EXEC));
    show_steps_back();
    pid_t child = fork();
    if (child == 0) {
        show_steps_back();
        _exit(at[bytes - 1]);
    }
    int status;
    waitpid(child, &status, 0);
    show_status(status);
}
BEHAVIOUR("mprotect: the clocks do not become writable") {
    char *at = (char *)getauxval(AT_SYSINFO_EHDR);
    show(mprotect(at - PAGE, PAGE, PROT_READ | PROT_WRITE));
    show(mprotect(at - PAGE, PAGE, PROT_READ));
    show_steps_back();
}
BEHAVIOUR("without the image the system calls work, in children, too") {
    unsigned long start, end, bytes;
    char rights[8], *at = whole_image(&bytes);
    show(munmap(at, bytes));
    note("%d", by_call(CLOCK_MONOTONIC) > 0);
    note("%d", mapped("[vdso]", &start, &end, rights));
    pid_t child = fork();
    if (child == 0)
        _exit(by_call(CLOCK_REALTIME) > 0 ? 3 : 4);
    int status;
    waitpid(child, &status, 0);
    show_status(status);
}
static void exec_without_image(char *unused) {
    (void)unused;
    unsigned long bytes;
    char *at = whole_image(&bytes);
    must(munmap(at, bytes));
    execl("/bin/sh", "sh", "-c", "grep -q '\\[vdso\\]' /proc/self/maps", NULL);
}
BEHAVIOUR("a program that is executed has an image, whatever its predecessor did") {
    in_child(exec_without_image);
}
BEHAVIOUR("other memory may take the place of the image") {
    unsigned long bytes;
    char *at = whole_image(&bytes);
    note("%d", mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    note("%d", at[5]);
    at[5] = 6;
    note("%d %d", at[5], by_call(CLOCK_MONOTONIC) > 0);
}
BEHAVIOUR("mremap: the image moves, and its system calls go with it") {
    unsigned long bytes;
    char *at = whole_image(&bytes), *new = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int (*function)(clockid_t, struct timespec *) = gettime();
    note("%d", mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, new) == new);
    function = (void *)((char *)function - at + new);
    struct timespec now;
    show(function(99, &now));
    show(function(CLOCK_PROCESS_CPUTIME_ID, &now));
}
BEHAVIOUR("a tracer reads the image, and writes to the program's own copy of it") {
    const long *at = (const long *)getauxval(AT_SYSINFO_EHDR);
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(at[100] == 42 ? 9 : 8);
    }
    waitpid(child, NULL, 0);
    errno = 0;
    note("%d", ptrace(PTRACE_PEEKTEXT, child, at, 0) == at[0]);
    show(ptrace(PTRACE_POKETEXT, child, at + 100, 42));
    note("%d", at[100] == 42);
    show(ptrace(PTRACE_POKETEXT, child, (const char *)at - PAGE, 42));
    ptrace(PTRACE_CONT, child, 0, 0);
    int status;
    waitpid(child, &status, 0);
    show_status(status);
}
BEHAVIOUR("mlockall and munlockall leave the clocks readable") {
    show(mlockall(MCL_CURRENT));
    show_steps_back();
    show(munlockall());
    show_steps_back();
}
