/* coredump: writes the core dump of a process that a signal has killed. pm starts it for each dump (docs/adr/0061-core-dumps.md), with the ids,
 * the working directory and the limits of that process; started by anybody else it does nothing.
 *
 * The file is an ELF core as Linux's: notes with the registers of all threads, the one that the signal was for first, then what was in
 * memory and could be read. Memory that was never touched is a hole in the file. It is truncated at RLIMIT_CORE. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <skink/abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 64 * 1024, PAGE = 4096, MAX_MAPPINGS = 65000, NAME_BYTES = 255 };
#define NT_NAME "CORE"

struct mapping {
    uint64_t start, end, offset, inode;
    unsigned rights;
    char *path;
};

/* A text of bytes that grows. */
struct bytes {
    char *at;
    size_t length, room;
};

static struct skink_core_head head;
static struct mapping *mappings;
static size_t mapping_count;
static int file;
static uint64_t written;

static long ask(long what, uint64_t which, void *buffer, uint64_t bytes)
{
    return syscall(SKINK_CORE_DUMP_SYSTEM_CALL, what, which, buffer, bytes);
}

static void fail(void)
{
    exit(1);
}

static void append(struct bytes *to, const void *data, size_t length)
{
    if (to->room - to->length < length) {
        to->room = 2 * (to->length + length);
        to->at = realloc(to->at, to->room);
        if (!to->at)
            fail();
    }
    memcpy(to->at + to->length, data, length);
    to->length += length;
}

/* Adds a note, padded to words of four bytes. */
static void add_note(struct bytes *notes, unsigned type, const void *data, size_t length)
{
    static const char zeros[4];
    Elf64_Nhdr note = { .n_namesz = sizeof NT_NAME, .n_descsz = length, .n_type = type };
    append(notes, &note, sizeof note);
    append(notes, NT_NAME "\0\0\0", 8);
    append(notes, data, length);
    append(notes, zeros, -length % 4);
}

static void add_status(struct bytes *notes, long id, const struct skink_registers *r)
{
    struct elf_prstatus status = { .pr_pid = id, .pr_ppid = head.parent, .pr_pgrp = head.group, .pr_sid = head.session };
    struct user_regs_struct regs = {
        .r15 = r->r15, .r14 = r->r14, .r13 = r->r13, .r12 = r->r12, .rbp = r->rbp, .rbx = r->rbx, .r11 = r->r11, .r10 = r->r10,
        .r9 = r->r9, .r8 = r->r8, .rax = r->rax, .rcx = r->rcx, .rdx = r->rdx, .rsi = r->rsi, .rdi = r->rdi,
        .orig_rax = r->linux_call, .rip = r->rip, .cs = 0x33, .eflags = r->rflags, .rsp = r->rsp, .ss = 0x2b,
        .fs_base = r->fs_base, .gs_base = r->gs_base,
    };
    /* As Linux: of every thread, and debuggers believe the last. */
    status.pr_info.si_signo = status.pr_cursig = head.signal;
    memcpy(status.pr_reg, &regs, sizeof regs);
    status.pr_fpvalid = 1;
    add_note(notes, NT_PRSTATUS, &status, sizeof status);
}

static void add_floats(struct bytes *notes, const struct skink_registers *r)
{
    /* The state of a thread that has never computed with them. */
    struct user_fpregs_struct floats = { .cwd = 0x37f, .mxcsr = 0x1f80 };
    if (r->extended_valid)
        memcpy(&floats, r->extended, sizeof floats);
    add_note(notes, NT_FPREGSET, &floats, sizeof floats);
}

static void add_process(struct bytes *notes)
{
    struct elf_prpsinfo info = {
        .pr_sname = 'R', .pr_uid = head.user, .pr_gid = head.user_group, .pr_pid = head.pid,
        .pr_ppid = head.parent, .pr_pgrp = head.group, .pr_sid = head.session,
    };
    memcpy(info.pr_fname, head.name, sizeof info.pr_fname);
    uint64_t length = head.arguments[1] - head.arguments[0];
    if (length > sizeof info.pr_psargs - 1)
        length = sizeof info.pr_psargs - 1;
    if (length && ask(SKINK_CORE_DUMP_MEMORY, head.arguments[0], info.pr_psargs, length) == (long) length)
        for (uint64_t at = 0; at + 1 < length; at++)
            if (!info.pr_psargs[at])
                info.pr_psargs[at] = ' ';
    add_note(notes, NT_PRPSINFO, &info, sizeof info);
}

static void add_vector(struct bytes *notes)
{
    char vector[1024];
    uint64_t length = head.auxiliary[1] - head.auxiliary[0];
    if (length <= sizeof vector && ask(SKINK_CORE_DUMP_MEMORY, head.auxiliary[0], vector, length) == (long) length)
        add_note(notes, NT_AUXV, vector, length);
}

/* The files that are mapped: count, page size, then start, end and page of each, then their names. */
static void add_files(struct bytes *notes)
{
    struct bytes text = { 0 };
    uint64_t words[3] = { 0, PAGE };
    for (size_t at = 0; at < mapping_count; at++)
        words[0] += mappings[at].path != NULL;
    append(&text, words, 16);
    for (size_t at = 0; at < mapping_count; at++)
        if (mappings[at].path) {
            uint64_t place[3] = { mappings[at].start, mappings[at].end, mappings[at].offset / PAGE };
            append(&text, place, sizeof place);
        }
    for (size_t at = 0; at < mapping_count; at++)
        if (mappings[at].path)
            append(&text, mappings[at].path, strlen(mappings[at].path) + 1);
    if (words[0])
        add_note(notes, NT_FILE, text.at, text.length);
    free(text.at);
}

static struct bytes make_notes(void)
{
    struct bytes notes = { 0 };
    struct skink_registers registers;
    if (ask(SKINK_CORE_DUMP_THREAD, head.thread, &registers, 0) != (long) head.thread)
        fail();
    add_status(&notes, head.thread, &registers);
    add_process(&notes);
    add_note(&notes, NT_SIGINFO, head.info, sizeof head.info);
    add_vector(&notes);
    add_files(&notes);
    add_floats(&notes, &registers);
    for (long id = 0; (id = ask(SKINK_CORE_DUMP_THREAD, id + 1, &registers, 0)) > 0;)
        if (id != (long) head.thread) {
            add_status(&notes, id, &registers);
            add_floats(&notes, &registers);
        }
    return notes;
}

/* Whether a path of /proc/PID/maps is that of the file with this inode. */
static char *name_of_file(const char *path, uint64_t inode)
{
    struct stat status;
    if (*path != '/' || stat(path, &status) || status.st_ino != inode)
        return NULL;
    return strdup(path);
}

static void read_mappings(void)
{
    char name[64], line[4300], rights[5], path[4097];
    unsigned major, minor;
    snprintf(name, sizeof name, "/proc/%u/maps", head.pid);
    FILE *maps = fopen(name, "r");
    mappings = calloc(MAX_MAPPINGS, sizeof *mappings);
    if (!maps || !mappings)
        fail();
    while (mapping_count < MAX_MAPPINGS && fgets(line, sizeof line, maps)) {
        struct mapping *next = &mappings[mapping_count];
        *path = 0;
        if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %4096[^\n]", &next->start, &next->end, rights, &next->offset, &major, &minor, &next->inode, path) < 7)
            continue;
        next->rights = (rights[0] == 'r' ? PF_R : 0) | (rights[1] == 'w' ? PF_W : 0) | (rights[2] == 'x' ? PF_X : 0);
        next->path = next->inode && (major || minor) ? name_of_file(path, next->inode) : NULL;
        mapping_count++;
    }
    fclose(maps);
}

/* The name of the file: the first component of core_pattern(5) that is a plain name, with what % stands for. */
static void choose_name(char *name)
{
    char pattern[129] = "core";
    int settings = open("/proc/sys/kernel/core_pattern", O_RDONLY);
    if (settings >= 0) {
        ssize_t length = read(settings, pattern, sizeof pattern - 1);
        pattern[length > 0 ? length : 0] = 0;
        pattern[strcspn(pattern, "\n")] = 0;
        close(settings);
    }
    if (!*pattern || *pattern == '|')
        fail();
    int used = 0;
    for (const char *from = pattern; *from && used < NAME_BYTES - 32; from++) {
        if (*from != '%') {
            name[used++] = *from;
            continue;
        }
        switch (*++from) {
        case '%': name[used++] = '%'; break;
        case 'p': case 'P': used += sprintf(name + used, "%u", head.pid); break;
        case 'i': case 'I': used += sprintf(name + used, "%u", head.thread); break;
        case 'u': used += sprintf(name + used, "%u", head.user); break;
        case 'g': used += sprintf(name + used, "%u", head.user_group); break;
        case 's': used += sprintf(name + used, "%u", head.signal); break;
        case 't': used += sprintf(name + used, "%lu", (unsigned long) time(NULL)); break;
        case 'e': used += sprintf(name + used, "%.15s", (const char *) head.name); break;
        case 0: from--; break;
        }
    }
    name[used] = 0;
}

/* Writes at the end of what is written; the rest, when the limit is reached, is left out, and the dump is over. */
static void put(const void *data, size_t length)
{
    int is_last = length > head.limit - written;
    if (is_last)
        length = head.limit - written;
    for (const char *from = data; length > 0;) {
        ssize_t moved = write(file, from, length);
        if (moved <= 0)
            fail();
        from += moved, length -= moved, written += moved;
    }
    if (is_last)
        exit(0);
}

/* Leaves a hole. */
static void skip(uint64_t length)
{
    if (length > head.limit - written) {
        ftruncate(file, head.limit);
        exit(0);
    }
    written += length;
    if (lseek(file, written, SEEK_SET) < 0)
        fail();
}

static void put_mapping(const struct mapping *mapping)
{
    static char piece[PIECE];
    for (uint64_t at = mapping->start; at < mapping->end;) {
        uint64_t present[2];
        if (ask(SKINK_CORE_DUMP_PRESENT, at, present, mapping->end))
            fail();
        skip(present[0] - at);
        for (at = present[0]; at < present[1];) {
            uint64_t length = present[1] - at < PIECE ? present[1] - at : PIECE;
            /* What cannot be read, as behind the end of a file, reads as zeros. */
            long copied = ask(SKINK_CORE_DUMP_MEMORY, at, piece, length);
            if (copied <= 0 && errno == ESRCH)
                fail();
            if (copied <= 0) {
                length = PAGE;
                copied = ask(SKINK_CORE_DUMP_MEMORY, at, piece, length);
            }
            if (copied > 0)
                put(piece, length);
            else
                skip(length);
            at += length;
        }
    }
}

static Elf64_Phdr header_of(const struct mapping *mapping, uint64_t offset)
{
    uint64_t length = mapping->end - mapping->start;
    return (Elf64_Phdr) {
        .p_type = PT_LOAD, .p_flags = mapping->rights, .p_offset = offset, .p_vaddr = mapping->start,
        .p_filesz = mapping->rights & PF_R ? length : 0, .p_memsz = length, .p_align = PAGE,
    };
}

static void put_dump(void)
{
    struct bytes notes = make_notes();
    Elf64_Ehdr elf = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = ET_CORE, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof elf, .e_ehsize = sizeof elf,
        .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = mapping_count + 1,
    };
    uint64_t offset = sizeof elf + elf.e_phnum * sizeof(Elf64_Phdr);
    Elf64_Phdr header = { .p_type = PT_NOTE, .p_offset = offset, .p_filesz = notes.length, .p_align = 4 };
    put(&elf, sizeof elf);
    put(&header, sizeof header);
    uint64_t data = offset = (offset + notes.length + PAGE - 1) / PAGE * PAGE;
    for (size_t at = 0; at < mapping_count; at++) {
        header = header_of(&mappings[at], offset);
        put(&header, sizeof header);
        offset += header.p_filesz;
    }
    put(notes.at, notes.length);
    skip(data - written);
    for (size_t at = 0; at < mapping_count; at++)
        if (mappings[at].rights & PF_R)
            put_mapping(&mappings[at]);
    ftruncate(file, written);
}

int main(void)
{
    char name[NAME_BYTES + 1];
    if (ask(SKINK_CORE_DUMP_HEAD, 0, &head, 0))
        return 1;
    choose_name(name);
    read_mappings();
    unlink(name);
    file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file < 0)
        return 1;
    put_dump();
    return 0;
}
