/* The contract of Skink for C. This file is long because it is made, whole, from abi/ by `./skink check`, which writes it anew when they differ.
 *
 * Names: abi::privilege::way::HAL is SKINK_PRIVILEGE_WAY_HAL, abi::privilege::PortRequest is struct skink_port_request. A protocol's message, say
 * Read of chardev, has its label SKINK_CHARDEV_READ, struct skink_chardev_read for words 0 and on of the request, and where the reply
 * has more than a result, struct skink_chardev_read_reply for words 1 and on of the reply. Every field of those is one word.
 * Errors are positive here; calls and replies carry them negative.
 */
#ifndef SKINK_ABI_H
#define SKINK_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Who a message goes to and comes from: slot and generation. */
typedef uint32_t endpoint_t;
/* Number of a grant. */
typedef uint32_t cp_grant_id_t;
/* A name of at most 16 bytes, padded with zeros. */
struct skink_name {
    char bytes[16];
};

/* Error numbers: Linux's (errno(3), asm-generic/errno.h), and Skink's own from 1001 on. In a result word an error is its negative number. */
#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define ENXIO 6
#define E2BIG 7
#define ENOEXEC 8
#define EBADF 9
#define ECHILD 10
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define ENOTBLK 15
#define EBUSY 16
#define EEXIST 17
#define EXDEV 18
#define ENODEV 19
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENFILE 23
#define EMFILE 24
#define ENOTTY 25
#define ETXTBSY 26
#define EFBIG 27
#define ENOSPC 28
#define ESPIPE 29
#define EROFS 30
#define EMLINK 31
#define EPIPE 32
#define EDOM 33
#define ERANGE 34
#define EDEADLK 35
#define ENAMETOOLONG 36
#define ENOLCK 37
#define ENOSYS 38
#define ENOTEMPTY 39
#define ELOOP 40
#define ENOMSG 42
#define EIDRM 43
#define ENODATA 61
#define ETIME 62
#define EPROTO 71
#define EBADMSG 74
#define EOVERFLOW 75
#define EILSEQ 84
#define EUSERS 87
#define ENOTSOCK 88
#define EDESTADDRREQ 89
#define EMSGSIZE 90
#define EPROTOTYPE 91
#define ENOPROTOOPT 92
#define EPROTONOSUPPORT 93
#define ESOCKTNOSUPPORT 94
#define EOPNOTSUPP 95
#define EAFNOSUPPORT 97
#define EADDRINUSE 98
#define EADDRNOTAVAIL 99
#define ENETUNREACH 101
#define ECONNABORTED 103
#define ECONNRESET 104
#define ENOBUFS 105
#define EISCONN 106
#define ENOTCONN 107
#define ETOOMANYREFS 109
#define ETIMEDOUT 110
#define ECONNREFUSED 111
#define EALREADY 114
#define EINPROGRESS 115
#define ESTALE 116
#define EUCLEAN 117
#define EDQUOT 122
#define ECANCELED 125
#define ERESTARTSYS 512
#define ECALLDENIED 1001
#define EBADCALL 1002
#define EDEADSRCDST 1003
#define ELOCKED 1004
#define ENOTREADY 1005

/* Endpoints: the source and the destination of a message. */

/* Number of slots for services, kernel tasks included: the bits of a destination bitmap. */
#define SKINK_ENDPOINT_SERVICE_SLOTS 128u

/* First slot of a service. */
#define SKINK_ENDPOINT_FIRST_SERVICE 4u

/* All slots: kernel tasks, services and application threads. */
#define SKINK_ENDPOINT_SLOTS 0x480u

/* Row of privileges of application threads, which lets them send to nobody, and the bit in a destination bitmap that stands for them (the
 * slot of the idle task). */
#define SKINK_ENDPOINT_APPLICATIONS_BIT 3u

/* From here on rows of privileges belong to no service: application threads with the same one, which Join gave them, may send to each
 * other. */
#define SKINK_ENDPOINT_FIRST_CONTAINER 96u

/* Fixed slots. The other services get the slots from FIRST_FREE on, in the order of the system file. */
#define SKINK_ENDPOINT_SLOT_SYSTEM 0u
#define SKINK_ENDPOINT_SLOT_CLOCK 1u
#define SKINK_ENDPOINT_SLOT_HARDWARE 2u
#define SKINK_ENDPOINT_SLOT_IDLE 3u
#define SKINK_ENDPOINT_SLOT_RS 4u
#define SKINK_ENDPOINT_SLOT_VM 5u
#define SKINK_ENDPOINT_SLOT_DS 6u
#define SKINK_ENDPOINT_SLOT_PM 7u
#define SKINK_ENDPOINT_SLOT_VFS 8u
#define SKINK_ENDPOINT_SLOT_TTY 9u
#define SKINK_ENDPOINT_SLOT_PCI 10u
#define SKINK_ENDPOINT_SLOT_FIRST_FREE 11u

/* Receive only: any source. */
#define SKINK_ENDPOINT_ANY 0xffffffffu

/* No endpoint. */
#define SKINK_ENDPOINT_NONE 0xfffffffeu

/* The caller itself, as an argument of a kernel call. */
#define SKINK_ENDPOINT_SELF 0xfffffffdu

/* The SYSTEM task. */
#define SKINK_ENDPOINT_SYSTEM 0u

/* Source of alarm notifications. */
#define SKINK_ENDPOINT_CLOCK 1u

/* Source of interrupt notifications. */
#define SKINK_ENDPOINT_HARDWARE 2u

/* The present incarnation of rs; see Endpoint::current. */
#define SKINK_ENDPOINT_RS 4u

/* The present incarnation of vm. */
#define SKINK_ENDPOINT_VM 5u

/* The present incarnation of ds. */
#define SKINK_ENDPOINT_DS 6u

/* The present incarnation of pm. */
#define SKINK_ENDPOINT_PM 7u

/* The present incarnation of vfs. */
#define SKINK_ENDPOINT_VFS 8u

/* The present incarnation of tty. */
#define SKINK_ENDPOINT_TTY 9u

/* The present incarnation of pci. */
#define SKINK_ENDPOINT_PCI 10u

/* Highest generation; its successor is 1. */
#define SKINK_ENDPOINT_LAST_GENERATION 0x7fffeu

/* Names of services, devices and keys: up to 16 bytes, so that one fits into two words of a message. */

/* The message: 64 bytes, the only thing processes exchange (docs/book/ideas.md, 1). */

/* Set in the label of a reply: request label | REPLY. */
#define SKINK_MESSAGE_REPLY 0x80000000u

/* Labels from here up to REPLY are the kernel's; a program that sends one gets EINVAL. */
#define SKINK_MESSAGE_KERNEL_LABELS 0x40000000u

/* Word 6 of a Linux call is its number among the calls of its thread: no two calls of a thread have the same. A call that is repeated,
 * because its server died before it replied, keeps its number and has this bit set. */
#define SKINK_MESSAGE_REPEATED 0x8000000000000000ull

/* Labels below this are Linux system calls, delivered by a route. */
#define SKINK_MESSAGE_LINUX_LABELS 0x1000u

/* One message. In memory (vector 33) it is exactly these 64 bytes. */
struct skink_message {
    /* Sender, written by the kernel. */
    endpoint_t source;
    /* Kind of message: a Linux system call number, or protocol << 16 | message, with REPLY for replies. */
    uint32_t label;
    /* The content. In replies word 0 is the result: not negative, or a negative error number. Word 6 is the tag of an asynchronous request,
     * which its reply repeats. */
    uint64_t words[7];
};
_Static_assert(sizeof(struct skink_message) == 64, "size of skink_message");
_Static_assert(offsetof(struct skink_message, source) == 0, "skink_message.source");
_Static_assert(offsetof(struct skink_message, label) == 4, "skink_message.label");
_Static_assert(offsetof(struct skink_message, words) == 8, "skink_message.words");

/* Numbers of the native calls, made by syscall with the number in rax (registers: see message), and the vector-33 form: int 0x21 with the
 * number of a primitive in rax, the endpoint in rdi, the address of a Message in rsi. */

/* (status): ends the caller; its manager (rs for services, pm for programs) receives kernel::Exited. Needs no permission. */
#define SKINK_SYS_EXIT 0

/* (parent, flags) → endpoint: a new thread in an application slot, registers copied from parent with rax = 0, stopped, no address space
 * yet (vm sets one). FPU state copied. parent NONE: registers zero. EAGAIN: no free slot. */
#define SKINK_SYS_FORK 1

/* (slot) → endpoint: an inert service in this slot, with the next generation. rs. */
#define SKINK_SYS_CREATE 2

/* (endpoint, keep): destroys a thread: its peers get EDEADSRCDST, timers, IRQs and grants vanish. keep = 1: a successor is expected in the
 * slot, senders to Endpoint::current wait for it. pm, rs. */
#define SKINK_SYS_DESTROY 3

/* (endpoint, address of Registers): copies the registers of a stopped or blocked thread out. pm, rs. */
#define SKINK_SYS_GETREGISTERS 4

/* (endpoint, address of Registers, bits of resume): sets the registers of a stopped or blocked thread. pm, rs. */
#define SKINK_SYS_SETREGISTERS 5

/* (endpoint, id): makes a stopped thread ready. A new service starts with the registers set before. id: the thread's Linux id, by which
 * futexes name their owners; 0: none. pm, rs. */
#define SKINK_SYS_START 6

/* (endpoint): keeps a thread from running until Start; messages can still be sent to it. pm, rs. */
#define SKINK_SYS_STOP 7

/* (endpoint) → endpoint the thread is blocked on, or NONE: before the thread returns to user mode it sends kernel::Interrupted to pm and
 * blocks until the reply or SetRegisters. pm. */
#define SKINK_SYS_INTERRUPT 8

/* (endpoint, address of Privileges): sets privileges. Only rs, whatever the mask says. */
#define SKINK_SYS_PRIVCTL 9

/* (endpoint, queue, quantum_us): base queue (0 best to 15, or REAL_TIME plus a real-time one) and quantum; 0 leaves the quantum unchanged.
 * rs, pm. */
#define SKINK_SYS_SCHEDULE 10

/* () → space: a new empty address space. vm. ENOMEM: table or page-table pool exhausted. */
#define SKINK_SYS_SPACECREATE 11

/* (space): destroys it; its page-table frames return to the pool, its mapped frames stay vm's. EAGAIN while threads use it. vm. */
#define SKINK_SYS_SPACEDESTROY 12

/* (endpoint, space): assigns the thread to this space; u64::MAX: to none. vm. */
#define SKINK_SYS_SPACESET 13

/* (space, address, frame address, pages, flags of layout::map): maps contiguous frames, replacing earlier mappings. Returns the pages
 * mapped; fewer than requested, with ENOMEM in word 0, when the pool is empty: Donate and continue. vm. */
#define SKINK_SYS_SPACEMAP 14

/* (space, address, pages): removes mappings (absent ones are skipped). vm. */
#define SKINK_SYS_SPACEUNMAP 15

/* (space, address, pages, flags): changes the rights of the mappings that are present. vm. */
#define SKINK_SYS_SPACEPROTECT 16

/* (from, to, address, pages): copies the present mappings of a range, write-protecting both sides, for fork. Returns the pages walked; an
 * empty pool is reported as by SpaceMap. vm. */
#define SKINK_SYS_SPACECOPY 17

/* (frame address, pages): donates frames to the kernel's pool of page-table frames. vm. */
#define SKINK_SYS_DONATE 18

/* (to frame address, from frame address): copies one frame. vm. */
#define SKINK_SYS_FRAMECOPY 19

/* (frame address, offset in frame, granter, grant, offset in grant, bytes): copies from a grant into frames. vm. */
#define SKINK_SYS_FRAMEFILL 20

/* (from endpoint, address, to endpoint, address, bytes): copies between two address spaces; SELF is the caller. Returns the bytes copied.
 * EFAULT: a side is not mapped, or lacks the right. At most layout::MAX_COPY bytes. pm, vfs, rs, procfs as the mask allows. */
#define SKINK_SYS_VIRCOPY 21

/* (granter, grant, offset, own address, bytes) → bytes copied from the grant. EPERM: the grant does not permit it. EFAULT: memory is not
 * mapped. */
#define SKINK_SYS_SAFECOPYFROM 22

/* (granter, grant, offset, own address, bytes) → bytes copied into the grant. Errors as of SafeCopyFrom. */
#define SKINK_SYS_SAFECOPYTO 23

/* (address of table, entries): registers the caller's grant table. Entries are 32 bytes, aligned. */
#define SKINK_SYS_SETGRANTS 24

/* (address) → physical address of the caller's own memory, for DMA. */
#define SKINK_SYS_UMAP 25

/* (port, operation of privilege::io, value) → value read. ECALLDENIED outside the caller's port ranges. */
#define SKINK_SYS_DEVIO 26

/* (port, operation, own address, count): string form of DevIo. */
#define SKINK_SYS_SDEVIO 27

/* (irq, hook, policy of kernel::irq): makes each interrupt notify the caller from HARDWARE with bit hook. ECALLDENIED: the IRQ is not in
 * the caller's list. The policy decides whether the line stays masked until IrqEnable. */
#define SKINK_SYS_IRQSET 28

/* (hook): unmasks the line. */
#define SKINK_SYS_IRQENABLE 29

/* (hook): releases the interrupt. */
#define SKINK_SYS_IRQREMOVE 30

/* (hook) → MSI address in word 0, MSI data in word 1: a message-signalled interrupt that notifies with bit hook. Needs privilege flag
 * MSI. */
#define SKINK_SYS_MSISET 31

/* (deadline_ns, queue): one notification from CLOCK at this monotonic time; 0 cancels. One alarm per thread. A service handles the alarm at
 * the priority of this real-time queue (as in Schedule; 0: its own). */
#define SKINK_SYS_SETALARM 32

/* () → monotonic time in ns; word 0: real time in ns since 1970. Needs no permission. */
#define SKINK_SYS_TIME 33

/* (real time in ns since 1970): sets the clock. rtc, pm. */
#define SKINK_SYS_SETTIME 34

/* (what of info, index, own address, bytes) → bytes written. Needs no permission except where info says so. */
#define SKINK_SYS_GETINFO 35

/* (own address, bytes): writes text to the kernel's console and log. At most 1024 bytes. */
#define SKINK_SYS_DIAG 36

/* (mode, status): 0 powers off, 1 reboots, 2 halts. pm, rs. */
#define SKINK_SYS_SHUTDOWN 37

/* (events, period): sets the kinds of events that are recorded, a bit for each of trace::event, 0: none, and the distance of samples in
 * nanoseconds, at least trace::MIN_PERIOD_NS. GetInfo shows the records. */
#define SKINK_SYS_TRACE 38

/* (number, slot): routes a system call to a service; slot 0 is the kernel, u64::MAX removes. rs. */
#define SKINK_SYS_ROUTE 39

/* (slot) → endpoint that holds a slot now, or EDEADSRCDST. Needs no permission. */
#define SKINK_SYS_WHOIS 40

/* (endpoint, kind of privilege::check, value, length): checks that this range is within the endpoint's privileges. vm, pci. */
#define SKINK_SYS_PRIVCHECK 41

/* (): moves the caller to the end of its ready queue. Needs no permission. */
#define SKINK_SYS_YIELD 42

/* (address of privilege::PortRequest records, count): a vector of DevIos, executed in order until one fails; values read are written into
 * the records. Returns the number executed, or the first record's error. */
#define SKINK_SYS_VDEVIO 43

/* (from, from address, to, to address, bytes) → bytes: as VirCopy, but an endpoint NONE means that the address is physical, within the
 * caller's memory ranges (ECALLDENIED outside). */
#define SKINK_SYS_PHYSCOPY 44

/* (address of CopyRequest records, count): a vector of VirCopys, executed in order until one fails. Returns the number executed, or the
 * first record's error. */
#define SKINK_SYS_VIRVCOPY 45

/* (address of CopyRequest records, count): a vector of PhysCopys, as VirVCopy. */
#define SKINK_SYS_PHYSVCOPY 46

/* () → high half of the time-stamp counter in word 0, low half in word 1. Needs no permission. */
#define SKINK_SYS_GETTSC 47

/* (endpoint, kind of inject, value, further value, bytes): injects a fault into a service, for tests of recovery. Only rs, whatever the
 * mask says. */
#define SKINK_SYS_INJECT 48

/* (hook): masks the line until IrqEnable. */
#define SKINK_SYS_IRQDISABLE 49

/* (operation of rt::control, caller of the system call, argument, address of the structure's first 8 words in own memory): a system call of
 * MINIX4RT. mrt. */
#define SKINK_SYS_RTCONTROL 50

/* (endpoint, address, count): wakes up to count waiters of the shared futex at this address of a thread's memory. Returns the number woken.
 * pm. */
#define SKINK_SYS_FUTEXWAKE 51

/* () → frame address: takes a frame that page tables have left out of the kernel's pool, the counterpart of Donate. EAGAIN: the pool has
 * no more than it keeps for the next tables. vm. */
#define SKINK_SYS_RECLAIM 52

/* (endpoint, row, peer, error): makes an application thread a member of the container with this row of privileges, whose members may send
 * to each other, or of none (APPLICATIONS_BIT). Its wait for a message by a primitive fails with error if it is for peer, or whatever it is
 * for (NONE); waits for it fail with EDEADSRCDST if the row is another one. EINVAL: no application thread, or no such row. m3ipc. */
#define SKINK_SYS_JOIN 53

/* (endpoint, number, answer): answers this call of linux::KEPT by a program's thread at once from now on, below 2^32. Another number: all
 * answers kept for the thread are forgotten. A traced thread's calls still go to pm, and all while messages are traced. pm. */
#define SKINK_SYS_KEEPANSWER 54

/* First native number; below are Linux system calls and Skink's own routed calls. */
#define SKINK_CALL_NATIVE 0x1000ull

/* Sends a message and waits until it is received. */
#define SKINK_CALL_SEND 0x1000ull

/* Waits for a message from one endpoint or ANY. Pending notifications come first. */
#define SKINK_CALL_RECEIVE 0x1001ull

/* Sends a request and waits for the reply of the same endpoint. Notifications stay pending meanwhile. */
#define SKINK_CALL_SENDREC 0x1002ull

/* Sets the caller's pending bit at the destination; never blocks. Label kernel::Notify. */
#define SKINK_CALL_NOTIFY 0x1003ull

/* Sends only if the destination is waiting for this sender. Otherwise fails with ENOTREADY, and the destination's next RECEIVE or REPLYREC
 * from ANY notifies the caller (services only), which then retries. */
#define SKINK_CALL_SENDNB 0x1004ull

/* Sends to r13, then receives from r14 (mostly ANY), atomically. The send does not block. A destination that is not waiting for a reply
 * loses it, so that no client can block a server. A request fails as with SENDNB, and nothing is received. */
#define SKINK_CALL_REPLYREC 0x1005ull

/* SEND to r13, then RECEIVE from r14, atomically. File systems and drivers reply with it to asynchronous requests: the server's next SENDNB
 * finds this process waiting. */
#define SKINK_CALL_SENDWAIT 0x1006ull

/* First kernel call; bit number - KERNEL_CALLS of a call mask. */
#define SKINK_CALL_KERNEL_CALLS 0x1100ull

/* End of the numbers of kernel calls: a mask has 64 bits. */
#define SKINK_CALL_KERNEL_CALLS_END 0x1140ull

/* Kernel calls as messages to the SYSTEM task: SYSTEM_LABELS | KernelCall as u32, arguments in words 0 to 5; in the reply word 0 is the
 * result; words 1 and 2 are the further results, which a trap returns in words 0 and 1. */
#define SKINK_CALL_SYSTEM_LABELS 0x110000u

/* The kernel calls that may be made as messages to the SYSTEM task, by SENDREC only. All others fail with EBADCALL. If vm refuses memory of
 * the request, the SENDREC itself fails with EFAULT, for a vector too. */
#define SKINK_CALL_BY_MESSAGE 0x2f8017ee00200ull

/* Limit of records of VDevIo, VirVCopy and PhysVCopy; more fail with EINVAL. */
#define SKINK_CALL_MAX_VECTOR 64ull

/* Vector of the HAL trap: rax an operation of privilege::io, rdx the port, rdi the value to write, or with io::STRING the address of a
 * buffer and r10 the number of accesses. Result in rax; no other register changes. Needs the right to DevIo and the port, whatever the
 * service's access path is. EBADCALL: no such operation. */
#define SKINK_CALL_HAL_VECTOR 34u

/* One copy of VirVCopy and PhysVCopy. */
struct skink_copy_request {
    /* Process whose memory is read. */
    endpoint_t from;
    /* Process whose memory is written. */
    endpoint_t to;
    /* First address read. */
    uint64_t from_address;
    /* First address written. */
    uint64_t to_address;
    /* Length. */
    uint64_t bytes;
};
_Static_assert(sizeof(struct skink_copy_request) == 32, "size of skink_copy_request");
_Static_assert(offsetof(struct skink_copy_request, from) == 0, "skink_copy_request.from");
_Static_assert(offsetof(struct skink_copy_request, to) == 4, "skink_copy_request.to");
_Static_assert(offsetof(struct skink_copy_request, from_address) == 8, "skink_copy_request.from_address");
_Static_assert(offsetof(struct skink_copy_request, to_address) == 16, "skink_copy_request.to_address");
_Static_assert(offsetof(struct skink_copy_request, bytes) == 24, "skink_copy_request.bytes");

/* Schedule: added to the number of a real-time ready queue, 1 (best) to 46. A thread with a quantum goes to the end of its queue when the
 * quantum is used up (SCHED_RR), one with NO_QUANTUM never does (SCHED_FIFO). */
#define SKINK_CALL_REAL_TIME 64ull

/* Schedule: the quantum never ends. */
#define SKINK_CALL_NO_QUANTUM 0xffffffffffffffffull

/* Bits of SetRegisters. */

/* Cancels what the thread waits for and makes it ready. */
#define SKINK_CALL_RESUME_READY 1ull

/* With READY: its Linux calls are reported to pm from now on (kernel::LinuxCall), else they are not. */
#define SKINK_CALL_RESUME_REPORT_CALLS 2ull

/* With READY: it makes the Linux call whose number is in rax, unreported, before it runs. */
#define SKINK_CALL_RESUME_CALL 4ull

/* Kinds of Inject. */

/* Ends the service as an exception VECTOR would, directly after it has sent or received value more messages; 0 cancels. */
#define SKINK_CALL_INJECT_KILL_AFTER_MESSAGES 0ull

/* Writes the low bytes (1 to 8) bytes of the further value to the address value of the service, even if it is read-only. */
#define SKINK_CALL_INJECT_POKE 1ull

/* Stops the service without telling anybody, so that it misses its heartbeats. */
#define SKINK_CALL_INJECT_SILENCE 2ull

/* Lets allocation number value of the service fail, counted from 1. No kind of the kernel's: rs asks the service (rs::FailAllocation). */
#define SKINK_CALL_INJECT_ALLOCATION 3ull

/* Vector in the kernel::Exception of an injected death. */
#define SKINK_CALL_INJECT_VECTOR 256ull

/* Kernel calls that every service may make, whatever its mask. */
#define SKINK_CALL_UNRESTRICTED 0x850a00000001ull

/* The protocol of block drivers: requests of file systems and vfs to virtio_blk, ramdisk and ata. Every request is idempotent: a caller
 * that gets EDEADSRCDST repeats it to the successor. */

/* Block devices. Positions and lengths are multiples of 512 bytes, at most 1 MiB a request. */

/* Returns the size of the device. ENXIO: no such minor. */
#define SKINK_BLOCK_OPEN 0x70001u
struct skink_block_open {
    uint64_t minor;
};
struct skink_block_open_reply {
    uint64_t bytes;
    uint64_t sector_bytes;
    uint64_t read_only;
};

/* Reads into the grant. Word 0 of the reply: bytes read. EINVAL past the end or misaligned; EIO. */
#define SKINK_BLOCK_READ 0x70002u
struct skink_block_read {
    uint64_t minor;
    uint64_t grant;
    uint64_t position;
    uint64_t bytes;
};

/* Writes from the grant. Word 0 of the reply: bytes written. EROFS: the device is read-only. */
#define SKINK_BLOCK_WRITE 0x70003u
struct skink_block_write {
    uint64_t minor;
    uint64_t grant;
    uint64_t position;
    uint64_t bytes;
};

/* Replies once everything written before is on the medium. */
#define SKINK_BLOCK_FLUSH 0x70004u
struct skink_block_flush {
    uint64_t minor;
};

/* Capabilities (capabilities(7)): the rights into which Linux divides those of root. pm keeps those of each process and tells vfs; each
 * checks them in the calls that it implements. */

/* Number of the last capability. */
#define SKINK_CAPABILITY_LAST 40ull

/* The protocol of character devices: requests of vfs to tty, devfs (memory devices) and rtc, and of tty to uart. Asynchronous: a request
 * may block for long; the tag in word 6 identifies it, in its reply and in Cancel. */

/* Read, Write: do not block. */
#define SKINK_CHARDEV_NONBLOCK 0x800ull

/* Poll: where the number of arrivals begins in the reply. */
#define SKINK_CHARDEV_ARRIVALS_SHIFT 32u

/* Open: the terminal has become the controlling terminal of the session. */
#define SKINK_CHARDEV_OPENED_CONTROLLING 1ull

/* Open: the device has positions: it is asked to ReadAt and WriteAt, lseek(2) works, and it is always ready. */
#define SKINK_CHARDEV_OPENED_POSITIONS 2ull

/* Limit of the further memory of one step of an ioctl, in bytes. */
#define SKINK_CHARDEV_MAX_FURTHER_BYTES 0x10000ull

/* Limit of the steps of an ioctl: those of an I2C_RDWR, its list of messages and the 42 messages that Linux allows. */
#define SKINK_CHARDEV_MAX_FURTHER_STEPS 43ull

/* The half of the reply to Open that has the open file's minor. */
#define SKINK_CHARDEV_OPENED_MINOR_SHIFT 32u

/* Requests of tty to uart. Each byte is read and written exactly once, even if either side restarts: caller of Read counts the input bytes
 * that tty has received, caller of Write the output bytes before these. uart keeps input until a later Read acknowledges it, and skips
 * output that it has sent already. A count that matches nothing uart knows resets its own. */

/* Control: speed, form of a character and flow control, as argument encodes them (LINE_*). EINVAL: the chip does not support them. */
#define SKINK_CHARDEV_SERIAL_SET_LINE 1ull

/* Control: returns the modem lines, encoded as by TIOCMGET (MODEM_*). */
#define SKINK_CHARDEV_SERIAL_GET_MODEM 2ull

/* Control: sets the outgoing modem lines to argument. */
#define SKINK_CHARDEV_SERIAL_SET_MODEM 3ull

/* Control: starts (1) or ends (0) a break. */
#define SKINK_CHARDEV_SERIAL_SET_BREAK 4ull

/* Control: replies once everything written has left the chip. */
#define SKINK_CHARDEV_SERIAL_DRAIN 5ull

/* Control: sends one byte ahead of everything written (XON, XOFF). */
#define SKINK_CHARDEV_SERIAL_SEND_NOW 6ull

/* SET_LINE: the low half is the speed in bit/s, 0: hang up. */
#define SKINK_CHARDEV_SERIAL_LINE_RATE 0xffffffffull

/* SET_LINE: first of two bits with the length of a character, less 5. */
#define SKINK_CHARDEV_SERIAL_LINE_LENGTH_SHIFT 32u

/* SET_LINE: two stop bits. */
#define SKINK_CHARDEV_SERIAL_LINE_TWO_STOP 0x400000000ull

/* SET_LINE: a parity bit. */
#define SKINK_CHARDEV_SERIAL_LINE_PARITY 0x800000000ull

/* SET_LINE: odd parity. */
#define SKINK_CHARDEV_SERIAL_LINE_ODD 0x1000000000ull

/* SET_LINE: the parity bit is always 1 (odd) or 0. */
#define SKINK_CHARDEV_SERIAL_LINE_STICK 0x2000000000ull

/* SET_LINE: flow control by RTS and CTS. */
#define SKINK_CHARDEV_SERIAL_LINE_RTS_CTS 0x4000000000ull

/* 115,200 bit/s, 8 bits, no parity, one stop bit. */
#define SKINK_CHARDEV_SERIAL_LINE_INITIAL 0x30001c200ull

/* Loopback (out): what the chip sends comes back as what it receives, and does not leave it. */
#define SKINK_CHARDEV_SERIAL_MODEM_LOOP 0x8000ull

/* Data terminal ready (out). */
#define SKINK_CHARDEV_SERIAL_MODEM_DTR 2ull

/* Request to send (out). */
#define SKINK_CHARDEV_SERIAL_MODEM_RTS 4ull

/* Clear to send (in). */
#define SKINK_CHARDEV_SERIAL_MODEM_CTS 32ull

/* Carrier detect (in). */
#define SKINK_CHARDEV_SERIAL_MODEM_CD 64ull

/* Ring indicator (in). */
#define SKINK_CHARDEV_SERIAL_MODEM_RI 128ull

/* Data set ready (in). */
#define SKINK_CHARDEV_SERIAL_MODEM_DSR 256ull

/* Character devices. */

/* Opens a minor. flags: Linux O_*; caller: pid (low half) and process group (high half); ids: effective (low half) and real (high half)
 * user id; node: the special file, if it is one of a file system of this driver's own, else 0. Word 0 of the reply: OPENED_*, and in the
 * high half the minor that the open file has from now on, if that is another (/dev/ptmx, /dev/tty). */
#define SKINK_CHARDEV_OPEN 0x80001u
struct skink_chardev_open {
    uint64_t minor;
    uint64_t flags;
    uint64_t caller;
    uint64_t session;
    uint64_t ids;
    uint64_t node;
};

/* The last descriptor of one open file is closed. */
#define SKINK_CHARDEV_CLOSE 0x80002u
struct skink_chardev_close {
    uint64_t minor;
};

/* Reads into the grant. Word 0 of the reply: bytes read. EAGAIN instead of blocking with NONBLOCK in flags. caller: process group (low
 * half) and session (high half) of the reader. */
#define SKINK_CHARDEV_READ 0x80003u
struct skink_chardev_read {
    uint64_t minor;
    uint64_t grant;
    uint64_t bytes;
    uint64_t flags;
    uint64_t caller;
};

/* Writes from the grant. Word 0 of the reply: bytes written. There is no position: WriteAt is for the devices that have one. process: pid
 * of the writer. */
#define SKINK_CHARDEV_WRITE 0x80004u
struct skink_chardev_write {
    uint64_t minor;
    uint64_t grant;
    uint64_t bytes;
    uint64_t flags;
    uint64_t caller;
    uint64_t process;
};

/* ioctl(2): argument as the program passed it; the grant covers 256 bytes of the program's memory at argument (copies of unmapped memory
 * fail with EFAULT). caller: pid (low half) and process group (high half); session of the caller. A driver that needs further memory, to
 * which the argument points, replies with where that is: further_bytes (at most MAX_FURTHER_BYTES, 0: the ioctl is done) at further. It is
 * then asked to Continue. */
#define SKINK_CHARDEV_CONTROL 0x80005u
struct skink_chardev_control {
    uint64_t minor;
    uint64_t request;
    uint64_t argument;
    uint64_t grant;
    uint64_t caller;
    uint64_t session;
};
struct skink_chardev_control_reply {
    uint64_t further;
    uint64_t further_bytes;
};

/* Waits for one of events (Linux POLLIN 1, POLLPRI 2, POLLOUT 4, POLLERR 8, POLLHUP 16); with now returns at once. Word 0 of the reply: the
 * ready events, and from ARRIVALS_SHIFT on a number below 2^27 that is another when something has arrived after it was told; 0: the device
 * does not count. since: such a number, from which the device is ready only when something has arrived for events; 0: none. */
#define SKINK_CHARDEV_POLL 0x80006u
struct skink_chardev_poll {
    uint64_t minor;
    uint64_t events;
    uint64_t now;
    uint64_t since;
};

/* Cancels the caller's request with this tag, of this minor, which returns EINTR or the bytes moved so far. Cancel itself has no reply. */
#define SKINK_CHARDEV_CANCEL 0x80007u
struct skink_chardev_cancel {
    uint64_t tag;
    uint64_t minor;
};

/* Restores the open files after a restart of vfs, before any of its other requests: the grant holds fs::Use records of minors and how many
 * open files each has. What else was open is closed. ENOSYS: this driver does not count. */
#define SKINK_CHARDEV_SET_USES 0x80008u
struct skink_chardev_set_uses {
    uint64_t grant;
    uint64_t bytes;
};

/* mmap(2): what the device has at offset for bytes bytes, both whole pages. Reply: the physical address, and how programs see it
 * (layout::map::COMBINED, UNCACHED or 0). It must be memory of the driver's device or its DMA memory, which vm checks. ENODEV: the device
 * cannot be mapped; EINVAL: it has less. */
#define SKINK_CHARDEV_MAP 0x80009u
struct skink_chardev_map {
    uint64_t minor;
    uint64_t offset;
    uint64_t bytes;
};
struct skink_chardev_map_reply {
    uint64_t physical;
    uint64_t caching;
};

/* Goes on with an ioctl after the driver has asked for further memory. request: as in Control, and in the high half how many times the
 * driver has asked. grants: the argument's (low half) and that of the memory asked for last (high half). The reply is as Control's. A
 * driver keeps nothing between the steps: after a restart of either side the ioctl begins anew. */
#define SKINK_CHARDEV_CONTINUE 0x8000au
struct skink_chardev_continue {
    uint64_t minor;
    uint64_t request;
    uint64_t argument;
    uint64_t grants;
    uint64_t caller;
    uint64_t session;
};
struct skink_chardev_continue_reply {
    uint64_t further;
    uint64_t further_bytes;
};

/* As Read, of a device with positions (OPENED_POSITIONS), from position on. Word 0 of the reply: bytes read, 0 at the end. */
#define SKINK_CHARDEV_READ_AT 0x8000bu
struct skink_chardev_read_at {
    uint64_t minor;
    uint64_t grant;
    uint64_t bytes;
    uint64_t position;
};

/* As Write, of a device with positions. ENOSPC, EFBIG: nothing is there. */
#define SKINK_CHARDEV_WRITE_AT 0x8000cu
struct skink_chardev_write_at {
    uint64_t minor;
    uint64_t grant;
    uint64_t bytes;
    uint64_t position;
};

/* How ticks of the time-stamp counter become nanoseconds, and the page in which programs find what they need to read the clocks without a
 * call. The kernel, vm, which writes the page, and the vDSO compute with the same functions, so that nobody sees a clock go backwards. */

/* Nanoseconds of a second. */
#define SKINK_CLOCK_SECOND_NS 0x3b9aca00ull

/* Bytes of the page that mean something. */
#define SKINK_CLOCK_BYTES 32u

/* The protocol between tty and console, beside chardev::serial: the terminals that are shown on a screen. Bytes go as over a serial line,
 * each exactly once. */

/* Terminals on the screen. */
#define SKINK_CONSOLE_TERMINALS 6u

/* chardev, tty to console: the minor of terminal 1. */
#define SKINK_CONSOLE_MINOR_TERMINAL 0x8000ull

/* chardev, vfs to tty: the minor of the terminal that is shown when it is opened (/dev/tty0). Those of terminals follow. */
#define SKINK_CONSOLE_MINOR_SHOWN 0x7fffull

/* Control: returns the state of the screen as soon as it is not argument: rows in the low 16 bits, columns in the next, then the number of
 * the terminal that is shown, from 1. */
#define SKINK_CONSOLE_WAIT_FOR_CHANGE 256ull

/* Control: returns the next signal of a switch (VT_SETMODE) as soon as there is one: the process in the low half, the signal in the high
 * half. argument: how many tty has taken, so that each comes once. */
#define SKINK_CONSOLE_WAIT_FOR_SIGNAL 257ull

/* Control: the program that had the terminal for itself has ended. It shows text, takes keys as characters, and is left when another is to
 * be shown. */
#define SKINK_CONSOLE_TAKE_BACK 258ull

/* ioctls of consoles. */
#define SKINK_CONSOLE_IOCTL_KDGETLED 0x4b31ull
#define SKINK_CONSOLE_IOCTL_KDSETLED 0x4b32ull
#define SKINK_CONSOLE_IOCTL_KDGKBTYPE 0x4b33ull
#define SKINK_CONSOLE_IOCTL_KDSETMODE 0x4b3aull
#define SKINK_CONSOLE_IOCTL_KDGETMODE 0x4b3bull
#define SKINK_CONSOLE_IOCTL_KDGKBMODE 0x4b44ull
#define SKINK_CONSOLE_IOCTL_KDSKBMODE 0x4b45ull
#define SKINK_CONSOLE_IOCTL_KDGKBENT 0x4b46ull
#define SKINK_CONSOLE_IOCTL_KDSKBENT 0x4b47ull
#define SKINK_CONSOLE_IOCTL_KDGKBSENT 0x4b48ull
#define SKINK_CONSOLE_IOCTL_KDSKBSENT 0x4b49ull
#define SKINK_CONSOLE_IOCTL_KDGKBDIACR 0x4b4aull
#define SKINK_CONSOLE_IOCTL_KDSKBDIACR 0x4b4bull
#define SKINK_CONSOLE_IOCTL_KDGKBMETA 0x4b62ull
#define SKINK_CONSOLE_IOCTL_KDSKBMETA 0x4b63ull
#define SKINK_CONSOLE_IOCTL_KDGKBLED 0x4b64ull
#define SKINK_CONSOLE_IOCTL_KDSKBLED 0x4b65ull
#define SKINK_CONSOLE_IOCTL_GIO_UNIMAP 0x4b66ull
#define SKINK_CONSOLE_IOCTL_PIO_UNIMAP 0x4b67ull
#define SKINK_CONSOLE_IOCTL_PIO_UNIMAPCLR 0x4b68ull
#define SKINK_CONSOLE_IOCTL_KDFONTOP 0x4b72ull
#define SKINK_CONSOLE_IOCTL_KDGKBDIACRUC 0x4bfaull
#define SKINK_CONSOLE_IOCTL_KDSKBDIACRUC 0x4bfbull

/* The byte at its argument says what is meant; 6: which modifiers are held. */
#define SKINK_CONSOLE_IOCTL_TIOCLINUX 0x541cull
#define SKINK_CONSOLE_IOCTL_VT_OPENQRY 0x5600ull
#define SKINK_CONSOLE_IOCTL_VT_GETMODE 0x5601ull
#define SKINK_CONSOLE_IOCTL_VT_SETMODE 0x5602ull
#define SKINK_CONSOLE_IOCTL_VT_GETSTATE 0x5603ull
#define SKINK_CONSOLE_IOCTL_VT_RELDISP 0x5605ull
#define SKINK_CONSOLE_IOCTL_VT_ACTIVATE 0x5606ull
#define SKINK_CONSOLE_IOCTL_VT_WAITACTIVE 0x5607ull
#define SKINK_CONSOLE_IOCTL_VT_DISALLOCATE 0x5608ull
#define SKINK_CONSOLE_IOCTL_VT_LOCKSWITCH 0x560bull
#define SKINK_CONSOLE_IOCTL_VT_UNLOCKSWITCH 0x560cull

/* Bytes of the largest argument. */
#define SKINK_CONSOLE_MAX_ARGUMENT_BYTES 8u

/* What KDFONTOP does, by the first word of struct console_font_op; then flags, width, height, the count of glyphs, and a pointer. */
#define SKINK_CONSOLE_FONT_SET 0u
#define SKINK_CONSOLE_FONT_GET 1u
#define SKINK_CONSOLE_FONT_SET_DEFAULT 2u

/* Largest glyph, and lines that each takes in memory. */
#define SKINK_CONSOLE_FONT_MAX_SIDE 32u
#define SKINK_CONSOLE_FONT_MAX_GLYPHS 512u

/* Limit of font_argument. */
#define SKINK_CONSOLE_MAX_FONT_ARGUMENT 32u

/* Containers: which of them each part of a process's world belongs to. */

/* Containers that exist at a time, the system itself among them. */
#define SKINK_CONTAINER_CONTAINERS 63u

/* Process numbers of one container. Number n of container c is the system's first_pid(c) + n; 0 names no process. */
#define SKINK_CONTAINER_CONTAINER_PIDS 512u

/* The system's process numbers are below this. */
#define SKINK_CONTAINER_PIDS_END 0xfc00u

/* All flags of parts. */
#define SKINK_CONTAINER_PART_FLAGS 0x7e020000ull

/* Operations of the system call linux::CONTAINER: (operation, name low, name high, address, bytes); for who has CAP_SYS_ADMIN over the
 * system. Names are Names. */

/* Makes a container, as the Settings in the buffer say, and a first process in it, a child of the caller as by fork(2): returns its id, and
 * 0 in the child. EEXIST: the name is in use; ENOSPC: too many containers; EINVAL. */
#define SKINK_CONTAINER_CONTAINER_CALL_CREATE 1ull

/* Makes a child of the caller in a container. ENOENT: there is none of this name; ENOMEM: it is ending; EAGAIN: its limit. */
#define SKINK_CONTAINER_CONTAINER_CALL_ENTER 2ull

/* Kills all processes of a container. Returns how many there were, which have not all ended yet. ENOENT. */
#define SKINK_CONTAINER_CONTAINER_CALL_KILL 3ull

/* Fills the buffer with ContainerRecords of all containers with limits. Returns the bytes. */
#define SKINK_CONTAINER_CONTAINER_CALL_LIST 4ull

/* Settings, ContainerRecord: no limit. */
#define SKINK_CONTAINER_NO_LIMIT 0xffffffffffffffffull

/* What a new container may have at most. */
struct skink_settings {
    /* Bytes of memory: anonymous, shared, and of page tables. */
    uint64_t memory_bytes;
    /* Processes and threads. */
    uint64_t processes;
    /* Open files. */
    uint64_t files;
    /* Pipes; a connection of sockets is two. */
    uint64_t pipes;
    /* Share of the processor that it may use while others want it, in percent. */
    uint64_t percent;
};
_Static_assert(sizeof(struct skink_settings) == 40, "size of skink_settings");
_Static_assert(offsetof(struct skink_settings, memory_bytes) == 0, "skink_settings.memory_bytes");
_Static_assert(offsetof(struct skink_settings, processes) == 8, "skink_settings.processes");
_Static_assert(offsetof(struct skink_settings, files) == 16, "skink_settings.files");
_Static_assert(offsetof(struct skink_settings, pipes) == 24, "skink_settings.pipes");
_Static_assert(offsetof(struct skink_settings, percent) == 32, "skink_settings.percent");

/* A container, and what it has. */
struct skink_container_record {
    /* Its name. */
    struct skink_name name;
    /* Its number. */
    uint32_t number;
    /* The system's id of its first process; 0: that has ended. */
    uint32_t first_pid;
    /* What it may have. */
    struct skink_settings settings;
    /* What it has; of the processor: nanoseconds so far. */
    struct skink_settings used;
};
_Static_assert(sizeof(struct skink_container_record) == 104, "size of skink_container_record");
_Static_assert(offsetof(struct skink_container_record, name) == 0, "skink_container_record.name");
_Static_assert(offsetof(struct skink_container_record, number) == 16, "skink_container_record.number");
_Static_assert(offsetof(struct skink_container_record, first_pid) == 20, "skink_container_record.first_pid");
_Static_assert(offsetof(struct skink_container_record, settings) == 24, "skink_container_record.settings");
_Static_assert(offsetof(struct skink_container_record, used) == 64, "skink_container_record.used");

/* Core dumps: what the program that writes one asks pm with the system call skink_core_dump(what, which, buffer, bytes). Only a process
 * that pm has made for a dump may make it, and only about the process that it dumps; others get ENOSYS. */

/* Most bytes of one call with MEMORY. */
#define SKINK_CORE_DUMP_MAX_COPY 0x10000ull

/* The system call. */
#define SKINK_CORE_DUMP_SYSTEM_CALL 0x402u

/* what: writes a CoreHead. */
#define SKINK_CORE_DUMP_HEAD 0ull

/* what: writes the Registers of the thread with the lowest id not below which. Returns its id; 0: there is none. */
#define SKINK_CORE_DUMP_THREAD 1ull

/* what: copies at most bytes bytes of memory at the address which. Returns how many. EFAULT. */
#define SKINK_CORE_DUMP_MEMORY 2ull

/* what: writes two words, where the first memory that is present begins and ends, at or after the address which and before the address
 * bytes; both are bytes when there is none. */
#define SKINK_CORE_DUMP_PRESENT 3ull

/* The process that is dumped. */
struct skink_core_head {
    uint32_t pid;
    uint32_t parent;
    uint32_t group;
    uint32_t session;
    uint32_t user;
    uint32_t user_group;
    /* The signal that kills it. */
    uint32_t signal;
    /* The thread that it was for. */
    uint32_t thread;
    /* RLIMIT_CORE. */
    uint64_t limit;
    /* Where the text of the arguments begins and ends. */
    uint64_t arguments[2];
    /* Where the auxiliary vector begins and ends. */
    uint64_t auxiliary[2];
    /* First bytes of the program's file name. */
    uint8_t name[16];
    /* siginfo_t of the signal. */
    uint8_t info[128];
};
_Static_assert(sizeof(struct skink_core_head) == 216, "size of skink_core_head");
_Static_assert(offsetof(struct skink_core_head, pid) == 0, "skink_core_head.pid");
_Static_assert(offsetof(struct skink_core_head, parent) == 4, "skink_core_head.parent");
_Static_assert(offsetof(struct skink_core_head, group) == 8, "skink_core_head.group");
_Static_assert(offsetof(struct skink_core_head, session) == 12, "skink_core_head.session");
_Static_assert(offsetof(struct skink_core_head, user) == 16, "skink_core_head.user");
_Static_assert(offsetof(struct skink_core_head, user_group) == 20, "skink_core_head.user_group");
_Static_assert(offsetof(struct skink_core_head, signal) == 24, "skink_core_head.signal");
_Static_assert(offsetof(struct skink_core_head, thread) == 28, "skink_core_head.thread");
_Static_assert(offsetof(struct skink_core_head, limit) == 32, "skink_core_head.limit");
_Static_assert(offsetof(struct skink_core_head, arguments) == 40, "skink_core_head.arguments");
_Static_assert(offsetof(struct skink_core_head, auxiliary) == 56, "skink_core_head.auxiliary");
_Static_assert(offsetof(struct skink_core_head, name) == 72, "skink_core_head.name");
_Static_assert(offsetof(struct skink_core_head, info) == 88, "skink_core_head.info");

/* The table of device nodes, as text: the system file declares each device in the entry of the service that drives it, and xtask adds one
 * word for each to the arguments of the services with device_table = true (vfs and devfs). */

/* Limit of the names in /dev that one system declares, links and folders included: devfs has memory for so many. */
#define SKINK_DEVICE_MAX_NAMES 128u

/* The protocol between a driver of a screen and the service that draws text on it (console). */

/* Change: by how many quarters the picture is turned. */
#define SKINK_DISPLAY_CHANGE_ROTATION 0ull

/* Change: whether it is switched off. */
#define SKINK_DISPLAY_CHANGE_BLANK 1ull

/* Change: its first visible pixel, x (low half) and y (high half). */
#define SKINK_DISPLAY_CHANGE_PLACE 2ull

/* Change: the size of the virtual picture, as in Attach. */
#define SKINK_DISPLAY_CHANGE_WHOLE 3ull

/* Change: bits of a pixel. */
#define SKINK_DISPLAY_CHANGE_DEPTH 4ull

/* Attach: 32 bits a pixel, 0x00RRGGBB. */
#define SKINK_DISPLAY_FORMAT_XRGB8888 32ull

/* Attach: 16 bits a pixel, five, six and five bits of red, green and blue. */
#define SKINK_DISPLAY_FORMAT_RGB565 16ull

/* Attach: 8 bits a pixel, through the colour map. */
#define SKINK_DISPLAY_FORMAT_MAPPED 8ull

/* Attach: the bits of the format proper. */
#define SKINK_DISPLAY_FORMAT 255ull

/* Attach: the device must be told of what has changed, with Flush. */
#define SKINK_DISPLAY_NEEDS_FLUSH 256ull

/* Screens. */

/* console: offers the pixels to the caller (vm::OfferMemory) and returns the present mode. size: pixels of a line (low half) and lines
 * (high half); stride: bytes of a line; start: offset of the first visible byte; format: FORMAT_*. Word 0 of the reply: the mode's number,
 * which changes with every change of the mode or of what is visible. From the first Attach on, the driver notifies the caller of each
 * change, and after its own restart. */
#define SKINK_DISPLAY_ATTACH 0xb0001u
struct skink_display_attach_reply {
    uint64_t size;
    uint64_t stride;
    uint64_t start;
    uint64_t format;
};

/* console: what it has drawn in this rectangle is to be seen. A device that shows memory as it is needs no flush (NEEDS_FLUSH in the format
 * is 0). at: x (low half) and y (high half); size: as in Attach. */
#define SKINK_DISPLAY_FLUSH 0xb0002u
struct skink_display_flush {
    uint64_t at;
    uint64_t size;
};

/* procfs: what /sys tells. Word 0 of the reply: bits of a pixel (low byte), and by how many quarters the picture is turned, clockwise (next
 * byte). size and whole: the visible and the virtual picture, as in Attach; place: x and y of the first visible pixel; the device's name,
 * 16 bytes. console replies with by how much its text is turned alone. */
#define SKINK_DISPLAY_DESCRIBE 0xb0003u
struct skink_display_describe_reply {
    uint64_t size;
    uint64_t whole;
    uint64_t place;
    uint64_t name_low;
    uint64_t name_high;
};

/* procfs: changes one thing of the picture (CHANGE_*). console knows CHANGE_ROTATION of its text. EINVAL: it cannot be done. */
#define SKINK_DISPLAY_CHANGE 0xb0004u
struct skink_display_change {
    uint64_t what;
    uint64_t value;
};

/* The protocol of ds, the data store: names of services, and small state that restarted services get back. */

/* Names and small state. Any service may call ds, which keeps everything in its preserved memory. */

/* Returns the endpoint of the service with this name. ENOENT: not in the system file; EAGAIN: down at the moment. */
#define SKINK_DS_LOOKUP 0x50001u
struct skink_ds_lookup {
    uint64_t name_low;
    uint64_t name_high;
};
struct skink_ds_lookup_reply {
    uint64_t endpoint;
};

/* Subscribes the caller: it is notified whenever the service with this name comes up or goes down (name 0: any service). */
#define SKINK_DS_SUBSCRIBE 0x50002u
struct skink_ds_subscribe {
    uint64_t name_low;
    uint64_t name_high;
};

/* Returns the caller's next event; ENOENT: none left. up is false while the service is being restarted; when it is up, endpoint is the
 * successor's. */
#define SKINK_DS_NEXT_EVENT 0x50003u
struct skink_ds_next_event_reply {
    uint64_t name_low;
    uint64_t name_high;
    uint64_t endpoint;
    uint64_t up;
};

/* Stores up to 1024 bytes under a key of the caller, for its successor. ENOSPC: more than 32 keys of one service. */
#define SKINK_DS_STORE 0x50004u
struct skink_ds_store {
    uint64_t key_low;
    uint64_t key_high;
    uint64_t grant;
    uint64_t bytes;
};

/* Copies the value of a key into the grant. Word 0 of the reply: length. ENOENT: no such key. */
#define SKINK_DS_RETRIEVE 0x50005u
struct skink_ds_retrieve {
    uint64_t key_low;
    uint64_t key_high;
    uint64_t grant;
    uint64_t bytes;
};

/* Deletes a key. */
#define SKINK_DS_DELETE 0x50006u
struct skink_ds_delete {
    uint64_t key_low;
    uint64_t key_high;
};

/* As Lookup, but while the service is starting or restarting Endpoint::current of its slot: a call to that waits for it. ENOENT: not in the
 * system file, or down for good. */
#define SKINK_DS_EXPECT 0x50007u
struct skink_ds_expect {
    uint64_t name_low;
    uint64_t name_high;
};
struct skink_ds_expect_reply {
    uint64_t endpoint;
};

/* The protocol of file systems: requests of vfs to ext2, tmpfs, procfs and devfs. Asynchronous (tag in word 6). A node is a number that the
 * file system gives to a file in use. Names and paths come in grants, without NUL, one component; a short name of a Create, an Unlink or an
 * UnlinkUnused in the request itself (ShortName). */

/* PutAll: records in one request at most. */
#define SKINK_FS_PUT_ALL_MOST 64u

/* ReadLink: the link stands for something else than an open file or the program. */
#define SKINK_FS_LINK_OTHER 0xffffffffffffffffull

/* ReadLink: the link stands for the file that the process executes. */
#define SKINK_FS_LINK_PROGRAM 0xfffffffffffffffeull

/* A node is the number of a volume of its file system above these bits, and in them what st_ino says of the file. */
#define SKINK_FS_INODE_BITS 56u

/* Mount: names appear and vanish without a request, so vfs must not cache them (procfs, devpts), unless it is MOUNTED_FIXED (devfs). */
#define SKINK_FS_MOUNTED_VOLATILE 1ull

/* Mount: mounted read-only although read-write was requested. */
#define SKINK_FS_MOUNTED_READ_ONLY 2ull

/* Mount: the content is in memory only, so there is nothing to write back (tmpfs). The low half of its minor is the size in KiB (0: the
 * file system's default), the high half a number that no other mount has. */
#define SKINK_FS_MOUNTED_IN_MEMORY 4ull

/* Mount: what names mean, and which there are, never changes, and attributes by requests alone: vfs may keep them although the file system
 * is volatile. */
#define SKINK_FS_MOUNTED_FIXED 8ull

/* Mount: the file system has a journal, so its type is ext3. */
#define SKINK_FS_MOUNTED_JOURNAL 16ull

/* Mount, to procfs: the low half of minor for the tree of processes. */
#define SKINK_FS_TREE_PROC 0ull

/* Mount, to procfs: the low half of minor for sysfs. */
#define SKINK_FS_TREE_SYS 1ull

/* Position of a directory behind its last name, of file systems that say so. All others are below: vfs preserves so many bits of the
 * position of an open file. */
#define SKINK_FS_DIRECTORY_END 0xffffffffffffull

/* Allocate: allocates blocks for the holes before the end of the file; they read as zeros. */
#define SKINK_FS_ALLOCATE_FILL 0ull

/* Allocate: as ALLOCATE_FILL, and checks that there is space for the part beyond the end, which is not reserved. */
#define SKINK_FS_ALLOCATE_CHECK 1ull

/* Allocate: frees the blocks, and zeroes the parts of blocks at both ends of the range. */
#define SKINK_FS_ALLOCATE_PUNCH 2ull

/* Allocate: zeroes what is allocated; holes stay. */
#define SKINK_FS_ALLOCATE_ZERO 3ull

/* Rename: both names exist, and are swapped at once. */
#define SKINK_FS_RENAME_EXCHANGE 2ull

/* Rename: a whiteout gets the old name. */
#define SKINK_FS_RENAME_WHITEOUT 4ull

/* Bytes of the longest ShortName. */
#define SKINK_FS_SHORT_NAME_MAX 15u

/* The uses that vfs has of a node. */
struct skink_use {
    /* The node. */
    uint64_t node;
    /* Number of uses. */
    uint64_t count;
};
_Static_assert(sizeof(struct skink_use) == 16, "size of skink_use");
_Static_assert(offsetof(struct skink_use, node) == 0, "skink_use.node");
_Static_assert(offsetof(struct skink_use, count) == 8, "skink_use.count");

/* File systems. From vfs only. Replies that describe a node: node, mode (type and permission bits, link count in the high half), ids (uid
 * low, gid high half), size, device (of special files). Each such reply adds one use of the node; Put drops it. */

/* Mounts the file system on the block device whose service and minor are given (service name in the grant, may be empty), flags: Linux
 * MS_RDONLY = 1. Returns the root node. Word 0 of the reply: flags MOUNTED_*. */
#define SKINK_FS_MOUNT 0x60001u
struct skink_fs_mount {
    uint64_t grant;
    uint64_t bytes;
    uint64_t minor;
    uint64_t flags;
};
struct skink_fs_mount_reply {
    uint64_t node;
    uint64_t mode;
    uint64_t ids;
    uint64_t size;
    uint64_t device;
};

/* Writes everything back, marks the file system clean and unmounts it. EBUSY: nodes are in use, and it is not forced. */
#define SKINK_FS_UNMOUNT 0x60002u
struct skink_fs_unmount {
    uint64_t node;
    uint64_t force;
};

/* Returns the node of name in the directory. vfs resolves "." itself, and ".." at the root of the file system. With room for it (144 bytes)
 * the grant gets the node's struct stat in the place of the name. */
#define SKINK_FS_LOOKUP 0x60003u
struct skink_fs_lookup {
    uint64_t directory;
    uint64_t grant;
    uint64_t bytes;
    uint64_t room;
};
struct skink_fs_lookup_reply {
    uint64_t node;
    uint64_t mode;
    uint64_t ids;
    uint64_t size;
    uint64_t device;
};

/* Drops count uses of a node. */
#define SKINK_FS_PUT 0x60004u
struct skink_fs_put {
    uint64_t node;
    uint64_t count;
};

/* Reads into the grant. Word 0 of the reply: bytes read (0: end of file); then the time of last access, in ns since 1970, u64::MAX if the
 * read has left it as it was. kept: vfs keeps what it gets, so the file system need not. */
#define SKINK_FS_READ 0x60005u
struct skink_fs_read {
    uint64_t node;
    uint64_t grant;
    uint64_t position;
    uint64_t bytes;
    uint64_t kept;
};
struct skink_fs_read_reply {
    uint64_t accessed_ns;
};

/* Writes from the grant, and removes the capabilities of a program, as other changes of content and owner do. ids decide whether reserved
 * blocks may be used. written_ns: when a program has written it, in ns since 1970; 0: now. Word 0 of the reply: bytes written; then the new
 * size. */
#define SKINK_FS_WRITE 0x60006u
struct skink_fs_write {
    uint64_t node;
    uint64_t grant;
    uint64_t position;
    uint64_t bytes;
    uint64_t ids;
    uint64_t written_ns;
};
struct skink_fs_write_reply {
    uint64_t size;
};

/* Fills the grant with linux_dirent64 records from position (0: start; else the last reply's). Word 0 of the reply: bytes (0: end).
 * accessed_ns: as of Read. At the position DIRECTORY_END there is nothing; no position is above. */
#define SKINK_FS_GET_DENTS 0x60007u
struct skink_fs_get_dents {
    uint64_t node;
    uint64_t grant;
    uint64_t position;
    uint64_t bytes;
};
struct skink_fs_get_dents_reply {
    uint64_t position;
    uint64_t accessed_ns;
};

/* Makes a file, directory, or special file (type in mode). name and bytes: a ShortName, or the grant that holds the name and its length.
 * EEXIST. Without a name (bytes 0) a regular file that ends with its last use, unless Link gives it a name; EOPNOTSUPP. */
#define SKINK_FS_CREATE 0x60008u
struct skink_fs_create {
    uint64_t directory;
    uint64_t name;
    uint64_t bytes;
    uint64_t mode;
    uint64_t ids;
    uint64_t device;
};
struct skink_fs_create_reply {
    uint64_t node;
    uint64_t mode;
    uint64_t ids;
    uint64_t size;
    uint64_t device;
};

/* Makes a symbolic link: the grant holds the name, then the target. */
#define SKINK_FS_SYMLINK 0x60009u
struct skink_fs_symlink {
    uint64_t directory;
    uint64_t grant;
    uint64_t name_bytes;
    uint64_t target_bytes;
    uint64_t ids;
};

/* Reads a symbolic link into the grant. reader: pid (low half) and endpoint (high half) of the thread that follows it: /proc/self and
 * /proc/thread-self depend on it. Word 0 of the reply: length. For a link of /proc that leads into a process: the pid of that one, else 0,
 * and the descriptor whose open file it stands for, or LINK_PROGRAM, LINK_OTHER. */
#define SKINK_FS_READ_LINK 0x6000au
struct skink_fs_read_link {
    uint64_t node;
    uint64_t grant;
    uint64_t bytes;
    uint64_t reader;
};
struct skink_fs_read_link_reply {
    uint64_t pid;
    uint64_t descriptor;
};

/* Makes a hard link to a node. */
#define SKINK_FS_LINK 0x6000bu
struct skink_fs_link {
    uint64_t directory;
    uint64_t grant;
    uint64_t bytes;
    uint64_t node;
};

/* Unlinks a name of node, given as to Create: a file's, or with directory_wanted an empty directory's. Then drops uses uses of the node, as
 * Put does; if it fails, none. */
#define SKINK_FS_UNLINK 0x6000cu
struct skink_fs_unlink {
    uint64_t directory;
    uint64_t name;
    uint64_t bytes;
    uint64_t directory_wanted;
    uint64_t node;
    uint64_t uses;
};

/* Renames; the grant holds the old name, then the new one. flags: 0; RENAME_EXCHANGE, which swaps the two names: ENOENT without the second,
 * EINVAL if one is a directory above the other; or RENAME_WHITEOUT, which leaves a whiteout (a character device with number 0 and no
 * permissions) under the old name: its owner (low half) and group follow the names in the grant. */
#define SKINK_FS_RENAME 0x6000du
struct skink_fs_rename {
    uint64_t old_directory;
    uint64_t new_directory;
    uint64_t grant;
    uint64_t old_bytes;
    uint64_t new_bytes;
    uint64_t flags;
};

/* Copies the file's struct stat (Linux x86-64, 144 bytes) into the grant; vfs fills st_dev. */
#define SKINK_FS_STAT 0x6000eu
struct skink_fs_stat {
    uint64_t node;
    uint64_t grant;
};

/* Sets the permission bits. Returns, as ChOwn and SetTimes do, what the file's struct stat says since: mode (with the link count in the
 * high half), blocks of 512 bytes, and its times in ns since 1970; u64::MAX: one that has no such number. */
#define SKINK_FS_CH_MOD 0x6000fu
struct skink_fs_ch_mod {
    uint64_t node;
    uint64_t mode;
};
struct skink_fs_ch_mod_reply {
    uint64_t mode;
    uint64_t blocks;
    uint64_t accessed_ns;
    uint64_t modified_ns;
    uint64_t changed_ns;
};

/* Sets owner and group; a half of all ones leaves it unchanged. Clears the set-id bits of files as Linux does. Returns what ChMod does. */
#define SKINK_FS_CH_OWN 0x60010u
struct skink_fs_ch_own {
    uint64_t node;
    uint64_t ids;
};
struct skink_fs_ch_own_reply {
    uint64_t mode;
    uint64_t blocks;
    uint64_t accessed_ns;
    uint64_t modified_ns;
    uint64_t changed_ns;
};

/* Truncates or extends the file to this size. */
#define SKINK_FS_TRUNCATE 0x60011u
struct skink_fs_truncate {
    uint64_t node;
    uint64_t size;
};

/* Sets the times, in ns since 1970; u64::MAX leaves one unchanged, u64::MAX - 1 is the present time. Returns what ChMod does. */
#define SKINK_FS_SET_TIMES 0x60012u
struct skink_fs_set_times {
    uint64_t node;
    uint64_t accessed_ns;
    uint64_t modified_ns;
};
struct skink_fs_set_times_reply {
    uint64_t mode;
    uint64_t blocks;
    uint64_t accessed_ns;
    uint64_t modified_ns;
    uint64_t changed_ns;
};

/* Copies struct statfs (Linux x86-64, 120 bytes) into the grant. */
#define SKINK_FS_STAT_FS 0x60013u
struct skink_fs_stat_fs {
    uint64_t node;
    uint64_t grant;
};

/* Writes everything back. */
#define SKINK_FS_SYNC 0x60014u

/* Restores the uses after a restart of vfs: the grant holds Use records of all nodes that vfs has; every other node is released. A reply
 * repeated after this (its request came again with the same tag) counts its node's use again. */
#define SKINK_FS_SET_USES 0x60015u
struct skink_fs_set_uses {
    uint64_t grant;
    uint64_t bytes;
};

/* Repeats the reply, label included, to the change with this tag (word 6): a restarted vfs asks for the calls that its predecessor had in
 * progress. ENOENT: no change with this tag was made. */
#define SKINK_FS_RECALL 0x60016u

/* Changes the space that this range of the file has, and not its size. mode: ALLOCATE_*. EFBIG, ENOSPC. */
#define SKINK_FS_ALLOCATE 0x60017u
struct skink_fs_allocate {
    uint64_t node;
    uint64_t offset;
    uint64_t bytes;
    uint64_t mode;
};

/* Copies between two files of one file system, or within one if the ranges are apart. ids as of Write. Word 0 of the reply: bytes copied
 * (0: end of the source); then the new size of the target, and the time of last access of the source, in ns since 1970. EXDEV. */
#define SKINK_FS_COPY_RANGE 0x60018u
struct skink_fs_copy_range {
    uint64_t from;
    uint64_t from_position;
    uint64_t to;
    uint64_t to_position;
    uint64_t bytes;
    uint64_t ids;
};
struct skink_fs_copy_range_reply {
    uint64_t size;
    uint64_t accessed_ns;
};

/* Reads an extended attribute: the grant holds its name, and gets the value behind it. Word 0 of the reply: length of the value. ENODATA,
 * EOPNOTSUPP. */
#define SKINK_FS_GET_XATTR 0x60019u
struct skink_fs_get_xattr {
    uint64_t node;
    uint64_t grant;
    uint64_t name_bytes;
};

/* Sets an extended attribute: the grant holds its name, then the value. flags: Linux XATTR_CREATE = 1, XATTR_REPLACE = 2; ids as of Write.
 * EEXIST, ENODATA, ENOSPC, EOPNOTSUPP. */
#define SKINK_FS_SET_XATTR 0x6001au
struct skink_fs_set_xattr {
    uint64_t node;
    uint64_t grant;
    uint64_t name_bytes;
    uint64_t value_bytes;
    uint64_t flags;
    uint64_t ids;
};

/* Removes the extended attribute whose name the grant holds. ENODATA, EOPNOTSUPP. */
#define SKINK_FS_REMOVE_XATTR 0x6001bu
struct skink_fs_remove_xattr {
    uint64_t node;
    uint64_t grant;
    uint64_t bytes;
};

/* Fills the grant with the names of all extended attributes, each with a NUL behind it. Word 0 of the reply: their length. ERANGE: they are
 * longer than bytes; EOPNOTSUPP. */
#define SKINK_FS_LIST_XATTR 0x6001cu
struct skink_fs_list_xattr {
    uint64_t node;
    uint64_t grant;
    uint64_t bytes;
};

/* Looks for data, or for a hole, from a position of a file on. Word 0 of the reply: 1, and where it begins; or 0, and where to go on
 * looking. The end of the file is a hole. ENXIO: the position is behind the end, or no data follows. */
#define SKINK_FS_SEEK_DATA 0x6001du
struct skink_fs_seek_data {
    uint64_t node;
    uint64_t position;
    uint64_t hole;
};
struct skink_fs_seek_data_reply {
    uint64_t position;
};

/* Returns what names the file on its file system as long as it exists, and no other file ever. EOPNOTSUPP. */
#define SKINK_FS_HANDLE 0x6001eu
struct skink_fs_handle {
    uint64_t node;
};
struct skink_fs_handle_reply {
    uint64_t inode;
    uint64_t generation;
};

/* Returns the node of the file with this handle on the file system of root, one of its nodes. ESTALE: there is none; EOPNOTSUPP. */
#define SKINK_FS_OPEN_HANDLE 0x6001fu
struct skink_fs_open_handle {
    uint64_t root;
    uint64_t inode;
    uint64_t generation;
};
struct skink_fs_open_handle_reply {
    uint64_t node;
    uint64_t mode;
    uint64_t ids;
    uint64_t size;
    uint64_t device;
};

/* Unlinks a name, given as to Create, of a file that vfs does not have in use. Returns its node, of which another file may get the number;
 * 0: it has more names. EBUSY: vfs has it in use. EISDIR. */
#define SKINK_FS_UNLINK_UNUSED 0x60020u
struct skink_fs_unlink_unused {
    uint64_t directory;
    uint64_t name;
    uint64_t bytes;
};
struct skink_fs_unlink_unused_reply {
    uint64_t node;
};

/* Drops uses, as Put does, of all nodes that the Use records in the grant name, at most PUT_ALL_MOST. */
#define SKINK_FS_PUT_ALL 0x60021u
struct skink_fs_put_all {
    uint64_t grant;
    uint64_t bytes;
};

/* Grants: the right to copy to or from a buffer, given by its owner to one grantee (docs/book/ideas.md, 5). */

/* No grant. */
#define SKINK_GRANT_NONE 0xffffffffu

/* The grantee may copy from the buffer. */
#define SKINK_GRANT_READ 1u

/* The grantee may copy into the buffer. */
#define SKINK_GRANT_WRITE 2u

/* The entry is valid. */
#define SKINK_GRANT_USED 4u

/* Magic: the buffer is in the memory of owner, not of the granter. Only processes with the privilege flag MAGIC_GRANTS. */
#define SKINK_GRANT_MAGIC 8u

/* One entry of a grant table: 32 bytes, aligned to 32, so that it never crosses a page. */
struct skink_grant_entry {
    /* READ, WRITE, USED, MAGIC. */
    _Alignas(32) uint32_t flags;
    /* Sequence number, low 16 bits. */
    uint32_t sequence;
    /* Grantee: an exact endpoint, or Endpoint::current for every incarnation of a service. */
    endpoint_t grantee;
    /* Owner of the buffer, for magic grants. */
    endpoint_t owner;
    /* Start of the buffer in its owner's memory. */
    uint64_t address;
    /* Length of the buffer. */
    uint64_t bytes;
};
_Static_assert(sizeof(struct skink_grant_entry) == 32, "size of skink_grant_entry");
_Static_assert(offsetof(struct skink_grant_entry, flags) == 0, "skink_grant_entry.flags");
_Static_assert(offsetof(struct skink_grant_entry, sequence) == 4, "skink_grant_entry.sequence");
_Static_assert(offsetof(struct skink_grant_entry, grantee) == 8, "skink_grant_entry.grantee");
_Static_assert(offsetof(struct skink_grant_entry, owner) == 12, "skink_grant_entry.owner");
_Static_assert(offsetof(struct skink_grant_entry, address) == 16, "skink_grant_entry.address");
_Static_assert(offsetof(struct skink_grant_entry, bytes) == 24, "skink_grant_entry.bytes");

/* Limit of entries in one table. */
#define SKINK_GRANT_MAX_GRANTS 0x1000u

/* Information that GetInfo returns: (what, index, own address, bytes). */

/* The kernel command line, text. */
#define SKINK_INFO_COMMAND_LINE 0ull

/* Free physical memory: array of privilege::MemoryRange. vm. */
#define SKINK_INFO_FREE_MEMORY 1ull

/* ThreadInfo of the slot index; ESRCH when it is free. */
#define SKINK_INFO_THREAD 2ull

/* What the thread with the endpoint index waits for, in the call's result: ThreadInfo::state, and ThreadInfo::blocked_on in the upper half.
 * Nothing is written. EDEADSRCDST when it has ended. */
#define SKINK_INFO_WAIT 9ull

/* KernelInfo. */
#define SKINK_INFO_KERNEL 3ull

/* The kernel's log, text, newest 16 KiB. */
#define SKINK_INFO_LOG 4ull

/* privilege::MemoryRange of the boot archive. */
#define SKINK_INFO_ARCHIVE 5ull

/* Framebuffer; ENOENT when the boot loader gave none. */
#define SKINK_INFO_FRAMEBUFFER 6ull

/* privilege::Privileges of the slot index: rs any, others their own. */
#define SKINK_INFO_PRIVILEGES 7ull

/* Address of the ACPI RSDP, a u64; 0 when unknown. */
#define SKINK_INFO_ACPI 8ull

/* Bytes of the trace ring (trace) from the offset what - TRACE on. Only who may make the kernel call Trace. */
#define SKINK_INFO_TRACE 0x100000000ull

/* States of a thread in ThreadInfo::state. */
#define SKINK_INFO_STATE_READY 0u
#define SKINK_INFO_STATE_SENDING 1u

/* It waits for a message. */
#define SKINK_INFO_STATE_RECEIVING 2u
#define SKINK_INFO_STATE_STOPPED 3u

/* It waits for the answer to a message that the kernel has sent in its name. */
#define SKINK_INFO_STATE_FAULTING 4u

/* Its message was received, and it waits for the answer: that of a successor, perhaps, which is to receive the message again. */
#define SKINK_INFO_STATE_ANSWERING 5u

/* One thread. */
struct skink_thread_info {
    /* Its endpoint. */
    endpoint_t endpoint;
    /* One of state. */
    uint32_t state;
    /* Endpoint that it waits for, or NONE. */
    endpoint_t blocked_on;
    /* Queue, inheritance included: as in the kernel call Schedule. */
    uint32_t queue;
    /* Time spent in user mode and in the kernel on its behalf. */
    uint64_t run_ns;
    /* Messages it has sent and received. */
    uint64_t messages;
    /* Name, for services. */
    struct skink_name name;
    /* Instruction pointer. */
    uint64_t ip;
    /* Stack pointer. */
    uint64_t sp;
    /* Number of the messages, kernel calls and ports that the kernel has refused it. */
    uint64_t denials;
};
_Static_assert(sizeof(struct skink_thread_info) == 72, "size of skink_thread_info");
_Static_assert(offsetof(struct skink_thread_info, endpoint) == 0, "skink_thread_info.endpoint");
_Static_assert(offsetof(struct skink_thread_info, state) == 4, "skink_thread_info.state");
_Static_assert(offsetof(struct skink_thread_info, blocked_on) == 8, "skink_thread_info.blocked_on");
_Static_assert(offsetof(struct skink_thread_info, queue) == 12, "skink_thread_info.queue");
_Static_assert(offsetof(struct skink_thread_info, run_ns) == 16, "skink_thread_info.run_ns");
_Static_assert(offsetof(struct skink_thread_info, messages) == 24, "skink_thread_info.messages");
_Static_assert(offsetof(struct skink_thread_info, name) == 32, "skink_thread_info.name");
_Static_assert(offsetof(struct skink_thread_info, ip) == 48, "skink_thread_info.ip");
_Static_assert(offsetof(struct skink_thread_info, sp) == 56, "skink_thread_info.sp");
_Static_assert(offsetof(struct skink_thread_info, denials) == 64, "skink_thread_info.denials");

/* The kernel as a whole. */
struct skink_kernel_info {
    /* Monotonic time. */
    uint64_t now_ns;
    /* Time without a ready thread. */
    uint64_t idle_ns;
    /* TSC ticks per second. */
    uint64_t tsc_hz;
    /* TSC when the kernel was entered. */
    uint64_t entry_tsc;
    /* Messages delivered since boot. */
    uint64_t messages;
    /* Context switches since boot. */
    uint64_t switches;
    /* Interrupts since boot. */
    uint64_t interrupts;
    /* Memory used by the kernel itself, page tables included. */
    uint64_t kernel_bytes;
    /* All usable physical memory. */
    uint64_t total_bytes;
    /* Page-table frames left in the pool. */
    uint64_t pool_frames;
    /* Threads that exist. */
    uint64_t threads;
};
_Static_assert(sizeof(struct skink_kernel_info) == 88, "size of skink_kernel_info");
_Static_assert(offsetof(struct skink_kernel_info, now_ns) == 0, "skink_kernel_info.now_ns");
_Static_assert(offsetof(struct skink_kernel_info, idle_ns) == 8, "skink_kernel_info.idle_ns");
_Static_assert(offsetof(struct skink_kernel_info, tsc_hz) == 16, "skink_kernel_info.tsc_hz");
_Static_assert(offsetof(struct skink_kernel_info, entry_tsc) == 24, "skink_kernel_info.entry_tsc");
_Static_assert(offsetof(struct skink_kernel_info, messages) == 32, "skink_kernel_info.messages");
_Static_assert(offsetof(struct skink_kernel_info, switches) == 40, "skink_kernel_info.switches");
_Static_assert(offsetof(struct skink_kernel_info, interrupts) == 48, "skink_kernel_info.interrupts");
_Static_assert(offsetof(struct skink_kernel_info, kernel_bytes) == 56, "skink_kernel_info.kernel_bytes");
_Static_assert(offsetof(struct skink_kernel_info, total_bytes) == 64, "skink_kernel_info.total_bytes");
_Static_assert(offsetof(struct skink_kernel_info, pool_frames) == 72, "skink_kernel_info.pool_frames");
_Static_assert(offsetof(struct skink_kernel_info, threads) == 80, "skink_kernel_info.threads");

/* The boot loader's frame buffer. */
struct skink_framebuffer {
    /* Physical address. */
    uint64_t address;
    /* Bytes per line. */
    uint32_t pitch;
    /* Pixels per line. */
    uint32_t width;
    /* Lines. */
    uint32_t height;
    /* Bits per pixel. */
    uint32_t depth;
};
_Static_assert(sizeof(struct skink_framebuffer) == 24, "size of skink_framebuffer");
_Static_assert(offsetof(struct skink_framebuffer, address) == 0, "skink_framebuffer.address");
_Static_assert(offsetof(struct skink_framebuffer, pitch) == 8, "skink_framebuffer.pitch");
_Static_assert(offsetof(struct skink_framebuffer, width) == 12, "skink_framebuffer.width");
_Static_assert(offsetof(struct skink_framebuffer, height) == 16, "skink_framebuffer.height");
_Static_assert(offsetof(struct skink_framebuffer, depth) == 20, "skink_framebuffer.depth");

/* Input devices (keyboards, pointers, touch screens): what input asks their drivers, and what console asks input. Both are chardev. */

/* Size of an event record. */
#define SKINK_INPUT_EVENT_BYTES 16u

/* Control to a driver: fills the grant with the minor's Description. ENXIO: there is no such device. */
#define SKINK_INPUT_DESCRIBE 1ull

/* Control to a driver, or of console to input: sets the lights to argument, bits by number LED_* of Linux. */
#define SKINK_INPUT_SET_LEDS 2ull

/* The minor of input from which console reads the events of all keyboards that no program has for itself (EVIOCGRAB). */
#define SKINK_INPUT_MINOR_KEYS 0x8000ull

/* Kinds of events. */

/* The end of a packet. */
#define SKINK_INPUT_KIND_SYN 0u

/* A key or button: 1 pressed, 0 released, 2 repeated. */
#define SKINK_INPUT_KIND_KEY 1u

/* A relative axis. */
#define SKINK_INPUT_KIND_REL 2u

/* An absolute axis. */
#define SKINK_INPUT_KIND_ABS 3u

/* Other facts, such as the scan code. */
#define SKINK_INPUT_KIND_MSC 4u

/* A switch. */
#define SKINK_INPUT_KIND_SW 5u

/* A light. */
#define SKINK_INPUT_KIND_LED 17u

/* Settings of the key repeat. */
#define SKINK_INPUT_KIND_REP 20u

/* Bytes of the bitmap of keys (KEY_CNT of Linux is 768). */
#define SKINK_INPUT_KEY_MAP_BYTES 96u

/* Absolute axes that a description has room for. */
#define SKINK_INPUT_MAX_AXES 16u

/* Bytes of a device's name. */
#define SKINK_INPUT_NAME_BYTES 48u

/* Bytes of a device's place. */
#define SKINK_INPUT_PLACE_BYTES 32u

/* Size of the record that DESCRIBE returns. */
#define SKINK_INPUT_DESCRIPTION_BYTES 540u

/* Flag of a description: the device repeats keys that are held, and sends them as pressed again. */
#define SKINK_INPUT_FLAG_REPEATS 1u

/* Messages of the kernel itself. Notifications come from HARDWARE and CLOCK; every other message comes from the thread concerned, which
 * blocks until the reply as if it had called SENDREC. */

/* Vector in the report of a vm or rs that hangs: the kernel has cancelled its wait and logged the reason. */
#define SKINK_KERNEL_HUNG_VECTOR 257ull

/* The page is present: its rights deny the access. */
#define SKINK_KERNEL_ACCESS_PRESENT 1ull

/* The access was a write. */
#define SKINK_KERNEL_ACCESS_WRITE 2ull

/* The access was an instruction fetch. */
#define SKINK_KERNEL_ACCESS_EXECUTE 16ull

/* Policies of IrqSet. */

/* The line is masked when the interrupt comes, until IrqEnable. */
#define SKINK_KERNEL_IRQ_MASK_UNTIL_ENABLED 0ull

/* The kernel unmasks the line at once (edge-triggered lines whose driver cannot lose events). */
#define SKINK_KERNEL_IRQ_REENABLE 1ull

/* The kernel's own messages. Programs cannot send these labels. */

/* A notification. From HARDWARE: bits has one bit for each hook that fired. From CLOCK: the alarm. From a process: notify was called, or
 * SENDNB may be retried. time_ns: time of delivery. */
#define SKINK_KERNEL_NOTIFY 0x40000001u
struct skink_kernel_notify {
    uint64_t time_ns;
    uint64_t bits;
};

/* Page fault of a thread; sent to vm. access: bits of ACCESS_*. Status 0 makes the thread retry the access; an error raises an exception:
 * EFAULT a segmentation violation, ENOMEM out of memory, any other a bus error. */
#define SKINK_KERNEL_FAULT 0x40000002u
struct skink_kernel_fault {
    uint64_t address;
    uint64_t access;
    uint64_t ip;
};

/* A kernel call of the sender needs memory of owner that is not mapped, or not with this right; sent to vm. Status 0 continues the call, an
 * error makes it fail with EFAULT. */
#define SKINK_KERNEL_COPY_FAULT 0x40000003u
struct skink_kernel_copy_fault {
    uint64_t address;
    uint64_t access;
    uint64_t owner;
};

/* Unhandled exception of a thread; sent to its manager (pm for programs, rs for services), which kills the thread, or sets its registers
 * and replies. vector: of the CPU; 14 with error = vm's negative error for a page fault. */
#define SKINK_KERNEL_EXCEPTION 0x40000004u
struct skink_kernel_exception {
    uint64_t vector;
    uint64_t error;
    uint64_t ip;
    uint64_t address;
};

/* The thread was marked by Interrupt and is about to run in user mode; sent to pm. The reply or SetRegisters resumes it. */
#define SKINK_KERNEL_INTERRUPTED 0x40000005u

/* The thread called Exit; sent to its manager, which destroys it. */
#define SKINK_KERNEL_EXITED 0x40000006u
struct skink_kernel_exited {
    uint64_t status;
};

/* The application thread is about to become real-time; sent to vm, which makes all of its memory resident and extends the stack below this
 * address. Status 0 or ENOMEM. */
#define SKINK_KERNEL_RESIDENT 0x40000007u
struct skink_kernel_resident {
    uint64_t stack;
};

/* The thread, whose Linux calls are reported (SetRegisters), makes this one; sent to pm, which resumes it with SetRegisters. */
#define SKINK_KERNEL_LINUX_CALL 0x40000008u
struct skink_kernel_linux_call {
    uint64_t number;
};

/* Addresses and sizes that more than one program must agree on. */

/* A page, in bytes. */
#define SKINK_LAYOUT_PAGE_BYTES 0x1000ull

/* End of user addresses. */
#define SKINK_LAYOUT_USER_END 0x7ffffffff000ull

/* Lowest address a program may map. */
#define SKINK_LAYOUT_USER_START 0x10000ull

/* A program finds the page of the clocks right behind its stack, and behind that page its vDSO, of one page. */
#define SKINK_LAYOUT_VDSO_OFFSET 0x1000ull

/* What lies behind the stack of a program. */
#define SKINK_LAYOUT_VDSO_BYTES 0x2000ull

/* Services are linked here. */
#define SKINK_LAYOUT_SERVICE_IMAGE 0x400000ull

/* A service's heap starts here; its size is heap_bytes of the system file. */
#define SKINK_LAYOUT_SERVICE_HEAP 0x100000000ull

/* A service's preserved memory (keep_bytes of the system file): the same pages in each incarnation. */
#define SKINK_LAYOUT_SERVICE_KEEP 0x200000000ull

/* Physical memory that vm maps for drivers (registers, DMA buffers) starts here. */
#define SKINK_LAYOUT_SERVICE_DEVICES 0x300000000ull

/* End of a service's stack; a gap page is below the stack. */
#define SKINK_LAYOUT_SERVICE_STACK_END 0x400000000ull

/* Size of a service's stack. */
#define SKINK_LAYOUT_SERVICE_STACK_BYTES 0x40000ull

/* A service finds the page of the clocks here; rs and vm, which the kernel starts, have none. It shares a page table with the stack. */
#define SKINK_LAYOUT_SERVICE_CLOCKS 0x3fff80000ull

/* The kernel maps the boot archive here, read-only, in rs only. */
#define SKINK_LAYOUT_RS_ARCHIVE 0x1000000000ull

/* Heap the kernel gives to rs and to vm, which it starts itself from the archive. It is mapped before they run. */
#define SKINK_LAYOUT_BOOT_HEAP_BYTES 0x200000ull

/* Limit of one copying kernel call, in bytes. */
#define SKINK_LAYOUT_MAX_COPY 0x400000ull

/* Limit of the text of Diag, in bytes. */
#define SKINK_LAYOUT_MAX_DIAG 0x400ull

/* Limit of address spaces. */
#define SKINK_LAYOUT_SPACES 0x480u

/* Flags of SpaceMap and SpaceProtect. Readable always; writable and executable exclude each other (W^X): EINVAL. (If a program requests
 * both, vm maps the page writable until it is executed, then executable.) */

/* Writable. */
#define SKINK_LAYOUT_MAP_WRITE 1ull

/* Executable. */
#define SKINK_LAYOUT_MAP_EXECUTE 2ull

/* SpaceMap: zeroes the frames first. */
#define SKINK_LAYOUT_MAP_ZERO 4ull

/* Not cached: device registers. */
#define SKINK_LAYOUT_MAP_UNCACHED 8ull

/* Not cached, and writes are combined and may be reordered: pixels. */
#define SKINK_LAYOUT_MAP_COMBINED 32ull

/* SpaceProtect: no access at all (PROT_NONE); the frames stay. */
#define SKINK_LAYOUT_MAP_NONE 16ull

/* How a native program starts: rdi start kind, rsi and rdx address and length of its argument text, r10 and r8 start and length of its
 * heap, r9 its endpoint, rsp end of its stack (16-byte aligned). */

/* The first incarnation. */
#define SKINK_LAYOUT_START_KIND_FRESH 0ull

/* The predecessor crashed, hung or was killed. */
#define SKINK_LAYOUT_START_KIND_RESTARTED 1ull

/* The predecessor was replaced by a new binary. */
#define SKINK_LAYOUT_START_KIND_UPDATED 2ull

/* Limits that a service enforces and another one shows, below /proc/sys. docs/book/limits.md has them all. */

/* Ids of processes and threads are below this (pm), and below a smaller number if root says so. */
#define SKINK_LIMITS_PIDS 0x8000u

/* The least that root may bound ids to: those of services and of what booted first are below. */
#define SKINK_LIMITS_PIDS_MIN 301u

/* Supplementary groups of a process (pm, vfs). */
#define SKINK_LIMITS_GROUPS 0x400u

/* Descriptors of a process (pm, vfs). */
#define SKINK_LIMITS_DESCRIPTORS 0x100000ull

/* Bytes that a pipe may hold (vfs). */
#define SKINK_LIMITS_PIPE_BYTES 0x100000u

/* Connections that wait in a listening socket (vfs). */
#define SKINK_LIMITS_BACKLOG 0x1000u

/* Largest buffer of a socket that setsockopt accepts (vfs). */
#define SKINK_LIMITS_SOCKET_BUFFER 0x34000u

/* Sets of System V semaphores (pm). */
#define SKINK_LIMITS_SEMAPHORE_SETS 128u

/* Semaphores of a set (pm). */
#define SKINK_LIMITS_SEMAPHORES 256u

/* Operations of one semop (pm). */
#define SKINK_LIMITS_SEMAPHORE_OPERATIONS 500u

/* System V message queues (pm). */
#define SKINK_LIMITS_MESSAGE_QUEUES 128u

/* Bytes of a message (pm). */
#define SKINK_LIMITS_MESSAGE_BYTES 0x2000u

/* Bytes of a message queue, unless root allows more (pm). */
#define SKINK_LIMITS_MESSAGE_QUEUE_BYTES 0x4000u

/* System V segments of shared memory (pm). */
#define SKINK_LIMITS_SEGMENTS 256u

/* Bytes of a segment (pm). */
#define SKINK_LIMITS_SEGMENT_BYTES 0xfffffffffeffffffull

/* POSIX message queues (vfs). */
#define SKINK_LIMITS_POSIX_QUEUES 256u

/* Messages of a POSIX queue unless told otherwise, and the most that users other than root may ask for (vfs). */
#define SKINK_LIMITS_POSIX_MESSAGES 10ull

/* Bytes of a message of a POSIX queue, in the same way (vfs). */
#define SKINK_LIMITS_POSIX_MESSAGE_BYTES 0x2000ull

/* Files of a file system that are in use at a time (file systems on disks; vfs divides them among users). */
#define SKINK_LIMITS_FILES_IN_USE 0x2000u

/* Loop devices (vfs): /dev/loop0 and the following. */
#define SKINK_LIMITS_LOOP_DEVICES 8u

/* Frames that programs leave free (vm). */
#define SKINK_LIMITS_FREE_FRAMES 192u

/* Mappings of a process (vm). */
#define SKINK_LIMITS_MAPPINGS 0x4000u

/* M3-IPC: messages between ordinary programs of one container. What programs call is in lib/m3ipc; here is how its library reaches the
 * server m3ipc. */

/* Text: /proc/drvs/info. */
#define SKINK_M3IPC_TEXT_NODE 0ull

/* Text: /proc/drvs/nodes. */
#define SKINK_M3IPC_TEXT_NODES 1ull

/* Text: info of a container. */
#define SKINK_M3IPC_TEXT_CONTAINER 2ull

/* Text: procs of a container. */
#define SKINK_M3IPC_TEXT_PROCESSES 3ull

/* Text: stats of a container. */
#define SKINK_M3IPC_TEXT_COUNTS 4ull

/* Number of the routed call. */
#define SKINK_M3IPC_SYSTEM_CALL 0x403u

/* Calls for the library alone. */

/* (address of a 64-bit count of what the thread sends by primitives, or 0) → 0: the calling thread sends and receives by the calls of
 * m3ipc::call; else by the kernel's primitives, and the result is the index of its slot in the low 8 bits, and above them another number
 * for each binding. EMOLNOTBIND. */
#define SKINK_M3IPC_OWN_MODE 256ull

/* (endpoint) → the kernel's endpoint of a process, and FOUND; 0: it is reached by the calls of m3ipc::call only. Stays valid as long as
 * that thread lives. Errors as of send. */
#define SKINK_M3IPC_OWN_RESOLVE 257ull

/* (kernel's endpoint) → the endpoint (32 bits) of the thread that a message came from, and FOUND. EMOLNOTBIND. */
#define SKINK_M3IPC_OWN_NAME 258ull

/* (endpoint or ANY, address of message, 1: messages only): receives what waits in the server, without waiting. → LAST: nothing else waits
 * there; 0: something may. EMOLAGAIN. */
#define SKINK_M3IPC_OWN_FETCH 259ull

/* (call, endpoint, address of message): a primitive in this call failed with EDEADSRCDST or ECALLDENIED, or ended with a notification. →
 * REDO: it is to be made again, after MODE and RESOLVE; 0: the answer is there; else its error. */
#define SKINK_M3IPC_OWN_RESUME 260ull

/* (milliseconds): the primitives of this thread fail from then on with EMOLTIMEDOUT; a negative number: not any more. */
#define SKINK_M3IPC_OWN_LIMIT 261ull

/* FETCH: it was the last. */
#define SKINK_M3IPC_OWN_LAST 1ull

/* Set in a word that has a result beside errors. */
#define SKINK_M3IPC_OWN_FOUND 0x100000000ull

/* RESUME: the call is to be made again. */
#define SKINK_M3IPC_OWN_REDO 0x100000000ull

/* What procfs asks m3ipc, and pm tells it. */

/* Writes a file of /proc/drvs (m3ipc::TEXT_*) into the grant; those of containers for this one. Word 0 of the reply: bytes written. ESRCH:
 * there is no such container; EINVAL, ENOSPC. */
#define SKINK_M3IPC_TEXT 0xc0001u
struct skink_m3ipc_text {
    uint64_t what;
    uint64_t container;
    uint64_t grant;
    uint64_t bytes;
};

/* Returns the containers, a bit each. */
#define SKINK_M3IPC_CONTAINERS 0xc0002u
struct skink_m3ipc_containers_reply {
    uint64_t containers;
};

/* From pm, without a reply: the thread runs no more, and its process ends as soon as those who wait for it have had a chance to run. */
#define SKINK_M3IPC_ENDS 0xc0003u
struct skink_m3ipc_ends {
    uint64_t thread;
};

/* The protocol of the PCI service: it finds devices and lets a driver access only its own. */

/* PCI. rs asks for the resources of a device before it starts its driver; a driver touches only the configuration space of the device that
 * the system file gives it (pci = "1af4:1042"). */

/* rs: assigns device number index with this vendor and device to the driver in slot. Returns its bus address and interrupt lines: one in
 * each of the low two bytes, 0xff: none. (IDE controllers may have two.) ENODEV: no such device. sizes: 0, or what a predecessor returned
 * for this device. With 0, pci measures the device's ranges, and the device does not answer its driver meanwhile; so nobody may be using
 * it. */
#define SKINK_PCI_ASSIGN 0xa0001u
struct skink_pci_assign {
    uint64_t slot;
    uint64_t vendor;
    uint64_t device;
    uint64_t index;
    uint64_t sizes;
};
struct skink_pci_assign_reply {
    uint64_t address;
    uint64_t interrupt;
    uint64_t sizes;
};

/* rs: returns memory or port range number bar (0 to 5) of an assigned device: start, length (0: none), whether it is ports. An IDE
 * controller in compatibility mode has 0x1f0 to 0x1f7 as number 0, 0x3f6 as 1, 0x170 to 0x177 as 2, 0x376 as 3. */
#define SKINK_PCI_BAR 0xa0002u
struct skink_pci_bar {
    uint64_t slot;
    uint64_t bar;
};
struct skink_pci_bar_reply {
    uint64_t start;
    uint64_t bytes;
    uint64_t ports;
};

/* A driver: reads width bytes (1, 2, 4) of its device's configuration space. */
#define SKINK_PCI_READ_CONFIG 0xa0003u
struct skink_pci_read_config {
    uint64_t offset;
    uint64_t width;
};
struct skink_pci_read_config_reply {
    uint64_t value;
};

/* A driver: writes width bytes of its device's configuration space. EPERM: a BAR. */
#define SKINK_PCI_WRITE_CONFIG 0xa0004u
struct skink_pci_write_config {
    uint64_t offset;
    uint64_t width;
    uint64_t value;
};

/* A driver: as Bar, for its own device. */
#define SKINK_PCI_OWN_BAR 0xa0005u
struct skink_pci_own_bar {
    uint64_t bar;
};
struct skink_pci_own_bar_reply {
    uint64_t start;
    uint64_t bytes;
    uint64_t ports;
};

/* A driver: lets its device reach all DMA memory that vm has given to the driver's slot. With an IOMMU, a device reaches no other memory;
 * without one, it reaches all of it, and this does nothing. ENODEV: it has no device; ENOMEM: no room for the tables. */
#define SKINK_PCI_SHARE_DMA 0xa0006u

/* The protocol of pm, the process manager: processes, threads, signals, ids, sessions, wait, exec, timers of programs. The Linux calls for
 * them are routed to pm (list: systems/ *.toml). pm blocks only on vm, vfs and the kernel. */

/* System V segments of shared memory. Values of a record: bytes, creating process, process that attached or detached last, attaches, times
 * of the last attach, detach and change, resident bytes. */
#define SKINK_PM_IPC_SEGMENTS 0ull

/* System V sets of semaphores. Values: semaphores, times of the last operation and change. */
#define SKINK_PM_IPC_SEMAPHORES 1ull

/* System V message queues. Values: bytes, messages, processes that sent and received last, times of the last sending, receiving and change. */
#define SKINK_PM_IPC_MESSAGES 2ull

/* Values of a record. */
#define SKINK_PM_IPC_VALUES 8u

/* A System V object. */
struct skink_ipc_record {
    /* Index in the table of its kind. */
    uint32_t index;
    /* 0: private. */
    uint32_t key;
    /* Identifier. */
    uint32_t id;
    /* Rights, and marks of segments. */
    uint32_t mode;
    /* Owner. */
    uint32_t user;
    /* Owner's group. */
    uint32_t group;
    /* Who made it. */
    uint32_t creator;
    /* Its group. */
    uint32_t creator_group;
    /* By kind. */
    uint64_t values[8];
};
_Static_assert(sizeof(struct skink_ipc_record) == 96, "size of skink_ipc_record");
_Static_assert(offsetof(struct skink_ipc_record, index) == 0, "skink_ipc_record.index");
_Static_assert(offsetof(struct skink_ipc_record, key) == 4, "skink_ipc_record.key");
_Static_assert(offsetof(struct skink_ipc_record, id) == 8, "skink_ipc_record.id");
_Static_assert(offsetof(struct skink_ipc_record, mode) == 12, "skink_ipc_record.mode");
_Static_assert(offsetof(struct skink_ipc_record, user) == 16, "skink_ipc_record.user");
_Static_assert(offsetof(struct skink_ipc_record, group) == 20, "skink_ipc_record.group");
_Static_assert(offsetof(struct skink_ipc_record, creator) == 24, "skink_ipc_record.creator");
_Static_assert(offsetof(struct skink_ipc_record, creator_group) == 28, "skink_ipc_record.creator_group");
_Static_assert(offsetof(struct skink_ipc_record, values) == 32, "skink_ipc_record.values");

/* ProcessText: the arguments, each ended by NUL. */
#define SKINK_PM_TEXT_ARGUMENTS 0ull

/* ProcessText: the environment, each variable ended by NUL. */
#define SKINK_PM_TEXT_ENVIRONMENT 1ull

/* ProcessText: the absolute path of the executable. */
#define SKINK_PM_TEXT_EXECUTABLE 2ull

/* ProcessText: the supplementary groups, as u32. */
#define SKINK_PM_TEXT_GROUPS 3ull

/* ProcessText: soft and hard limit of each resource, as u64. */
#define SKINK_PM_TEXT_LIMITS 4ull

/* ProcessText: the auxiliary vector. */
#define SKINK_PM_TEXT_AUXILIARY 5ull

/* ProcessText: uid_map. */
#define SKINK_PM_TEXT_USER_MAP 6ull

/* ProcessText: gid_map. */
#define SKINK_PM_TEXT_GROUP_MAP 7ull

/* ProcessText: setgroups. */
#define SKINK_PM_TEXT_SETGROUPS 8ull

/* Setting: programs start at random addresses (1, 2) or at fixed ones (0): /proc/sys/kernel/randomize_va_space. */
#define SKINK_PM_SETTING_RANDOM_PLACES 0ull

/* Setting: ids are below this: /proc/sys/kernel/pid_max. */
#define SKINK_PM_SETTING_PID_MAX 1ull

/* State of a process or a thread. */
struct skink_process_record {
    /* Main thread (or the service). */
    endpoint_t endpoint;
    uint32_t pid;
    uint32_t parent;
    uint32_t group;
    uint32_t session;
    /* Device number of the controlling terminal, 0: none. */
    uint32_t terminal;
    uint32_t uid;
    uint32_t euid;
    uint32_t suid;
    uint32_t gid;
    uint32_t egid;
    uint32_t sgid;
    uint32_t threads;
    /* Letter as in /proc/PID/stat: R S D T t Z. */
    uint32_t state;
    /* 1: a service, shown like a kernel thread, without memory map or arguments. */
    uint32_t service;
    int32_t nice;
    uint64_t started_ns;
    uint64_t user_ns;
    uint64_t children_ns;
    /* For this thread (in a process's record: its first one). */
    uint64_t signals_pending;
    /* For any thread of the process. */
    uint64_t signals_shared;
    uint64_t signals_blocked;
    uint64_t signals_ignored;
    uint64_t signals_caught;
    uint64_t capabilities_inheritable;
    uint64_t capabilities_permitted;
    uint64_t capabilities_effective;
    uint64_t capabilities_bounding;
    uint64_t capabilities_ambient;
    /* Its containers (Parts). */
    uint64_t parts;
    /* How often the thread has waited for a server. */
    uint64_t waits;
    /* Name, first 15 bytes of the file name. */
    uint8_t name[16];
    /* Id of the process, in a thread's record too. */
    uint32_t process;
    /* Linux's scheduling policy, and real-time priority or 0. */
    uint32_t policy;
    uint32_t priority;
    /* Effective real-time priority, inheritance included; 0: time-shared. */
    uint32_t effective;
    uint32_t fsuid;
    uint32_t fsgid;
    /* 1: an exec gives it no rights (PR_SET_NO_NEW_PRIVS). */
    uint16_t no_new_privileges;
    /* Mode of seccomp(2) of the thread: 0 none, 1 strict, 2 filters. */
    uint16_t seccomp;
    /* Queued signals and timers of its user, and how many it may have. */
    uint32_t signals_queued;
    uint32_t signals_queued_max;
    /* Id of the process that traces it; 0: none. */
    uint32_t tracer;
    /* 1: its files of /proc belong to root (PR_SET_DUMPABLE). */
    uint32_t undumpable;
    /* oom_score_adj: from -1,000 to 1,000. */
    int16_t oom_adjust;
    /* Filters of seccomp(2) that the thread has. */
    uint16_t filters;
};
_Static_assert(sizeof(struct skink_process_record) == 248, "size of skink_process_record");
_Static_assert(offsetof(struct skink_process_record, endpoint) == 0, "skink_process_record.endpoint");
_Static_assert(offsetof(struct skink_process_record, pid) == 4, "skink_process_record.pid");
_Static_assert(offsetof(struct skink_process_record, parent) == 8, "skink_process_record.parent");
_Static_assert(offsetof(struct skink_process_record, group) == 12, "skink_process_record.group");
_Static_assert(offsetof(struct skink_process_record, session) == 16, "skink_process_record.session");
_Static_assert(offsetof(struct skink_process_record, terminal) == 20, "skink_process_record.terminal");
_Static_assert(offsetof(struct skink_process_record, uid) == 24, "skink_process_record.uid");
_Static_assert(offsetof(struct skink_process_record, euid) == 28, "skink_process_record.euid");
_Static_assert(offsetof(struct skink_process_record, suid) == 32, "skink_process_record.suid");
_Static_assert(offsetof(struct skink_process_record, gid) == 36, "skink_process_record.gid");
_Static_assert(offsetof(struct skink_process_record, egid) == 40, "skink_process_record.egid");
_Static_assert(offsetof(struct skink_process_record, sgid) == 44, "skink_process_record.sgid");
_Static_assert(offsetof(struct skink_process_record, threads) == 48, "skink_process_record.threads");
_Static_assert(offsetof(struct skink_process_record, state) == 52, "skink_process_record.state");
_Static_assert(offsetof(struct skink_process_record, service) == 56, "skink_process_record.service");
_Static_assert(offsetof(struct skink_process_record, nice) == 60, "skink_process_record.nice");
_Static_assert(offsetof(struct skink_process_record, started_ns) == 64, "skink_process_record.started_ns");
_Static_assert(offsetof(struct skink_process_record, user_ns) == 72, "skink_process_record.user_ns");
_Static_assert(offsetof(struct skink_process_record, children_ns) == 80, "skink_process_record.children_ns");
_Static_assert(offsetof(struct skink_process_record, signals_pending) == 88, "skink_process_record.signals_pending");
_Static_assert(offsetof(struct skink_process_record, signals_shared) == 96, "skink_process_record.signals_shared");
_Static_assert(offsetof(struct skink_process_record, signals_blocked) == 104, "skink_process_record.signals_blocked");
_Static_assert(offsetof(struct skink_process_record, signals_ignored) == 112, "skink_process_record.signals_ignored");
_Static_assert(offsetof(struct skink_process_record, signals_caught) == 120, "skink_process_record.signals_caught");
_Static_assert(offsetof(struct skink_process_record, capabilities_inheritable) == 128, "skink_process_record.capabilities_inheritable");
_Static_assert(offsetof(struct skink_process_record, capabilities_permitted) == 136, "skink_process_record.capabilities_permitted");
_Static_assert(offsetof(struct skink_process_record, capabilities_effective) == 144, "skink_process_record.capabilities_effective");
_Static_assert(offsetof(struct skink_process_record, capabilities_bounding) == 152, "skink_process_record.capabilities_bounding");
_Static_assert(offsetof(struct skink_process_record, capabilities_ambient) == 160, "skink_process_record.capabilities_ambient");
_Static_assert(offsetof(struct skink_process_record, parts) == 168, "skink_process_record.parts");
_Static_assert(offsetof(struct skink_process_record, waits) == 176, "skink_process_record.waits");
_Static_assert(offsetof(struct skink_process_record, name) == 184, "skink_process_record.name");
_Static_assert(offsetof(struct skink_process_record, process) == 200, "skink_process_record.process");
_Static_assert(offsetof(struct skink_process_record, policy) == 204, "skink_process_record.policy");
_Static_assert(offsetof(struct skink_process_record, priority) == 208, "skink_process_record.priority");
_Static_assert(offsetof(struct skink_process_record, effective) == 212, "skink_process_record.effective");
_Static_assert(offsetof(struct skink_process_record, fsuid) == 216, "skink_process_record.fsuid");
_Static_assert(offsetof(struct skink_process_record, fsgid) == 220, "skink_process_record.fsgid");
_Static_assert(offsetof(struct skink_process_record, no_new_privileges) == 224, "skink_process_record.no_new_privileges");
_Static_assert(offsetof(struct skink_process_record, seccomp) == 226, "skink_process_record.seccomp");
_Static_assert(offsetof(struct skink_process_record, signals_queued) == 228, "skink_process_record.signals_queued");
_Static_assert(offsetof(struct skink_process_record, signals_queued_max) == 232, "skink_process_record.signals_queued_max");
_Static_assert(offsetof(struct skink_process_record, tracer) == 236, "skink_process_record.tracer");
_Static_assert(offsetof(struct skink_process_record, undumpable) == 240, "skink_process_record.undumpable");
_Static_assert(offsetof(struct skink_process_record, oom_adjust) == 244, "skink_process_record.oom_adjust");
_Static_assert(offsetof(struct skink_process_record, filters) == 246, "skink_process_record.filters");

/* Processes. Kernel messages come from the threads concerned (kernel::Exception, Interrupted, Exited); callers of the others as noted. */

/* rs: a service has come up or its endpoint has changed; pm lists it under a pid of its own. */
#define SKINK_PM_SERVICE_UP 0x20001u
struct skink_pm_service_up {
    uint64_t process;
    uint64_t name_low;
    uint64_t name_high;
};

/* rs: all boot services are up; pm starts the first program (/sbin/init, pid 1). */
#define SKINK_PM_BOOT 0x20002u

/* procfs, rs: copies ProcessRecords into the grant, ascending by pid, from the first pid not below first_pid. Word 0 of the reply: bytes
 * copied. */
#define SKINK_PM_PROCESSES 0x20003u
struct skink_pm_processes {
    uint64_t first_pid;
    uint64_t grant;
    uint64_t bytes;
};

/* procfs: copies something of a process (what: TEXT_*) into the grant. Word 0 of the reply: length. */
#define SKINK_PM_PROCESS_TEXT 0x20004u
struct skink_pm_process_text {
    uint64_t pid;
    uint64_t what;
    uint64_t grant;
    uint64_t bytes;
};

/* Services that implement routed calls: returns pid, effective uid (low half) and gid (high half), and effective capabilities of an
 * application thread, as far as they are rights over the system. ESRCH. */
#define SKINK_PM_WHO_IS 0x20005u
struct skink_pm_who_is {
    uint64_t process;
};
struct skink_pm_who_is_reply {
    uint64_t pid;
    uint64_t ids;
    uint64_t session;
    uint64_t group;
    uint64_t capabilities;
};

/* procfs: as Processes, for the threads of a process: pid in a record is the thread's id. ESRCH. */
#define SKINK_PM_THREADS 0x20006u
struct skink_pm_threads {
    uint64_t pid;
    uint64_t first_tid;
    uint64_t grant;
    uint64_t bytes;
};

/* devfs: mixes these words, which come from what was written to /dev/random, into the generator of getrandom(2). */
#define SKINK_PM_STIR 0x20007u
struct skink_pm_stir {
    uint64_t first;
    uint64_t second;
    uint64_t third;
    uint64_t fourth;
};

/* procfs: copies IpcRecords of one kind (IPC_*) into the grant, ascending by index, from the first index not below first. Word 0 of the
 * reply: bytes copied. */
#define SKINK_PM_IPC_OBJECTS 0x20008u
struct skink_pm_ipc_objects {
    uint64_t kind;
    uint64_t first;
    uint64_t grant;
    uint64_t bytes;
};

/* procfs: copies the host name (which 0) or the domain name (1) into the grant. Word 0 of the reply: length. */
#define SKINK_PM_MACHINE_NAME 0x20009u
struct skink_pm_machine_name {
    uint64_t which;
    uint64_t grant;
    uint64_t bytes;
};

/* procfs, for root: sets the host name (which 0) or the domain name (1) to the text in the grant. EINVAL: it is too long. */
#define SKINK_PM_SET_MACHINE_NAME 0x2000au
struct skink_pm_set_machine_name {
    uint64_t which;
    uint64_t grant;
    uint64_t bytes;
};

/* procfs: returns a setting (SETTING_*). EINVAL: there is none with this number. */
#define SKINK_PM_SETTING 0x2000bu
struct skink_pm_setting {
    uint64_t what;
};
struct skink_pm_setting_reply {
    uint64_t value;
};

/* procfs, for root: changes a setting. EINVAL: not to this value. */
#define SKINK_PM_SET_SETTING 0x2000cu
struct skink_pm_set_setting {
    uint64_t what;
    uint64_t value;
};

/* procfs: returns a random number that stays until the next boot, and one that nobody has had. */
#define SKINK_PM_IDENTITY 0x2000du
struct skink_pm_identity_reply {
    uint64_t boot_low;
    uint64_t boot_high;
    uint64_t new_low;
    uint64_t new_high;
};

/* procfs: returns the load averages of one, five and fifteen minutes, times 2,048. */
#define SKINK_PM_LOADS 0x2000eu
struct skink_pm_loads_reply {
    uint64_t one;
    uint64_t five;
    uint64_t fifteen;
};

/* vfs: takes up to count pending signals of mask for a thread that reads a signalfd, and writes a struct signalfd_siginfo of each to
 * address. call: the number of its call, of which asking again gets the same answer. Word 0 of the reply: how many. EAGAIN: none is
 * pending; with watch, vfs is told of the next one (vfs::SignalsPending). */
#define SKINK_PM_TAKE_SIGNALS 0x2000fu
struct skink_pm_take_signals {
    uint64_t process;
    uint64_t call;
    uint64_t mask;
    uint64_t address;
    uint64_t count;
    uint64_t watch;
};

/* vfs: which signals of mask are pending for a thread. If none is, vfs is told of the next one of them (vfs::SignalsPending); with any, of
 * the next signal, whatever is pending. arrivals: a number below 2^27, but not 0, that is another when the process has got a signal since. */
#define SKINK_PM_AWAIT_SIGNALS 0x20010u
struct skink_pm_await_signals {
    uint64_t process;
    uint64_t mask;
    uint64_t any;
};
struct skink_pm_await_signals_reply {
    uint64_t pending;
    uint64_t arrivals;
};

/* m3ipc: which process a thread belongs to, or, with pid, which one has this pid. It is notified from now on when a thread of that process
 * ends, or it has other credentials. ESRCH. Returns the main thread, pid, effective uid and gid as WhoIs, effective capabilities
 * (abi::CapabilitySet), and what /proc/PID/comm says, with zeros behind it. */
#define SKINK_PM_ENROLL 0x20012u
struct skink_pm_enroll {
    uint64_t process;
    uint64_t pid;
};
struct skink_pm_enroll_reply {
    uint64_t thread;
    uint64_t pid;
    uint64_t ids;
    uint64_t capabilities;
    uint64_t name_low;
    uint64_t name_high;
};

/* m3ipc: sends a signal to an enrolled process. ESRCH, EINVAL. */
#define SKINK_PM_SIGNAL 0x20013u
struct skink_pm_signal {
    uint64_t pid;
    uint64_t signal;
};

/* procfs: copies memory of a process into the grant, or out of it (write), also where the process may not write itself. Word 0 of the
 * reply: bytes copied, which are fewer at the end of what is mapped. EIO: nothing is. */
#define SKINK_PM_MEMORY 0x20011u
struct skink_pm_memory {
    uint64_t process;
    uint64_t address;
    uint64_t grant;
    uint64_t bytes;
    uint64_t write;
};

/* procfs: a user (low half) and group (high half) ids writes the text in the grant to uid_map, gid_map or setgroups (what: TEXT_*) of a
 * process. write: says which write it is, so that one that is made again after a death succeeds again. EPERM, EINVAL. */
#define SKINK_PM_SET_ID_MAP 0x20014u
struct skink_pm_set_id_map {
    uint64_t pid;
    uint64_t what;
    uint64_t grant;
    uint64_t bytes;
    uint64_t ids;
    uint64_t write;
};

/* procfs: the owner of a thread writes the text in the grant to its comm: it is its name, cut at 15 bytes. ESRCH. */
#define SKINK_PM_SET_NAME 0x20015u
struct skink_pm_set_name {
    uint64_t tid;
    uint64_t grant;
    uint64_t bytes;
};

/* procfs: the effective user uid sets how much a process is wanted when memory ends (ProcessRecord::oom_adjust). old: as oom_adj does.
 * EACCES: a user makes it less likely to end than root did; EINVAL, ESRCH. */
#define SKINK_PM_SET_OOM_ADJUST 0x20016u
struct skink_pm_set_oom_adjust {
    uint64_t pid;
    int64_t value;
    uint64_t uid;
    uint64_t old;
};

/* Privileges of a service. The system file states them, rs passes them to the kernel with PrivCtl, and the kernel enforces them on every
 * path (docs/book/ideas.md, 6). */

/* Inclusive range of I/O ports. */
struct skink_port_range {
    /* First port. */
    uint16_t first;
    /* Last port. */
    uint16_t last;
};
_Static_assert(sizeof(struct skink_port_range) == 4, "size of skink_port_range");
_Static_assert(offsetof(struct skink_port_range, first) == 0, "skink_port_range.first");
_Static_assert(offsetof(struct skink_port_range, last) == 2, "skink_port_range.last");

/* Range of physical memory. */
struct skink_memory_range {
    /* First byte. */
    uint64_t start;
    /* Length; 0: unused entry. */
    uint64_t bytes;
};
_Static_assert(sizeof(struct skink_memory_range) == 16, "size of skink_memory_range");
_Static_assert(offsetof(struct skink_memory_range, start) == 0, "skink_memory_range.start");
_Static_assert(offsetof(struct skink_memory_range, bytes) == 8, "skink_memory_range.bytes");

/* May make magic grants (vfs). */
#define SKINK_PRIVILEGE_MAGIC_GRANTS 1u

/* May use message-signalled interrupts. */
#define SKINK_PRIVILEGE_MSI 2u

/* May copy with VirCopy between application threads and itself only, not other services. */
#define SKINK_PRIVILEGE_COPY_APPLICATIONS_ONLY 4u

/* A successor is expected when this service dies: senders to Endpoint::current wait. */
#define SKINK_PRIVILEGE_RESTARTABLE 8u

/* A denied port access raises an exception, which kills the service, instead of returning an error. */
#define SKINK_PRIVILEGE_KILL_ON_DENIAL 16u

/* One access of VDevIo. */
struct skink_port_request {
    /* The port. */
    uint16_t port;
    /* Operation of io. */
    uint16_t operation;
    /* Value to write, or value read. */
    uint32_t value;
};
_Static_assert(sizeof(struct skink_port_request) == 8, "size of skink_port_request");
_Static_assert(offsetof(struct skink_port_request, port) == 0, "skink_port_request.port");
_Static_assert(offsetof(struct skink_port_request, operation) == 2, "skink_port_request.operation");
_Static_assert(offsetof(struct skink_port_request, value) == 4, "skink_port_request.value");

/* Privileges of one service, as the kernel keeps them. */
struct skink_privileges {
    /* Name of the service. */
    struct skink_name name;
    /* Permitted kernel calls: bit = KernelCall. call::UNRESTRICTED is always permitted. */
    uint64_t kernel_calls;
    /* Permitted destinations: bit = slot; bit APPLICATIONS_BIT = all application threads. */
    uint64_t destinations[2];
    /* The flags of this module, from MAGIC_GRANTS on. */
    uint32_t flags;
    /* Access path to its ports: one of way. */
    uint32_t io_way;
    /* Port ranges, port_count of them. */
    struct skink_port_range ports[16];
    /* Device behind each range: one of device. */
    uint8_t devices[16];
    /* Used entries of ports. */
    uint32_t port_count;
    /* Used entries of irqs. */
    uint32_t irq_count;
    /* Interrupt lines (ISA numbers or global system interrupts). */
    uint8_t irqs[8];
    /* Physical memory it may map. */
    struct skink_memory_range memory[8];
};
_Static_assert(sizeof(struct skink_privileges) == 272, "size of skink_privileges");
_Static_assert(offsetof(struct skink_privileges, name) == 0, "skink_privileges.name");
_Static_assert(offsetof(struct skink_privileges, kernel_calls) == 16, "skink_privileges.kernel_calls");
_Static_assert(offsetof(struct skink_privileges, destinations) == 24, "skink_privileges.destinations");
_Static_assert(offsetof(struct skink_privileges, flags) == 40, "skink_privileges.flags");
_Static_assert(offsetof(struct skink_privileges, io_way) == 44, "skink_privileges.io_way");
_Static_assert(offsetof(struct skink_privileges, ports) == 48, "skink_privileges.ports");
_Static_assert(offsetof(struct skink_privileges, devices) == 112, "skink_privileges.devices");
_Static_assert(offsetof(struct skink_privileges, port_count) == 128, "skink_privileges.port_count");
_Static_assert(offsetof(struct skink_privileges, irq_count) == 132, "skink_privileges.irq_count");
_Static_assert(offsetof(struct skink_privileges, irqs) == 136, "skink_privileges.irqs");
_Static_assert(offsetof(struct skink_privileges, memory) == 144, "skink_privileges.memory");

/* Access paths to a port (docs/book/driver-io.md). */

/* Request messages to the SYSTEM task. */
#define SKINK_PRIVILEGE_WAY_SYSTASK 0u

/* The HAL trap. */
#define SKINK_PRIVILEGE_WAY_HAL 1u

/* IN and OUT in the driver, which fault and are emulated by the kernel. */
#define SKINK_PRIVILEGE_WAY_EMULATE 2u

/* IN and OUT in the driver, permitted by the CPU's I/O permission bitmap. */
#define SKINK_PRIVILEGE_WAY_DIRECT 3u

/* Devices behind a range of ports: the machine's, or a virtual one in the kernel. Numbers from 128 on are reserved for devices of other
 * nodes; PrivCtl refuses them. */

/* The machine's own ports. */
#define SKINK_PRIVILEGE_DEVICE_MACHINE 0u

/* A clock, 32-bit reads: at offset 0 the low half of the monotonic time in ns, at 4 its high half. Other offsets read as ones; writes are
 * ignored. */
#define SKINK_PRIVILEGE_DEVICE_CLOCK 1u

/* The kernel's log: a byte written to offset 0 is logged; reads return 0xe9, as Bochs' debug port does. */
#define SKINK_PRIVILEGE_DEVICE_LOG 2u

/* Operations of DevIo and SDevIo: width in bytes (1, 2, 4), plus OUT or IN. */

/* Read. */
#define SKINK_PRIVILEGE_IO_IN 0ull

/* Write. */
#define SKINK_PRIVILEGE_IO_OUT 8ull

/* HAL trap: count accesses of one port, to or from a buffer. */
#define SKINK_PRIVILEGE_IO_STRING 16ull

/* The bits that hold the width. */
#define SKINK_PRIVILEGE_IO_WIDTH 7ull

/* Kinds of PrivCheck. */

/* Physical memory value .. value + length. */
#define SKINK_PRIVILEGE_CHECK_MEMORY 0ull

/* Ports value .. value + length. */
#define SKINK_PRIVILEGE_CHECK_PORTS 1ull

/* IRQ value. */
#define SKINK_PRIVILEGE_CHECK_IRQ 2ull

/* The registers of a thread, as GetRegisters and SetRegisters copy them. */

/* Bytes of the extended state: XSAVE area (legacy, header, AVX; SDM volume 1, 13.4). */
#define SKINK_REGISTERS_EXTENDED_BYTES 832u

/* All of a thread's user registers. */
struct skink_registers {
    _Alignas(64) uint64_t r15;
    uint64_t r14;
    uint64_t r13;
    uint64_t r12;
    uint64_t r11;
    uint64_t r10;
    uint64_t r9;
    uint64_t r8;
    uint64_t rbp;
    uint64_t rdi;
    uint64_t rsi;
    uint64_t rdx;
    uint64_t rcx;
    uint64_t rbx;
    uint64_t rax;
    uint64_t rip;
    uint64_t rflags;
    uint64_t rsp;
    uint64_t fs_base;
    uint64_t gs_base;
    /* Number of the Linux call that the thread is in, or has returned from without running since; u64::MAX: none. A call that returned
     * -ERESTARTSYS is restarted by rip -= 2, rax = linux_call. Ignored by SetRegisters. */
    uint64_t linux_call;
    /* 1: extended is valid; 0: the thread has not used the FPU (SetRegisters: resets it to the initial state). */
    uint64_t extended_valid;
    /* XSAVE area, standard format, components x87, SSE, AVX. */
    uint8_t extended[832];
    /* Padding. */
    uint64_t unused[2];
};
_Static_assert(sizeof(struct skink_registers) == 1024, "size of skink_registers");
_Static_assert(offsetof(struct skink_registers, r15) == 0, "skink_registers.r15");
_Static_assert(offsetof(struct skink_registers, r14) == 8, "skink_registers.r14");
_Static_assert(offsetof(struct skink_registers, r13) == 16, "skink_registers.r13");
_Static_assert(offsetof(struct skink_registers, r12) == 24, "skink_registers.r12");
_Static_assert(offsetof(struct skink_registers, r11) == 32, "skink_registers.r11");
_Static_assert(offsetof(struct skink_registers, r10) == 40, "skink_registers.r10");
_Static_assert(offsetof(struct skink_registers, r9) == 48, "skink_registers.r9");
_Static_assert(offsetof(struct skink_registers, r8) == 56, "skink_registers.r8");
_Static_assert(offsetof(struct skink_registers, rbp) == 64, "skink_registers.rbp");
_Static_assert(offsetof(struct skink_registers, rdi) == 72, "skink_registers.rdi");
_Static_assert(offsetof(struct skink_registers, rsi) == 80, "skink_registers.rsi");
_Static_assert(offsetof(struct skink_registers, rdx) == 88, "skink_registers.rdx");
_Static_assert(offsetof(struct skink_registers, rcx) == 96, "skink_registers.rcx");
_Static_assert(offsetof(struct skink_registers, rbx) == 104, "skink_registers.rbx");
_Static_assert(offsetof(struct skink_registers, rax) == 112, "skink_registers.rax");
_Static_assert(offsetof(struct skink_registers, rip) == 120, "skink_registers.rip");
_Static_assert(offsetof(struct skink_registers, rflags) == 128, "skink_registers.rflags");
_Static_assert(offsetof(struct skink_registers, rsp) == 136, "skink_registers.rsp");
_Static_assert(offsetof(struct skink_registers, fs_base) == 144, "skink_registers.fs_base");
_Static_assert(offsetof(struct skink_registers, gs_base) == 152, "skink_registers.gs_base");
_Static_assert(offsetof(struct skink_registers, linux_call) == 160, "skink_registers.linux_call");
_Static_assert(offsetof(struct skink_registers, extended_valid) == 168, "skink_registers.extended_valid");
_Static_assert(offsetof(struct skink_registers, extended) == 176, "skink_registers.extended");
_Static_assert(offsetof(struct skink_registers, unused) == 1008, "skink_registers.unused");

/* The protocol of rs, the reincarnation server, which starts, watches and restarts services. */

/* Operations of the system call linux::SERVICE: (operation, name low, name high, address, bytes, value); root only. The caller's buffer is
 * read or written by rs. Results: 0, length, or an error (ENOENT: no such service). */

/* Fills the buffer with ServiceRecords of all services, in the order of the system file. */
#define SKINK_RS_SERVICE_CALL_LIST 0ull

/* Fills the buffer with the ServiceRecord of one service. */
#define SKINK_RS_SERVICE_CALL_STATUS 1ull

/* Kills the service, as if it had crashed; rs restarts it by its policy. */
#define SKINK_RS_SERVICE_CALL_KILL 2ull

/* Ends the service and starts it with start kind Fresh and a restart count of 0. */
#define SKINK_RS_SERVICE_CALL_RESTART 3ull

/* Replaces the service's binary by the ELF file in the buffer, and its incarnation by one of start kind Updated. Returns when the trial is
 * over: 0; ECANCELED: the new binary failed and the old one runs again; ENOEXEC; EBUSY: another update is in progress; EPERM: rs, vm. */
#define SKINK_RS_SERVICE_CALL_UPDATE 4ull

/* Copies the newest crash report of the service into the buffer: text. ENODATA: it has not crashed. */
#define SKINK_RS_SERVICE_CALL_LOG 5ull

/* Injects the fault that the Injection in the buffer describes into any service, for tests of recovery. */
#define SKINK_RS_SERVICE_CALL_INJECT 6ull

/* Waits for crash report number value, of any service, and copies it into the buffer: a ReportHead, then text. Reports are numbered from 1;
 * for one that has been discarded, the oldest kept is returned. EBUSY: another process waits already. */
#define SKINK_RS_SERVICE_CALL_REPORT 7ull

/* Copies the name of the function of the service at the address value into the buffer: text. ENODATA: there is none, or the program is an
 * updated one, without symbols. */
#define SKINK_RS_SERVICE_CALL_FUNCTION 8ull

/* A fault to inject, in the caller's buffer: (kind of call::inject, value, further value, bytes) of the kernel call Inject. */
struct skink_injection {
    /* One of call::inject. */
    uint64_t kind;
    /* Messages until the service ends, the address to write, or the number of the allocation. */
    uint64_t value;
    /* Bytes to write, the first one lowest. */
    uint64_t further;
    /* Number of bytes to write, 1 to 8. */
    uint64_t bytes;
};
_Static_assert(sizeof(struct skink_injection) == 32, "size of skink_injection");
_Static_assert(offsetof(struct skink_injection, kind) == 0, "skink_injection.kind");
_Static_assert(offsetof(struct skink_injection, value) == 8, "skink_injection.value");
_Static_assert(offsetof(struct skink_injection, further) == 16, "skink_injection.further");
_Static_assert(offsetof(struct skink_injection, bytes) == 24, "skink_injection.bytes");

/* Header of a crash report; the text follows. */
struct skink_report_head {
    /* Number of the report since boot. */
    uint64_t number;
    /* Name of the service. */
    struct skink_name name;
    /* Bytes of text that follow. */
    uint64_t bytes;
};
_Static_assert(sizeof(struct skink_report_head) == 32, "size of skink_report_head");
_Static_assert(offsetof(struct skink_report_head, number) == 0, "skink_report_head.number");
_Static_assert(offsetof(struct skink_report_head, name) == 8, "skink_report_head.name");
_Static_assert(offsetof(struct skink_report_head, bytes) == 24, "skink_report_head.bytes");

/* Limit of a crash report, header included, in bytes. */
#define SKINK_RS_REPORT_BYTES 0x1000u

/* Flags in ServiceRecord::state. */
#define SKINK_RS_STATE_DOWN 0u
#define SKINK_RS_STATE_STARTING 1u
#define SKINK_RS_STATE_UP 2u
#define SKINK_RS_STATE_RESTARTING 3u
#define SKINK_RS_STATE_GIVEN_UP 4u

/* State of a service, as service list shows it. */
struct skink_service_record {
    /* Name. */
    struct skink_name name;
    /* Endpoint of the present incarnation. */
    endpoint_t endpoint;
    /* One of state. */
    uint32_t state;
    /* Restarts since boot. */
    uint32_t restarts;
    /* Heartbeats missed in a row. */
    uint32_t missed;
    /* Monotonic time at which the present incarnation was started. */
    uint64_t started_ns;
    /* Exit status or exception vector of the last incarnation, by reason; 0: none has ended. */
    int64_t last_status;
    /* Reason for the end of the last incarnation: 0 none has ended, 1 exit, 2 exception, 3 missed heartbeats, 4 killed, 5 restarted with a
     * service it depends on. */
    uint32_t reason;
    /* Milliseconds of back-off until the next start; 0: none. */
    uint32_t retry_ms;
    /* Monotonic time at which the last incarnation's end was noticed; 0: none has ended. */
    uint64_t ended_ns;
    /* Monotonic time at which the present incarnation reported ready; 0: not yet. */
    uint64_t ready_ns;
    /* What the kernel has refused the present incarnation: messages, kernel calls, ports. */
    uint64_t denials;
};
_Static_assert(sizeof(struct skink_service_record) == 80, "size of skink_service_record");
_Static_assert(offsetof(struct skink_service_record, name) == 0, "skink_service_record.name");
_Static_assert(offsetof(struct skink_service_record, endpoint) == 16, "skink_service_record.endpoint");
_Static_assert(offsetof(struct skink_service_record, state) == 20, "skink_service_record.state");
_Static_assert(offsetof(struct skink_service_record, restarts) == 24, "skink_service_record.restarts");
_Static_assert(offsetof(struct skink_service_record, missed) == 28, "skink_service_record.missed");
_Static_assert(offsetof(struct skink_service_record, started_ns) == 32, "skink_service_record.started_ns");
_Static_assert(offsetof(struct skink_service_record, last_status) == 40, "skink_service_record.last_status");
_Static_assert(offsetof(struct skink_service_record, reason) == 48, "skink_service_record.reason");
_Static_assert(offsetof(struct skink_service_record, retry_ms) == 52, "skink_service_record.retry_ms");
_Static_assert(offsetof(struct skink_service_record, ended_ns) == 56, "skink_service_record.ended_ns");
_Static_assert(offsetof(struct skink_service_record, ready_ns) == 64, "skink_service_record.ready_ns");
_Static_assert(offsetof(struct skink_service_record, denials) == 72, "skink_service_record.denials");

/* Start, supervision and restart of services. Services report to rs, ds fetches the changes; programs use the routed system call
 * linux::SERVICE (see service_call). */

/* A service has finished its initialisation: status 0, or the negative error that made it fail (it is then not restarted). Every service
 * sends this once, before its first receive, and waits for the reply; if rs dies before it replies, the service repeats it. */
#define SKINK_RS_READY 0x40001u
struct skink_rs_ready {
    int64_t status;
};

/* ds: returns the next change of the list of services: name, endpoint, whether it is up. rs notifies ds of changes. ENOENT: no more.
 * restart starts over with all services that are up. */
#define SKINK_RS_NEXT_CHANGE 0x40002u
struct skink_rs_next_change {
    uint64_t restart;
};
struct skink_rs_next_change_reply {
    uint64_t name_low;
    uint64_t name_high;
    uint64_t endpoint;
    uint64_t up;
};

/* A service: copies its text arguments into the grant. Word 0 of the reply: length. */
#define SKINK_RS_ARGUMENTS 0x40003u
struct skink_rs_arguments {
    uint64_t grant;
    uint64_t bytes;
};

/* From rs to a service that is about to be replaced by a new binary (asynchronous, with a tag): the service completes its requests in
 * progress, leaves its state where its successor finds it, and replies; it then receives from rs alone and is destroyed. lib/server
 * implements it. */
#define SKINK_RS_PREPARE_UPDATE 0x40004u

/* From rs to a service, for tests (asynchronous, with a tag): the allocation number after from now on, counted from 1, of those that a call
 * makes fallibly or before it begins, fails; 0: none does. lib/server implements it (sys::fallible). */
#define SKINK_RS_FAIL_ALLOCATION 0x40005u
struct skink_rs_fail_allocation {
    uint64_t after;
};

/* vfs: this service answers heartbeats, but for long none of vfs's requests. rs ends it as one that is silent. */
#define SKINK_RS_STALLED 0x40006u
struct skink_rs_stalled {
    uint64_t process;
};

/* MINIX4RT: hard real-time processes. This file is long because it is that whole interface. */

/* Number of the routed call of the system calls. */
#define SKINK_RT_SYSTEM_CALL 0x401u

/* Kernel calls: number in rax, arguments in rdi rsi rdx, the words of a message in r10 r8 r9 r12. */

/* The first number. */
#define SKINK_RT_CALL_FIRST 0x1200ull

/* (id, timeout): decrements a semaphore, or waits for it. BADSEM, E_TRY_AGAIN, TIMEOUT, EXITING; ELOCKED: the wait would deadlock; BADPRTY:
 * the caller is better than the mutex's ceiling. */
#define SKINK_RT_CALL_SEMDOWN 0x1200ull

/* (id): increments a semaphore. BADSEM; EPERM: the caller does not own the mutex. One that was allocated with value 0 is locked and has no
 * owner until its first increment, which anybody may make. */
#define SKINK_RT_CALL_SEMUP 0x1201ull

/* (): the caller becomes real-time, with the attributes set before; its memory becomes resident, its stack down to its limit or 1 MiB, and
 * stays so when another thread of its program forks. BADPTYPE, BADPRTY (no attributes), NOVTIMER, NOMSGQ, ENOMEM. */
#define SKINK_RT_CALL_SET2RT 0x1202ull

/* (): the caller becomes an ordinary process again. As at its end, the messages it has sent that wait still are deleted. */
#define SKINK_RT_CALL_SET2NRT 0x1203ull

/* (timeout): waits for a wake-up or the timeout; a periodic process with FOREVER waits for its next period. */
#define SKINK_RT_CALL_SLEEP 0x1204ull

/* (pid): ends a sleep. E_BAD_PROC, BADPTYPE; UNSLEEP: the process does not sleep; its watchdog receives a message. */
#define SKINK_RT_CALL_WAKEUP 0x1205ull

/* (address): writes 80 characters to the console. EINVAL: bad address. */
#define SKINK_RT_CALL_PRINT 0x1206ull

/* (destination pid, timeout) and a message: sends it and waits until it is received. E_BAD_PROC, E_BAD_DEST (the caller itself), BADPTYPE,
 * MQFULL, NOMQENT, E_TRY_AGAIN, TIMEOUT, EXITING, ELOCKED. */
#define SKINK_RT_CALL_RQST 0x1207ull

/* Sends a message as SEND without waiting. */
#define SKINK_RT_CALL_ARQST 0x1208ull

/* (destination pid, -, priority): sends without waiting at an explicit priority, which the destination inherits. BADPRTY. */
#define SKINK_RT_CALL_UPRQST 0x1209ull

/* (destination pid): sends without waiting at the destination's own priority. */
#define SKINK_RT_CALL_SIGN 0x120aull

/* (destination pid): sends a reply; the caller drops the priority that it inherited from the request. */
#define SKINK_RT_CALL_REPLY 0x120bull

/* (source pid or ANYPROC, timeout) → the best message: rdi = source pid | type << 32, rsi = id | sequence number << 32, rdx = time in
 * ticks, r13 = priority | process number << 32, r14 = deadline, r15 = laxity. E_BAD_PROC, E_TRY_AGAIN, TIMEOUT, EXITING. */
#define SKINK_RT_CALL_RCV 0x120cull

/* (destination pid, timeout): sends a request and receives the reply as by RCV. EINVAL: the timeout is NOWAIT. */
#define SKINK_RT_CALL_RQRCV 0x120dull

/* Numbers of real-time kernel calls are below this; others fail with E_BAD_FCN. */
#define SKINK_RT_CALL_END 0x1300ull

/* Operations of the system calls: (operation, argument, address). Unless said otherwise they fail with NORTMODE in standard mode, BADPTYPE
 * for a real-time caller, EPERM for users other than the superuser, EINVAL for a bad address, EBADCALL for an unknown operation. */

/* (harmonic, address as refresh): enters real-time mode: the timer runs at harmonic × 50 Hz, idle time is sampled every refresh ticks.
 * BADHARM, BADRFSH; RTACTIVE: already in real-time mode. */
#define SKINK_RT_CONTROL_RTSTART 0ull

/* Changes the arguments of real-time mode. RTACTIVE: real-time processes exist. */
#define SKINK_RT_CONTROL_RESTART 1ull

/* Returns to standard mode. RTACTIVE: real-time processes exist. */
#define SKINK_RT_CONTROL_RTSTOP 2ull

/* (options): sets the options, in standard mode. RTMODE; BADFLAGS. */
#define SKINK_RT_CONTROL_SETSVAL 3ull

/* Returns SystemValues, in both modes. */
#define SKINK_RT_CONTROL_GETSVAL 4ull

/* Returns SystemStatistics. */
#define SKINK_RT_CONTROL_GETSSTAT 5ull

/* Clears the system's statistics. */
#define SKINK_RT_CONTROL_CLRSSTAT 6ull

/* Sets ProcessAttributes of the caller. BADPRTY, BADWDOG, BADPER, BADDEAD, BADFLAGS, BADMQSZ; NOMSGQ: too many processes. */
#define SKINK_RT_CONTROL_SETPATTR 7ull

/* (pid) → ProcessAttributes. E_BAD_PROC. */
#define SKINK_RT_CONTROL_GETPATTR 8ull

/* (pid) → ProcessStatistics. E_BAD_PROC. */
#define SKINK_RT_CONTROL_GETPSTAT 9ull

/* (pid): clears the process's statistics. E_BAD_PROC. */
#define SKINK_RT_CONTROL_CLRPSTAT 10ull

/* (pid) → ProcessInternals. E_BAD_PROC. */
#define SKINK_RT_CONTROL_GETPINT 11ull

/* (irq): sets IrqAttributes. BADIRQ, BADIRQT, BADTASK, BADPRTY, BADWDOG, BADPER, NOVTIMER. */
#define SKINK_RT_CONTROL_SETIATTR 12ull

/* (irq) → IrqAttributes. BADIRQ. */
#define SKINK_RT_CONTROL_GETIATTR 13ull

/* (irq) → IrqStatistics. BADIRQ. */
#define SKINK_RT_CONTROL_GETISTAT 14ull

/* (irq): clears the interrupt's statistics. BADIRQ. */
#define SKINK_RT_CONTROL_CLRISTAT 15ull

/* (irq) → IrqInternals. BADIRQ. */
#define SKINK_RT_CONTROL_GETIINT 16ull

/* Allocates a semaphore with these SemaphoreAttributes → id. BADNAME, BADVALUE, BADFLAGS, BADPRTY, NOSEM. */
#define SKINK_RT_CONTROL_SEMALLOC 17ull

/* (id): frees a semaphore. BADSEM, FREESEM; EPERM: another process has allocated it. */
#define SKINK_RT_CONTROL_SEMFREE 18ull

/* Name of 16 characters → id. BADSEM. */
#define SKINK_RT_CONTROL_GETSEMID 19ull

/* (id) → SemaphoreAttributes with the present value. BADSEM, FREESEM. */
#define SKINK_RT_CONTROL_GETSEMATTR 20ull

/* (id) → SemaphoreStatistics. BADSEM, FREESEM. */
#define SKINK_RT_CONTROL_GETSEMSTAT 21ull

/* (id): clears the semaphore's statistics. BADSEM, FREESEM. */
#define SKINK_RT_CONTROL_CLRSEMSTAT 22ull

/* (id) → SemaphoreInternals. BADSEM. */
#define SKINK_RT_CONTROL_GETSEMINT 23ull

/* (id) → QueueStatistics. BADMSGQ, FREEMSGQ. */
#define SKINK_RT_CONTROL_GETMQSTAT 24ull

/* (id): clears the queue's statistics. BADMSGQ, FREEMSGQ. */
#define SKINK_RT_CONTROL_CLRMQSTAT 25ull

/* Operations are below this. */
#define SKINK_RT_CONTROL_END 26ull

/* Errors, positive. The numbers 2011, 2013 and 2020, MINIX4RT's UNREADY, NOSOFTIRQ and BADMSGT, never occur. */
#define SKINK_RT_ERROR_E_MRT_BADIRQ 0x7d1
#define SKINK_RT_ERROR_E_MRT_BADTASK 0x7d2
#define SKINK_RT_ERROR_E_MRT_BADPRTY 0x7d3
#define SKINK_RT_ERROR_E_MRT_BADIRQT 0x7d4
#define SKINK_RT_ERROR_E_MRT_BADHARM 0x7d5
#define SKINK_RT_ERROR_E_MRT_RTACTIVE 0x7d6
#define SKINK_RT_ERROR_E_MRT_BADPTYPE 0x7d7
#define SKINK_RT_ERROR_E_MRT_BADPER 0x7d8
#define SKINK_RT_ERROR_E_MRT_BADDEAD 0x7d9
#define SKINK_RT_ERROR_E_MRT_BADWDOG 0x7da
#define SKINK_RT_ERROR_E_MRT_NOVTIMER 0x7dc
#define SKINK_RT_ERROR_E_MRT_NORTMODE 0x7de
#define SKINK_RT_ERROR_E_MRT_UNSLEEP 0x7df
#define SKINK_RT_ERROR_E_MRT_EXITING 0x7e0
#define SKINK_RT_ERROR_E_MRT_NOMQENT 0x7e1
#define SKINK_RT_ERROR_E_MRT_BADMQSZ 0x7e2
#define SKINK_RT_ERROR_E_MRT_NOMSGQ 0x7e3
#define SKINK_RT_ERROR_E_MRT_TIMEOUT 0x7e5
#define SKINK_RT_ERROR_E_MRT_RTMODE 0x7e6
#define SKINK_RT_ERROR_E_MRT_BADRFSH 0x7e7
#define SKINK_RT_ERROR_E_MRT_MQFULL 0x7e8
#define SKINK_RT_ERROR_E_MRT_NOSEM 0x7e9
#define SKINK_RT_ERROR_E_MRT_BADSEM 0x7ea
#define SKINK_RT_ERROR_E_MRT_FREESEM 0x7eb
#define SKINK_RT_ERROR_E_MRT_BADNAME 0x7ec
#define SKINK_RT_ERROR_E_MRT_BADVALUE 0x7ed
#define SKINK_RT_ERROR_E_MRT_BADFLAGS 0x7ee
#define SKINK_RT_ERROR_E_MRT_BADMSGQ 0x7ef
#define SKINK_RT_ERROR_E_MRT_FREEMSGQ 0x7f0

/* MINIX's own errors, plus 1100. */
#define SKINK_RT_ERROR_E_BAD_DEST 0x835
#define SKINK_RT_ERROR_E_TRY_AGAIN 0x837
#define SKINK_RT_ERROR_E_BAD_FCN 0x83d
#define SKINK_RT_ERROR_E_BAD_PROC 0x83f

/* Timeout: do not wait. */
#define SKINK_RT_NOWAIT 0ll

/* Timeout: wait without limit. */
#define SKINK_RT_FOREVER -1ll

/* Source of RCV: any process. */
#define SKINK_RT_ANYPROC -1ll

/* Watchdog, task: none. */
#define SKINK_RT_NOPROC -1ll

/* Ticks per second of the time-shared system. */
#define SKINK_RT_CLOCK_HZ 50ull

/* Priorities that processes, semaphores and interrupts may have: 1, the best, to this; 0 is the timer's. */
#define SKINK_RT_PRIORITIES 46ull

/* Harmonics, refreshes and periods are 1 to this, in ticks. */
#define SKINK_RT_MAX_TICKS 0x2710ull

/* Limit of processes with attributes. */
#define SKINK_RT_PROCESSES 256u

/* Limit of real-time processes, each with its message queue. */
#define SKINK_RT_QUEUES 128u

/* Capacity of all message queues together. */
#define SKINK_RT_ENTRIES 0x400u

/* Limit of the capacity of one queue. */
#define SKINK_RT_QUEUE_ENTRIES 256ull

/* Number of virtual timers. */
#define SKINK_RT_TIMERS 160u

/* Number of semaphores; ids are below it. */
#define SKINK_RT_SEMAPHORES 256u

/* Interrupt descriptors: below HARDWARE_IRQS one for each line, from there on software interrupts. */
#define SKINK_RT_IRQS 96u

/* Number of interrupt lines with a descriptor. */
#define SKINK_RT_HARDWARE_IRQS 64u

/* The software interrupt that is the 50 Hz tick of the time-shared system. */
#define SKINK_RT_TICK_IRQ 64u

/* Characters of PRINT. */
#define SKINK_RT_PRINT_BYTES 80u

/* A process that runs this long without waiting is taken for a runaway and becomes an ordinary process. */
#define SKINK_RT_RUNAWAY_NS 0xb2d05e00ull

/* Options and state of the system. */
#define SKINK_RT_MODE_RTMODE 1ull

/* Options. Messages of the kernel on the second serial line. */
#define SKINK_RT_MODE_DBG232 256ull

/* Latencies are measured. */
#define SKINK_RT_MODE_LATENCY 512ull

/* Priority inheritance is on. */
#define SKINK_RT_MODE_BPIP 0x400ull

/* The timer fires only when a deadline is due. */
#define SKINK_RT_MODE_ONESHOT 0x800ull

/* Interrupts of a worse priority than the running process stay pending. */
#define SKINK_RT_MODE_PRTYMASK 0x1000ull
#define SKINK_RT_MODE_OPTIONS 0x1f00ull

/* Flags of semaphores, of message queues and of processes. */
#define SKINK_RT_FLAG_SEM_PRTYORDER 1ull
#define SKINK_RT_FLAG_SEM_PRTYINHERIT 2ull
#define SKINK_RT_FLAG_SEM_MUTEX 4ull

/* The owner runs with at least the mutex's priority. */
#define SKINK_RT_FLAG_SEM_PRTYCEILING 8ull
#define SKINK_RT_FLAG_MQ_PRTYORDER 1ull
#define SKINK_RT_FLAG_MQ_PRTYINHERIT 2ull
#define SKINK_RT_FLAG_P_REALTIME 0x4000ull
#define SKINK_RT_FLAG_P_PERIODIC 0x8000ull

/* Types of interrupts, and state of descriptors: ENQUEUED, the second stage is pending; TRIGGERED, an interrupt has arrived in this period. */
#define SKINK_RT_IRQ_NRTIRQ 0ull
#define SKINK_RT_IRQ_RTIRQ 1ull
#define SKINK_RT_IRQ_TDIRQ 2ull
#define SKINK_RT_IRQ_SOFTIRQ 4ull
#define SKINK_RT_IRQ_ISTMSG 8ull
#define SKINK_RT_IRQ_RELATPER 16ull
#define SKINK_RT_IRQ_ENQUEUED 1ull
#define SKINK_RT_IRQ_TRIGGERED 4ull

/* Types of messages. */
#define SKINK_RT_MESSAGE_UPRQST 1ull
#define SKINK_RT_MESSAGE_REQUEST 2ull
#define SKINK_RT_MESSAGE_AREQUEST 3ull
#define SKINK_RT_MESSAGE_REPLY 4ull
#define SKINK_RT_MESSAGE_SIGNAL 5ull
#define SKINK_RT_MESSAGE_RQRCV 6ull

/* From the kernel. An interrupt: word 0 its number, word 1 the number of arrivals. */
#define SKINK_RT_MESSAGE_KRNIRQ 16ull

/* A deadline was missed: word 0 the pid, or the interrupt with word 1 = 1. Or a wake-up found no sleeper (word 1 = 2), a Linux call was
 * made (word 1 = 3, word 2 its number), a process ran away (word 1 = 4). */
#define SKINK_RT_MESSAGE_KRNDLINE 18ull

/* The watchdog, word 0, has ended. */
#define SKINK_RT_MESSAGE_KRNWDOG 19ull

/* The process, word 0, is real-time no longer. */
#define SKINK_RT_MESSAGE_KRNPROC 20ull

/* A message's words. */
#define SKINK_RT_MESSAGE_WORDS 4u

/* Properties of a message that RCV received, as the C library returns them. */
struct skink_mrt_header {
    int64_t source_pid;
    int64_t source_number;
    /* One of message. */
    uint64_t mtype;
    uint64_t mid;
    uint64_t seqno;
    /* When it was sent, in ticks. */
    uint64_t tstamp;
    uint64_t priority;
    /* The sender's, in ticks after the sending; 0: none. */
    uint64_t deadline;
    /* Time left until the deadline. */
    int64_t laxity;
};
_Static_assert(sizeof(struct skink_mrt_header) == 72, "size of skink_mrt_header");
_Static_assert(offsetof(struct skink_mrt_header, source_pid) == 0, "skink_mrt_header.source_pid");
_Static_assert(offsetof(struct skink_mrt_header, source_number) == 8, "skink_mrt_header.source_number");
_Static_assert(offsetof(struct skink_mrt_header, mtype) == 16, "skink_mrt_header.mtype");
_Static_assert(offsetof(struct skink_mrt_header, mid) == 24, "skink_mrt_header.mid");
_Static_assert(offsetof(struct skink_mrt_header, seqno) == 32, "skink_mrt_header.seqno");
_Static_assert(offsetof(struct skink_mrt_header, tstamp) == 40, "skink_mrt_header.tstamp");
_Static_assert(offsetof(struct skink_mrt_header, priority) == 48, "skink_mrt_header.priority");
_Static_assert(offsetof(struct skink_mrt_header, deadline) == 56, "skink_mrt_header.deadline");
_Static_assert(offsetof(struct skink_mrt_header, laxity) == 64, "skink_mrt_header.laxity");

/* Values of the system. */
struct skink_system_values {
    uint64_t flags;
    /* One bit a line that is masked while a real-time process runs. */
    uint64_t virtual_pic;
    /* Worst latency of the timer, in ns. */
    uint64_t pit_latency;
    /* Counts of the machine's counter per tick; 0 in standard mode. */
    uint64_t pit_latch;
    /* Ticks per second. */
    uint64_t tickrate;
    uint64_t harmonic;
    uint64_t refresh;
};
_Static_assert(sizeof(struct skink_system_values) == 56, "size of skink_system_values");
_Static_assert(offsetof(struct skink_system_values, flags) == 0, "skink_system_values.flags");
_Static_assert(offsetof(struct skink_system_values, virtual_pic) == 8, "skink_system_values.virtual_pic");
_Static_assert(offsetof(struct skink_system_values, pit_latency) == 16, "skink_system_values.pit_latency");
_Static_assert(offsetof(struct skink_system_values, pit_latch) == 24, "skink_system_values.pit_latch");
_Static_assert(offsetof(struct skink_system_values, tickrate) == 32, "skink_system_values.tickrate");
_Static_assert(offsetof(struct skink_system_values, harmonic) == 40, "skink_system_values.harmonic");
_Static_assert(offsetof(struct skink_system_values, refresh) == 48, "skink_system_values.refresh");

/* Statistics of the system. */
struct skink_system_statistics {
    uint64_t scheds;
    uint64_t messages;
    uint64_t interrupts;
    uint64_t ticks;
    uint64_t highticks;
    /* Longest idle time in a refresh interval, in ns. */
    uint64_t idlemax;
    /* Idle time of the last one. */
    uint64_t idlelast;
};
_Static_assert(sizeof(struct skink_system_statistics) == 56, "size of skink_system_statistics");
_Static_assert(offsetof(struct skink_system_statistics, scheds) == 0, "skink_system_statistics.scheds");
_Static_assert(offsetof(struct skink_system_statistics, messages) == 8, "skink_system_statistics.messages");
_Static_assert(offsetof(struct skink_system_statistics, interrupts) == 16, "skink_system_statistics.interrupts");
_Static_assert(offsetof(struct skink_system_statistics, ticks) == 24, "skink_system_statistics.ticks");
_Static_assert(offsetof(struct skink_system_statistics, highticks) == 32, "skink_system_statistics.highticks");
_Static_assert(offsetof(struct skink_system_statistics, idlemax) == 40, "skink_system_statistics.idlemax");
_Static_assert(offsetof(struct skink_system_statistics, idlelast) == 48, "skink_system_statistics.idlelast");

/* Attributes of a process. */
struct skink_process_attributes {
    /* P_PERIODIC; P_REALTIME is read only. */
    uint64_t flags;
    /* Base priority. */
    uint64_t baseprty;
    /* In ticks, if periodic. */
    uint64_t period;
    /* Number of schedulings after which the process becomes ordinary; 0: no limit. Forced to 0 if periodic. */
    uint64_t limit;
    /* In ticks after the start of a period or the end of a sleep; 0: none (for a periodic process, its period). */
    uint64_t deadline;
    /* Pid of the watchdog, or NOPROC. */
    int64_t watchdog;
    /* Messages that its queue may hold. */
    uint64_t mq_size;
    /* MQ_*. */
    uint64_t mq_flags;
};
_Static_assert(sizeof(struct skink_process_attributes) == 64, "size of skink_process_attributes");
_Static_assert(offsetof(struct skink_process_attributes, flags) == 0, "skink_process_attributes.flags");
_Static_assert(offsetof(struct skink_process_attributes, baseprty) == 8, "skink_process_attributes.baseprty");
_Static_assert(offsetof(struct skink_process_attributes, period) == 16, "skink_process_attributes.period");
_Static_assert(offsetof(struct skink_process_attributes, limit) == 24, "skink_process_attributes.limit");
_Static_assert(offsetof(struct skink_process_attributes, deadline) == 32, "skink_process_attributes.deadline");
_Static_assert(offsetof(struct skink_process_attributes, watchdog) == 40, "skink_process_attributes.watchdog");
_Static_assert(offsetof(struct skink_process_attributes, mq_size) == 48, "skink_process_attributes.mq_size");
_Static_assert(offsetof(struct skink_process_attributes, mq_flags) == 56, "skink_process_attributes.mq_flags");

/* Statistics of a process. */
struct skink_process_statistics {
    uint64_t scheds;
    /* Deadlines missed. */
    uint64_t mdl;
    /* When the last period began, in ticks. */
    uint64_t timestamp;
    /* Longest latency from the start of a period until the process ran, in ns. */
    uint64_t maxlat;
    /* Least time left until the deadline at the end of the work, in ns; negative: missed. The deadline is that of the period in which the
     * work began. */
    int64_t minlax;
    uint64_t msgsent;
    uint64_t msgrcvd;
};
_Static_assert(sizeof(struct skink_process_statistics) == 56, "size of skink_process_statistics");
_Static_assert(offsetof(struct skink_process_statistics, scheds) == 0, "skink_process_statistics.scheds");
_Static_assert(offsetof(struct skink_process_statistics, mdl) == 8, "skink_process_statistics.mdl");
_Static_assert(offsetof(struct skink_process_statistics, timestamp) == 16, "skink_process_statistics.timestamp");
_Static_assert(offsetof(struct skink_process_statistics, maxlat) == 24, "skink_process_statistics.maxlat");
_Static_assert(offsetof(struct skink_process_statistics, minlax) == 32, "skink_process_statistics.minlax");
_Static_assert(offsetof(struct skink_process_statistics, msgsent) == 40, "skink_process_statistics.msgsent");
_Static_assert(offsetof(struct skink_process_statistics, msgrcvd) == 48, "skink_process_statistics.msgrcvd");

/* Internals of a process. */
struct skink_process_internals {
    /* Number of its virtual timers. */
    uint64_t vt;
    /* Effective priority. */
    uint64_t priority;
    /* Message queue, or -1. */
    int64_t mqid;
    /* Process number. */
    uint64_t p_nr;
};
_Static_assert(sizeof(struct skink_process_internals) == 32, "size of skink_process_internals");
_Static_assert(offsetof(struct skink_process_internals, vt) == 0, "skink_process_internals.vt");
_Static_assert(offsetof(struct skink_process_internals, priority) == 8, "skink_process_internals.priority");
_Static_assert(offsetof(struct skink_process_internals, mqid) == 16, "skink_process_internals.mqid");
_Static_assert(offsetof(struct skink_process_internals, p_nr) == 24, "skink_process_internals.p_nr");

/* Attributes of an interrupt descriptor. */
struct skink_irq_attributes {
    /* In ticks, if timer-driven. */
    uint64_t period;
    /* Pid of the real-time process of the second stage, or NOPROC. */
    int64_t task;
    /* Pid of the watchdog, or NOPROC. */
    int64_t watchdog;
    /* Priority of the second stage. */
    uint64_t priority;
    /* Types of irq. */
    uint64_t irqtype;
    /* Descriptive name. */
    uint8_t name[16];
};
_Static_assert(sizeof(struct skink_irq_attributes) == 56, "size of skink_irq_attributes");
_Static_assert(offsetof(struct skink_irq_attributes, period) == 0, "skink_irq_attributes.period");
_Static_assert(offsetof(struct skink_irq_attributes, task) == 8, "skink_irq_attributes.task");
_Static_assert(offsetof(struct skink_irq_attributes, watchdog) == 16, "skink_irq_attributes.watchdog");
_Static_assert(offsetof(struct skink_irq_attributes, priority) == 24, "skink_irq_attributes.priority");
_Static_assert(offsetof(struct skink_irq_attributes, irqtype) == 32, "skink_irq_attributes.irqtype");
_Static_assert(offsetof(struct skink_irq_attributes, name) == 40, "skink_irq_attributes.name");

/* Statistics of an interrupt descriptor. */
struct skink_irq_statistics {
    uint64_t count;
    /* Highest number of arrivals in one period. */
    uint64_t maxshower;
    /* Deadlines missed. */
    uint64_t mdl;
    /* The last arrival, in ticks. */
    uint64_t timestamp;
    /* Longest latency from arrival to second stage, in ns. */
    uint64_t maxlat;
    /* Arrivals while the descriptor was waiting. */
    uint64_t reenter;
};
_Static_assert(sizeof(struct skink_irq_statistics) == 48, "size of skink_irq_statistics");
_Static_assert(offsetof(struct skink_irq_statistics, count) == 0, "skink_irq_statistics.count");
_Static_assert(offsetof(struct skink_irq_statistics, maxshower) == 8, "skink_irq_statistics.maxshower");
_Static_assert(offsetof(struct skink_irq_statistics, mdl) == 16, "skink_irq_statistics.mdl");
_Static_assert(offsetof(struct skink_irq_statistics, timestamp) == 24, "skink_irq_statistics.timestamp");
_Static_assert(offsetof(struct skink_irq_statistics, maxlat) == 32, "skink_irq_statistics.maxlat");
_Static_assert(offsetof(struct skink_irq_statistics, reenter) == 40, "skink_irq_statistics.reenter");

/* Internals of an interrupt descriptor. */
struct skink_irq_internals {
    /* Its number. */
    uint64_t irq;
    /* Ticks of the real-time clock in one of the time-shared world. */
    uint64_t harmonic;
    /* Whether it has a virtual timer. */
    uint64_t vtimer;
    /* State of irq. */
    uint64_t flags;
};
_Static_assert(sizeof(struct skink_irq_internals) == 32, "size of skink_irq_internals");
_Static_assert(offsetof(struct skink_irq_internals, irq) == 0, "skink_irq_internals.irq");
_Static_assert(offsetof(struct skink_irq_internals, harmonic) == 8, "skink_irq_internals.harmonic");
_Static_assert(offsetof(struct skink_irq_internals, vtimer) == 16, "skink_irq_internals.vtimer");
_Static_assert(offsetof(struct skink_irq_internals, flags) == 24, "skink_irq_internals.flags");

/* Attributes of a semaphore. */
struct skink_semaphore_attributes {
    /* Initial value; when read: present value. */
    int64_t value;
    /* SEM_*. */
    uint64_t flags;
    /* Ceiling, with SEM_PRTYCEILING. */
    uint64_t priority;
    /* Unique; a semaphore with an empty name cannot be looked up. */
    uint8_t name[16];
};
_Static_assert(sizeof(struct skink_semaphore_attributes) == 40, "size of skink_semaphore_attributes");
_Static_assert(offsetof(struct skink_semaphore_attributes, value) == 0, "skink_semaphore_attributes.value");
_Static_assert(offsetof(struct skink_semaphore_attributes, flags) == 8, "skink_semaphore_attributes.flags");
_Static_assert(offsetof(struct skink_semaphore_attributes, priority) == 16, "skink_semaphore_attributes.priority");
_Static_assert(offsetof(struct skink_semaphore_attributes, name) == 24, "skink_semaphore_attributes.name");

/* Statistics of a semaphore. */
struct skink_semaphore_statistics {
    uint64_t ups;
    uint64_t downs;
    /* Highest number of waiters at one time. */
    uint64_t maxinq;
};
_Static_assert(sizeof(struct skink_semaphore_statistics) == 24, "size of skink_semaphore_statistics");
_Static_assert(offsetof(struct skink_semaphore_statistics, ups) == 0, "skink_semaphore_statistics.ups");
_Static_assert(offsetof(struct skink_semaphore_statistics, downs) == 8, "skink_semaphore_statistics.downs");
_Static_assert(offsetof(struct skink_semaphore_statistics, maxinq) == 16, "skink_semaphore_statistics.maxinq");

/* Internals of a semaphore. */
struct skink_semaphore_internals {
    /* Its id. */
    uint64_t index;
    /* Process number of the owner, or -1: free. */
    int64_t owner;
    /* Waiters. */
    uint64_t inq;
};
_Static_assert(sizeof(struct skink_semaphore_internals) == 24, "size of skink_semaphore_internals");
_Static_assert(offsetof(struct skink_semaphore_internals, index) == 0, "skink_semaphore_internals.index");
_Static_assert(offsetof(struct skink_semaphore_internals, owner) == 8, "skink_semaphore_internals.owner");
_Static_assert(offsetof(struct skink_semaphore_internals, inq) == 16, "skink_semaphore_internals.inq");

/* Statistics of a message queue. */
struct skink_queue_statistics {
    /* Messages that found a waiting receiver. */
    uint64_t delivered;
    /* Messages that waited. */
    uint64_t enqueued;
    uint64_t maxinq;
};
_Static_assert(sizeof(struct skink_queue_statistics) == 24, "size of skink_queue_statistics");
_Static_assert(offsetof(struct skink_queue_statistics, delivered) == 0, "skink_queue_statistics.delivered");
_Static_assert(offsetof(struct skink_queue_statistics, enqueued) == 8, "skink_queue_statistics.enqueued");
_Static_assert(offsetof(struct skink_queue_statistics, maxinq) == 16, "skink_queue_statistics.maxinq");

/* Records of the kernel's trace ring, which --trace decodes on the host and /dev/trace gives to programs of root. */

/* Kinds of events. */

/* A message was delivered from from to to. */
#define SKINK_TRACE_EVENT_MESSAGE 1u

/* A notification was delivered. */
#define SKINK_TRACE_EVENT_NOTIFY 2u

/* The CPU went from thread from to thread to. */
#define SKINK_TRACE_EVENT_SWITCH 3u

/* Thread from made the kernel call label; word 6 is its result. to is SYSTEM if the SYSTEM task made it for a message. */
#define SKINK_TRACE_EVENT_KERNEL_CALL 4u

/* Thread from raised the exception or fault label (CPU vector); word 0 is the address. */
#define SKINK_TRACE_EVENT_EXCEPTION 5u

/* Interrupt line label fired for thread to. */
#define SKINK_TRACE_EVENT_INTERRUPT 6u

/* Thread to was given the service name in words 0 and 1. */
#define SKINK_TRACE_EVENT_NAMED 7u

/* Thread from accessed port label on the access path in word 0 (privilege::way); word 1 is the operation, word 2 the value written, word 6
 * the result. */
#define SKINK_TRACE_EVENT_PORT 8u

/* The timer found thread from at the address in word 0, with stack pointer and RBP in words 1 and 2 and its queue in word 3. label is 1 if
 * it was in the kernel: the address is behind its system call. */
#define SKINK_TRACE_EVENT_SAMPLE 9u

/* Kinds that can only be recorded while nothing takes a fast path. */
#define SKINK_TRACE_EVENT_OBSERVED 286ull

/* All kinds but samples. */
#define SKINK_TRACE_EVENT_ALL 510ull

/* Records that the ring holds. */
#define SKINK_TRACE_RING_RECORDS 0x2000u

/* Bytes before the first record. */
#define SKINK_TRACE_RING_HEADER_BYTES 16u

/* Shortest distance of samples: beyond it the machine would do little else. */
#define SKINK_TRACE_MIN_PERIOD_NS 0x4e20ull

/* What a program writes to /dev/trace. */
struct skink_trace_settings {
    /* A bit for each kind of event. */
    uint64_t events;
    /* Distance of samples in nanoseconds, at least MIN_PERIOD_NS; 0 without samples. */
    uint64_t period_ns;
};
_Static_assert(sizeof(struct skink_trace_settings) == 16, "size of skink_trace_settings");
_Static_assert(offsetof(struct skink_trace_settings, events) == 0, "skink_trace_settings.events");
_Static_assert(offsetof(struct skink_trace_settings, period_ns) == 8, "skink_trace_settings.period_ns");

/* One record, 80 bytes, little endian. */
struct skink_record {
    /* TSC at the time of the event. */
    uint64_t tsc;
    /* One of event. */
    uint32_t event;
    /* Label, vector, or number of the call. */
    uint32_t label;
    /* Thread that acted, or sender. */
    endpoint_t from;
    /* Thread affected, or receiver. */
    endpoint_t to;
    /* Words of the message. */
    uint64_t words[7];
};
_Static_assert(sizeof(struct skink_record) == 80, "size of skink_record");
_Static_assert(offsetof(struct skink_record, tsc) == 0, "skink_record.tsc");
_Static_assert(offsetof(struct skink_record, event) == 8, "skink_record.event");
_Static_assert(offsetof(struct skink_record, label) == 12, "skink_record.label");
_Static_assert(offsetof(struct skink_record, from) == 16, "skink_record.from");
_Static_assert(offsetof(struct skink_record, to) == 20, "skink_record.to");
_Static_assert(offsetof(struct skink_record, words) == 24, "skink_record.words");

/* The protocol between tty and pm: signals of terminals. (Reads and writes are chardev.) */

/* NextEvent: the target is a process. */
#define SKINK_TTY_TO_PROCESS 0x100000000ull

/* NextEvent: the target is a process that wants to change its terminal from the background. */
#define SKINK_TTY_CHANGES 0x200000000ull

/* Major number of the slaves of pseudo-terminals (Linux's): the node of slave N is makedev(PTS_MAJOR, N). */
#define SKINK_TTY_PTS_MAJOR 136u

/* Pseudo-terminals at a time (Linux's kernel.pty.max). */
#define SKINK_TTY_MAX_PTYS 0x1000u

/* chardev: the minor of master 0; that of master N is N more. */
#define SKINK_TTY_MINOR_MASTER 0x10000ull

/* chardev: the minor of slave 0. */
#define SKINK_TTY_MINOR_SLAVE 0x20000ull

/* Terminals. tty notifies pm when there are events. */

/* pm: returns the first event but that with the number done, which pm has dealt with. ENOENT: none. signal for every process of the group
 * target (SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGHUP, SIGCONT), or with TO_PROCESS for the process with that pid: what it
 * has asked for with VT_SETMODE, or 0, which only asks whether the process exists. If it does not, ProcessGone follows. With CHANGES
 * besides, the process wants to change the terminal from the background: its group gets SIGTTOU, unless it need not, or nobody could
 * continue it; then Background follows. */
#define SKINK_TTY_NEXT_EVENT 0x90001u
struct skink_tty_next_event {
    uint64_t done;
};
struct skink_tty_next_event_reply {
    uint64_t number;
    uint64_t signal;
    uint64_t target;
};

/* pm: the session of this leader has ended and loses its terminal; SIGHUP and SIGCONT to the foreground group come as events. */
#define SKINK_TTY_SESSION_END 0x90002u
struct skink_tty_session_end {
    uint64_t session;
};

/* pm, before the machine ends: returns when all output of the terminals has been sent, or after a second: a line that is stopped must not
 * keep the machine running. */
#define SKINK_TTY_DRAIN 0x90003u

/* pm: the process to which tty had a signal has ended. Screens that it draws on and terminals whose switch it decides are taken back. */
#define SKINK_TTY_PROCESS_GONE 0x90004u
struct skink_tty_process_gone {
    uint64_t process;
};

/* pm: what a process wants to do to its terminal from the background is allowed, since it ignores or blocks SIGTTOU, or fails with EIO,
 * since its group is orphaned. */
#define SKINK_TTY_BACKGROUND 0x90005u
struct skink_tty_background {
    uint64_t process;
    uint64_t allowed;
};

/* The protocol of vfs: requests of pm and procfs. Programs reach vfs by their Linux calls (list: systems/ *.toml). vfs replies at once; the
 * results of longer operations are events: vfs notifies pm, which fetches them with NextEvent. */

/* Compare: the open files of two descriptors. */
#define SKINK_VFS_COMPARE_FILE 0ull

/* Compare: the descriptor tables. */
#define SKINK_VFS_COMPARE_FILES 1ull

/* Compare: what chdir and umask change. */
#define SKINK_VFS_COMPARE_FS 2ull

/* Compare: the open file of descriptor, and the one that the epoll of the second's descriptor other (low half) has registered as descriptor
 * (high half), the nth with that number. */
#define SKINK_VFS_COMPARE_EPOLL 3ull

/* Text: /proc/mounts. */
#define SKINK_VFS_TEXT_MOUNTS 0ull

/* Text: /proc/self/mountinfo. */
#define SKINK_VFS_TEXT_MOUNT_INFO 1ull

/* Text: /proc/locks. */
#define SKINK_VFS_TEXT_LOCKS 2ull

/* Text: /proc/net/unix. */
#define SKINK_VFS_TEXT_SOCKETS 3ull

/* Text: /proc/partitions. */
#define SKINK_VFS_TEXT_PARTITIONS 4ull

/* DescriptorAccess: reading. */
#define SKINK_VFS_OPEN_READS 1ull

/* DescriptorAccess: writing. */
#define SKINK_VFS_OPEN_WRITES 2ull

/* SetIdMap: no id. */
#define SKINK_VFS_NO_ID_MAP 0xffffffffffffffffull

/* Fork: the descriptor table is shared (CLONE_FILES). */
#define SKINK_VFS_FORK_FILES 1ull

/* Fork: directory, root and umask are shared (CLONE_FS). */
#define SKINK_VFS_FORK_FS 2ull

/* OpenPidFd: waits for it do not block (PIDFD_NONBLOCK). */
#define SKINK_VFS_PIDFD_NONBLOCK 1ull

/* Event: an exec is ready to be committed or has failed. */
#define SKINK_VFS_EVENT_EXEC 1ull

/* Event: a signal for a thread. */
#define SKINK_VFS_EVENT_SIGNAL 2ull

/* Event: SyncAll has completed; a = 0 or negative error. */
#define SKINK_VFS_EVENT_SYNCED 3ull

/* Event: a message has arrived in a queue for which a process requested a signal (mq_notify(3)): a = pid (low half) and signal, b = value
 * for the handler, c = pid (low half) and user of the sender. */
#define SKINK_VFS_EVENT_MESSAGE 4ull

/* Event: the call of this thread (pselect6, ppoll) waits with the signal mask a in force in place of the thread's own. */
#define SKINK_VFS_EVENT_MASK 5ull

/* Event: that wait is over. Unless a signal is to be delivered, which restores the mask itself, pm restores it; then it sends Unmasked. */
#define SKINK_VFS_EVENT_MASK_END 6ull

/* Event: something happened to an open file (O_ASYNC), or its lease is to be broken: a signal for its owner (F_SETOWN): a = id of the owner
 * (low half), what the id is of (OWNER_THREAD to OWNER_GROUP, bits 32 to 39) and signal (F_SETSIG, from bit 40; 0: SIGIO without details),
 * b = descriptor (low half) and reason (OWNER_INPUT to OWNER_HANG_UP), c = user (low half) and effective user who named the owner. pm
 * checks that these may signal it. */
#define SKINK_VFS_EVENT_OWNER 7ull

/* EVENT_OWNER: the owner is a thread (F_OWNER_TID). */
#define SKINK_VFS_OWNER_THREAD 0ull

/* EVENT_OWNER: a process (F_OWNER_PID). */
#define SKINK_VFS_OWNER_PROCESS 1ull

/* EVENT_OWNER: every process of a group (F_OWNER_PGRP). */
#define SKINK_VFS_OWNER_GROUP 2ull

/* EVENT_OWNER: there is something to read (POLL_IN). */
#define SKINK_VFS_OWNER_INPUT 1ull

/* EVENT_OWNER: there is room to write (POLL_OUT). */
#define SKINK_VFS_OWNER_OUTPUT 2ull

/* EVENT_OWNER: the lease is to be broken (POLL_MSG). */
#define SKINK_VFS_OWNER_MESSAGE 3ull

/* EVENT_OWNER: the peer has gone (POLL_HUP). */
#define SKINK_VFS_OWNER_HANG_UP 6ull

/* Requests that all contexts of asynchronous I/O may have: /proc/sys/fs/aio-max-nr. */
#define SKINK_VFS_AIO_REQUESTS 0x10000ull

/* Inotify instances of one user: /proc/sys/fs/inotify/max_user_instances. */
#define SKINK_VFS_INOTIFY_USER_INSTANCES 128ull

/* Watches of one user: /proc/sys/fs/inotify/max_user_watches. */
#define SKINK_VFS_INOTIFY_USER_WATCHES 0x1000ull

/* Events that an instance holds: /proc/sys/fs/inotify/max_queued_events. */
#define SKINK_VFS_INOTIFY_QUEUED_EVENTS 0x4000ull

/* Seconds from the begin of the break of a lease to its end by force: /proc/sys/fs/lease-break-time. */
#define SKINK_VFS_LEASE_BREAK_S 45ull

/* EVENT_EXEC: set-user-id, d low half is the owner. */
#define SKINK_VFS_EXEC_SETUID 2ull

/* EVENT_EXEC: set-group-id, d high half is the group. */
#define SKINK_VFS_EXEC_SETGID 4ull

/* EVENT_EXEC: the file has capabilities, which ExecText tells. */
#define SKINK_VFS_EXEC_CAPABILITIES 8ull

/* Size in ExecText. */
#define SKINK_VFS_BYTES 24u

/* Files. From pm unless noted. */

/* A new process or thread: descriptors, working directory, root, umask, ids are copied from parent, or shared (flags: FORK_FILES, FORK_FS).
 * identity: pid (low half), and how many processes had it before (31 bits). parent NONE: the first program: root directory, descriptors 0
 * to 2 on /dev/console. parts: its containers. If that of mounts has none yet, it gets copies of the parent's. ENOSPC: there are too many. */
#define SKINK_VFS_FORK 0x30001u
struct skink_vfs_fork {
    uint64_t parent;
    uint64_t child;
    uint64_t identity;
    uint64_t flags;
    uint64_t parts;
};

/* The process or thread has ended: closes its unshared descriptors and cancels its call in progress. */
#define SKINK_VFS_EXIT 0x30002u
struct skink_vfs_exit {
    uint64_t process;
};

/* Finds and checks the program at the path in the grant and loads its image into vm, interpreters included. directory: what the path is
 * relative to, a descriptor or AT_FDCWD; flags of execveat(2), checked. The result comes as event EVENT_EXEC. */
#define SKINK_VFS_EXEC 0x30003u
struct skink_vfs_exec {
    uint64_t process;
    uint64_t grant;
    uint64_t bytes;
    int64_t directory;
    uint64_t flags;
};

/* The exec is committed: closes descriptors marked close-on-exec, unshares the table. */
#define SKINK_VFS_EXEC_COMMIT 0x30004u
struct skink_vfs_exec_commit {
    uint64_t process;
};

/* Copies the text of the last exec event into the grant: strings with a NUL behind each: the absolute path of the program that runs, the
 * name that was executed, and for a script the arguments in place of the first one. With EXEC_CAPABILITIES a FileCapabilities precedes
 * them. Word 0 of the reply: length. */
#define SKINK_VFS_EXEC_TEXT 0x30005u
struct skink_vfs_exec_text {
    uint64_t process;
    uint64_t grant;
    uint64_t bytes;
};

/* Cancels the call in progress for a signal: it returns the bytes moved so far if there are any, else error (mostly ERESTARTSYS). ENOENT:
 * no call in progress. */
#define SKINK_VFS_CANCEL 0x30006u
struct skink_vfs_cancel {
    uint64_t process;
    int64_t error;
};

/* Ids or capabilities have changed: effective uid (low) and gid (high half), real ones, supplementary groups (array of u32) in the grant;
 * effective capabilities, and those with which access(2) judges. */
#define SKINK_VFS_SET_IDS 0x30007u
struct skink_vfs_set_ids {
    uint64_t process;
    uint64_t effective;
    uint64_t real;
    uint64_t grant;
    uint64_t groups;
    uint64_t capabilities;
    uint64_t real_capabilities;
};

/* Session and group have changed. leader: the process has become a session leader, without controlling terminal. */
#define SKINK_VFS_SET_SESSION 0x30008u
struct skink_vfs_set_session {
    uint64_t process;
    uint64_t session;
    uint64_t group;
    uint64_t leader;
};

/* Returns the next event, whose number is word 0 of the reply. done: the number of the last one that pm has dealt with, or 0; an event
 * comes again until pm says so, also to a successor of pm or from one of vfs. ENOENT: none left. Values by kind: EVENT_EXEC: word a =
 * image, or negative error; b = interpreter image; c = flags (EXEC_*), d = owner ids if set-id. EVENT_SIGNAL: a = signal for this thread,
 * whose call waits for Cancel (SIGPIPE, SIGXFSZ). */
#define SKINK_VFS_NEXT_EVENT 0x30009u
struct skink_vfs_next_event {
    uint64_t done;
};
struct skink_vfs_next_event_reply {
    uint64_t kind;
    uint64_t process;
    uint64_t a;
    uint64_t b;
    uint64_t c;
    uint64_t d;
};

/* pm: writes everything back, then sends event EVENT_SYNCED, before a shutdown. unmount: file systems are marked clean and refuse writes. */
#define SKINK_VFS_SYNC_ALL 0x3000au
struct skink_vfs_sync_all {
    uint64_t unmount;
};

/* procfs: copies a text (TEXT_*) from offset into the grant; of mounts, that which process sees. Word 0 of the reply: bytes copied. */
#define SKINK_VFS_TEXT 0x3000bu
struct skink_vfs_text {
    uint64_t what;
    uint64_t grant;
    uint64_t bytes;
    uint64_t offset;
    uint64_t process;
};

/* procfs: copies the path of descriptor what ≥ 0, working directory (-1) or root (-2) of a process into the grant. Word 0 of the reply:
 * length. EBADF: no such descriptor. */
#define SKINK_VFS_DESCRIPTOR_PATH 0x3000cu
struct skink_vfs_descriptor_path {
    uint64_t process;
    int64_t what;
    uint64_t grant;
    uint64_t bytes;
};

/* procfs: copies the open descriptors of a process from first on into the grant, as u32 array. Word 0 of the reply: bytes copied. */
#define SKINK_VFS_DESCRIPTORS 0x3000du
struct skink_vfs_descriptors {
    uint64_t process;
    uint64_t first;
    uint64_t grant;
    uint64_t bytes;
};

/* The event EVENT_MASK_END of a thread has been handled: its call returns. */
#define SKINK_VFS_UNMASKED 0x3000eu
struct skink_vfs_unmasked {
    uint64_t process;
};

/* Soft resource limits of the process of this thread have changed: RLIMIT_NOFILE, RLIMIT_FSIZE and RLIMIT_MSGQUEUE (all ones: none). A
 * child begins with its parent's. */
#define SKINK_VFS_SET_LIMITS 0x3000fu
struct skink_vfs_set_limits {
    uint64_t process;
    uint64_t descriptors;
    uint64_t file_bytes;
    uint64_t message_bytes;
};

/* procfs: copies the lines of /proc/PID/fdinfo for a descriptor into the grant. Word 0 of the reply: length. EBADF. */
#define SKINK_VFS_DESCRIPTOR_INFO 0x30010u
struct skink_vfs_descriptor_info {
    uint64_t process;
    int64_t descriptor;
    uint64_t grant;
    uint64_t bytes;
};

/* procfs: returns umask and size of the descriptor table of a process. */
#define SKINK_VFS_PROCESS_FILES 0x30011u
struct skink_vfs_process_files {
    uint64_t process;
};
struct skink_vfs_process_files_reply {
    uint64_t umask;
    uint64_t table_size;
};

/* procfs: returns how many open files and vnodes there are, and how large the tables are. */
#define SKINK_VFS_USAGE 0x30012u
struct skink_vfs_usage_reply {
    uint64_t files;
    uint64_t files_max;
    uint64_t nodes;
    uint64_t user_pipe_bytes;
    uint64_t user_interests;
    uint64_t aio_requests;
};

/* Gives a thread a descriptor for the process with this identity (Fork), for its call to pm with this number: asked again for the same
 * call, it is the same descriptor. flags: PIDFD_NONBLOCK. It is also written to address, unless that is 0. Word 0 of the reply: the
 * descriptor. */
#define SKINK_VFS_OPEN_PID_FD 0x30013u
struct skink_vfs_open_pid_fd {
    uint64_t process;
    uint64_t call;
    uint64_t identity;
    uint64_t flags;
    uint64_t address;
};

/* Returns the process that a descriptor of a thread means. EBADF: it means none. */
#define SKINK_VFS_PID_FD 0x30014u
struct skink_vfs_pid_fd {
    uint64_t process;
    int64_t descriptor;
};
struct skink_vfs_pid_fd_reply {
    uint64_t identity;
    uint64_t nonblocking;
};

/* Gives a thread a descriptor for the open file of another one's (pidfd_getfd(2)), for its call to pm with this number. Word 0 of the
 * reply: the descriptor. */
#define SKINK_VFS_COPY_DESCRIPTOR 0x30015u
struct skink_vfs_copy_descriptor {
    uint64_t process;
    uint64_t call;
    uint64_t from;
    int64_t descriptor;
};

/* A signal that vfs has asked about (pm::TakeSignals, pm::AwaitSignals) is pending for this thread. It is told once. */
#define SKINK_VFS_SIGNALS_PENDING 0x30016u
struct skink_vfs_signals_pending {
    uint64_t process;
};

/* Returns the process whose directory /proc/PID a descriptor of a thread is open on (pidfd_send_signal(2) takes such a one). Word 0 of the
 * reply: its pid; it may have ended. EBADF: it is of something else. */
#define SKINK_VFS_PROCESS_FOLDER 0x30017u
struct skink_vfs_process_folder {
    uint64_t process;
    int64_t descriptor;
};

/* Compares what two threads have open (kcmp(2)): COMPARE_*. Word 0 of the reply: 0, the same; 1 or 2, the first is before or behind the
 * second, in an order that stays. EBADF: no such descriptor; of COMPARE_EPOLL also EINVAL, no epoll, and ENOENT. */
#define SKINK_VFS_COMPARE 0x30019u
struct skink_vfs_compare {
    uint64_t what;
    uint64_t first;
    uint64_t descriptor;
    uint64_t second;
    uint64_t other;
    uint64_t nth;
};

/* procfs: word 0 of the reply is what a descriptor was opened for (OPEN_*). EBADF. */
#define SKINK_VFS_DESCRIPTOR_ACCESS 0x30018u
struct skink_vfs_descriptor_access {
    uint64_t process;
    int64_t descriptor;
};

/* A thread is in other containers from now on. If the new one of mounts has none yet, it gets copies of those that the thread sees;
 * otherwise the thread's root and working directory become its root. unshared: it has descriptors (FORK_FILES) or directories (FORK_FS) of
 * its own from now on. ENOSPC: there are too many mounts. */
#define SKINK_VFS_SET_PARTS 0x3001au
struct skink_vfs_set_parts {
    uint64_t process;
    uint64_t parts;
    uint64_t unshared;
};

/* The ids of the users of a thread's container: users: the one that it shows (low half) and the system's, groups alike; all ones where
 * there is none. */
#define SKINK_VFS_SET_ID_MAP 0x3001bu
struct skink_vfs_set_id_map {
    uint64_t process;
    uint64_t users;
    uint64_t groups;
};

/* How many open files and pipes a container with limits may have (Parts::limited): ENFILE beyond. u64::MAX: as one user. */
#define SKINK_VFS_LIMIT_CONTAINER 0x3001cu
struct skink_vfs_limit_container {
    uint64_t container;
    uint64_t files;
    uint64_t pipes;
};

/* Returns how many open files and pipes a container with limits has. */
#define SKINK_VFS_CONTAINER_FILES 0x3001du
struct skink_vfs_container_files {
    uint64_t container;
};
struct skink_vfs_container_files_reply {
    uint64_t files;
    uint64_t pipes;
};

/* Whether vfs works for a thread that waits for its answer, or has a file system do so: word 0 of the reply is 1; 0: the call waits for
 * something that may never happen, such as input. ESRCH. */
#define SKINK_VFS_WORKS_FOR 0x3001eu
struct skink_vfs_works_for {
    uint64_t process;
};

/* The protocol of vm, the memory server: frames, address spaces, page faults, mmap, images of executables. Routed to vm are the Linux calls
 * brk, mmap, munmap, mprotect, mremap, madvise, msync, mincore, mlock and relatives. vm never blocks on another process, so every process
 * may wait for it. */

/* FileName: longest path. */
#define SKINK_VM_MAX_NAME_BYTES 0x400ull

/* ImageForget: every file of the device. */
#define SKINK_VM_ALL_INODES 0xffffffffffffffffull

/* ImageResize: the size that the file had is not known. */
#define SKINK_VM_UNKNOWN_BYTES 0xffffffffffffffffull

/* CacheTake: most pages of a request. */
#define SKINK_VM_CACHE_BATCH 64ull

/* Most numbers in one ClaimImages: program and interpreter of every thread. */
#define SKINK_VM_MAX_CLAIMS 0x900ull

/* SegmentAttach: for reading. */
#define SKINK_VM_ATTACH_READ 1ull

/* SegmentAttach: for writing. */
#define SKINK_VM_ATTACH_WRITE 2ull

/* SegmentAttach: for executing. */
#define SKINK_VM_ATTACH_EXECUTE 4ull

/* SegmentAttach: whatever is mapped there is replaced. */
#define SKINK_VM_ATTACH_REPLACE 8ull

/* SegmentAttach: the segment is made when there is none. */
#define SKINK_VM_ATTACH_MAKE 16ull

/* One region of an address space. */
struct skink_map_record {
    /* First address. */
    uint64_t start;
    /* Address after the last. */
    uint64_t end;
    /* Bytes that are present: what was never touched, or was discarded, is not. */
    uint64_t resident;
    /* Offset in the file. */
    uint64_t offset;
    /* Inode, 0: anonymous. */
    uint64_t inode;
    /* Device. */
    uint64_t device;
    /* PROT_READ 1, PROT_WRITE 2, PROT_EXEC 4, shared 8. */
    uint32_t protection;
    /* 0 other, 1 heap, 2 stack, 3 page of the clocks, 4 vDSO. */
    uint32_t kind;
};
_Static_assert(sizeof(struct skink_map_record) == 56, "size of skink_map_record");
_Static_assert(offsetof(struct skink_map_record, start) == 0, "skink_map_record.start");
_Static_assert(offsetof(struct skink_map_record, end) == 8, "skink_map_record.end");
_Static_assert(offsetof(struct skink_map_record, resident) == 16, "skink_map_record.resident");
_Static_assert(offsetof(struct skink_map_record, offset) == 24, "skink_map_record.offset");
_Static_assert(offsetof(struct skink_map_record, inode) == 32, "skink_map_record.inode");
_Static_assert(offsetof(struct skink_map_record, device) == 40, "skink_map_record.device");
_Static_assert(offsetof(struct skink_map_record, protection) == 48, "skink_map_record.protection");
_Static_assert(offsetof(struct skink_map_record, kind) == 52, "skink_map_record.kind");

/* Memory. Faults come from the kernel (kernel::Fault, kernel::CopyFault); callers of the others as noted. */

/* rs: builds the address space of a new service (registers are rs's to set) from the ELF file in the grant: segments, stack, heap of
 * heap_bytes (filled on demand), preserved memory of keep_bytes (zero at first, then the same pages for each incarnation in this slot), and
 * copies the argument text from the grant behind the image. All memory of a predecessor in the slot but the preserved memory is freed.
 * Returns entry, address of the arguments, end of the stack. ENOEXEC, ENOMEM. */
#define SKINK_VM_SPAWN 0x10001u
struct skink_vm_spawn {
    uint64_t process;
    uint64_t grant;
    uint64_t image_bytes;
    uint64_t argument_bytes;
    uint64_t heap_bytes;
    uint64_t keep_bytes;
};
struct skink_vm_spawn_reply {
    uint64_t entry;
    uint64_t arguments;
    uint64_t stack_end;
};

/* pm: gives child a copy-on-write copy of parent's memory, or (share) the same memory (vfork, threads). pid: id of the process that the
 * child is or belongs to. */
#define SKINK_VM_FORK 0x10002u
struct skink_vm_fork {
    uint64_t parent;
    uint64_t child;
    uint64_t share;
    uint64_t pid;
};

/* pm, rs: the process has ended; frees its memory unless another process shares it. Returns what MemoryUse would have, and so once more if
 * the program that has ended last is named again. ESRCH. */
#define SKINK_VM_EXIT 0x10003u
struct skink_vm_exit {
    uint64_t process;
};
struct skink_vm_exit_reply {
    uint64_t faults;
    uint64_t peak_bytes;
};

/* pm: replaces the memory of process by the image (and interpreter image, 0 = none) and a fresh stack of at most stack_bytes. On failure
 * nothing has changed. ENOEXEC, ENOMEM. phdr: address of the program headers in memory; interpreter_base: 0 without interpreter; start:
 * where to jump to (the interpreter's entry if there is one). seed: a random number that decides where stack, mappings, heap and
 * position-independent programs begin; 0: at fixed addresses. */
#define SKINK_VM_EXEC 0x10004u
struct skink_vm_exec {
    uint64_t process;
    uint64_t image;
    uint64_t interpreter;
    uint64_t stack_bytes;
    uint64_t seed;
};
struct skink_vm_exec_reply {
    uint64_t start;
    uint64_t entry;
    uint64_t phdr;
    uint64_t phdr_count;
    uint64_t interpreter_base;
    uint64_t stack_end;
};

/* vfs: returns the image (cached pages) of this file, an empty one if there was none. version changes with the content: an image of an
 * older version is discarded. Unmapped images are evicted when memory is short. has_name: FileName need not be told. */
#define SKINK_VM_IMAGE_OPEN 0x10005u
struct skink_vm_image_open {
    uint64_t device;
    uint64_t inode;
    uint64_t version;
    uint64_t bytes;
};
struct skink_vm_image_open_reply {
    uint64_t image;
    uint64_t has_name;
};

/* vfs: returns the first missing range of the image within offset .. offset + bytes. Word 0 of the reply: its length in bytes (0: nothing
 * is missing). */
#define SKINK_VM_IMAGE_MISSING 0x10006u
struct skink_vm_image_missing {
    uint64_t image;
    uint64_t offset;
    uint64_t bytes;
};
struct skink_vm_image_missing_reply {
    uint64_t missing_offset;
};

/* vfs: fills a range of the image from the grant. The offset is page-aligned, the length a multiple of the page except at the end of the
 * file. */
#define SKINK_VM_IMAGE_FILL 0x10007u
struct skink_vm_image_fill {
    uint64_t image;
    uint64_t offset;
    uint64_t grant;
    uint64_t bytes;
};

/* vfs: releases an image that it opened. */
#define SKINK_VM_IMAGE_CLOSE 0x10008u
struct skink_vm_image_close {
    uint64_t image;
};

/* vfs: the content of this file has changed or it was deleted: its image is not used for later mappings. gone: the file is freed, and
 * another one may get its number; inode ALL_INODES: so it is with all files of the device. Returns whether images of it are in use. */
#define SKINK_VM_IMAGE_FORGET 0x10009u
struct skink_vm_image_forget {
    uint64_t device;
    uint64_t inode;
    uint64_t gone;
};
struct skink_vm_image_forget_reply {
    uint64_t in_use;
};

/* vfs, after a notification from vm: returns the next mmap of a file, whose program blocks in vm. ENOENT: none left. */
#define SKINK_VM_NEXT_FILE_MAP 0x1000au
struct skink_vm_next_file_map_reply {
    uint64_t process;
    int64_t descriptor;
    uint64_t offset;
    uint64_t bytes;
    uint64_t flags;
};

/* vfs: completes a file mapping with the image or shared file, loaded in the range, or with an error for the program. vm maps it and
 * replies to the program. may_write: the descriptor is open for writing, so a shared mapping may become writable later. */
#define SKINK_VM_FILE_MAP_DONE 0x1000bu
struct skink_vm_file_map_done {
    uint64_t process;
    uint64_t image;
    int64_t error;
    uint64_t may_write;
};

/* Drivers: maps physical memory of their privileges into the caller. flags: layout::map::WRITE, UNCACHED, COMBINED. Returns the address.
 * EPERM: outside the privileges. */
#define SKINK_VM_MAP_PHYSICAL 0x1000cu
struct skink_vm_map_physical {
    uint64_t physical;
    uint64_t bytes;
    uint64_t flags;
};
struct skink_vm_map_physical_reply {
    uint64_t address;
};

/* Drivers: allocates physically contiguous memory for DMA and maps it into the caller. flags: layout::map::ZERO clears it, else it may be a
 * predecessor's, as that left it; layout::map::UNCACHED. Returns its address and physical address. EPERM: more than SetRights allows, all
 * incarnations in the slot together; ENOMEM. */
#define SKINK_VM_ALLOCATE_DMA 0x1000du
struct skink_vm_allocate_dma {
    uint64_t bytes;
    uint64_t flags;
};
struct skink_vm_allocate_dma_reply {
    uint64_t address;
    uint64_t physical;
};

/* Any service: returns the bytes that are total, free, cached (images) and used by vm itself. */
#define SKINK_VM_MEMORY_INFO 0x1000eu
struct skink_vm_memory_info_reply {
    uint64_t total;
    uint64_t free;
    uint64_t cached;
    uint64_t own;
};

/* Services with inspects_memory: returns size and resident bytes of a process. */
#define SKINK_VM_PROCESS_MEMORY 0x1000fu
struct skink_vm_process_memory {
    uint64_t process;
};
struct skink_vm_process_memory_reply {
    uint64_t virtual_bytes;
    uint64_t resident_bytes;
    uint64_t data_bytes;
    uint64_t stack_bytes;
    uint64_t faults;
    uint64_t peak_bytes;
};

/* Services with inspects_memory: copies MapRecords of a process into the grant, starting with region first. Word 0 of the reply: bytes
 * copied. */
#define SKINK_VM_MAPS 0x10010u
struct skink_vm_maps {
    uint64_t process;
    uint64_t first;
    uint64_t grant;
    uint64_t bytes;
};

/* rs: as Spawn, but process inherits the memory of its predecessor in the slot; only the read-only segments, the arguments and the stack
 * are fresh. ESRCH: no predecessor; ENOEXEC: not the predecessor's image. */
#define SKINK_VM_RENEW 0x10011u
struct skink_vm_renew {
    uint64_t process;
    uint64_t grant;
    uint64_t image_bytes;
    uint64_t argument_bytes;
};
struct skink_vm_renew_reply {
    uint64_t entry;
    uint64_t arguments;
    uint64_t stack_end;
};

/* vfs: returns the shared file, the one object behind all shared mappings of a file, an empty one if there was none. vfs holds it until
 * SharedClose. ImageMissing, ImageFill and FileMapDone accept it in place of an image. */
#define SKINK_VM_SHARED_OPEN 0x10012u
struct skink_vm_shared_open {
    uint64_t device;
    uint64_t inode;
    uint64_t bytes;
};
struct skink_vm_shared_open_reply {
    uint64_t object;
    uint64_t has_name;
};

/* vfs: copies the first run of dirty pages within offset .. end, at most bytes bytes, into the grant, and write-protects them to see later
 * changes. The pages stay dirty until SharedWritten. Word 0 of the reply: bytes (0: no dirty page); then the offset. */
#define SKINK_VM_SHARED_TAKE 0x10013u
struct skink_vm_shared_take {
    uint64_t object;
    uint64_t offset;
    uint64_t end;
    uint64_t grant;
    uint64_t bytes;
};
struct skink_vm_shared_take_reply {
    uint64_t offset;
};

/* vfs: the dirty pages that SharedTake copied are written to the file: they are clean. */
#define SKINK_VM_SHARED_WRITTEN 0x10014u
struct skink_vm_shared_written {
    uint64_t object;
    uint64_t offset;
    uint64_t bytes;
};

/* vfs: copies what a write(2) has put into the file from the grant to the shared file; the file is size bytes long. */
#define SKINK_VM_SHARED_UPDATE 0x10015u
struct skink_vm_shared_update {
    uint64_t object;
    uint64_t offset;
    uint64_t grant;
    uint64_t bytes;
    uint64_t size;
};

/* vfs: the file was truncated or extended to this size. Pages beyond the end are unmapped, in programs too. */
#define SKINK_VM_SHARED_RESIZE 0x10016u
struct skink_vm_shared_resize {
    uint64_t object;
    uint64_t bytes;
};

/* vfs: releases a shared file. EBUSY: it is mapped, or it has dirty pages and lose is not set. */
#define SKINK_VM_SHARED_CLOSE 0x10017u
struct skink_vm_shared_close {
    uint64_t object;
    uint64_t lose;
};

/* vfs, after a notification from vm: returns a shared file whose last mapping is gone. ENOENT: none left. */
#define SKINK_VM_NEXT_UNMAPPED 0x10018u
struct skink_vm_next_unmapped_reply {
    uint64_t object;
};

/* vfs, after its restart: returns the shared file after this one in vm's order, 0: the first. ENOENT: none left. */
#define SKINK_VM_NEXT_SHARED 0x10019u
struct skink_vm_next_shared {
    uint64_t after;
};
struct skink_vm_next_shared_reply {
    uint64_t object;
    uint64_t device;
    uint64_t inode;
};

/* vfs, after a notification from vm: returns a file for whose write-back a program waits in msync. ENOENT: none left. */
#define SKINK_VM_NEXT_SYNC 0x1001au
struct skink_vm_next_sync_reply {
    uint64_t process;
    uint64_t object;
};

/* vfs: completes an msync, with 0 or an error. */
#define SKINK_VM_SYNC_DONE 0x1001bu
struct skink_vm_sync_done {
    uint64_t process;
    int64_t error;
};

/* rs, before Spawn: rights of the incarnations in the slot of process, from the system file: how much memory for DMA they may have
 * (dma_bytes), and whether they may ask for the memory of other processes (inspects_memory). Until then: none. */
#define SKINK_VM_SET_RIGHTS 0x1001cu
struct skink_vm_set_rights {
    uint64_t process;
    uint64_t dma_bytes;
    uint64_t inspects_memory;
};

/* pci: returns block number index of the DMA memory that belongs to slot, whichever incarnation allocated it. A block is never freed.
 * ENOENT: there are no more. */
#define SKINK_VM_DMA_BLOCK 0x1001du
struct skink_vm_dma_block {
    uint64_t slot;
    uint64_t index;
};
struct skink_vm_dma_block_reply {
    uint64_t physical;
    uint64_t bytes;
};

/* Any service: frees whole pages of the caller's heap or preserved memory; they read as zeros, and take memory again when they are touched.
 * EINVAL: no whole pages, or not within one of the two. */
#define SKINK_VM_DISCARD 0x1001eu
struct skink_vm_discard {
    uint64_t address;
    uint64_t bytes;
};

/* pm: maps the System V segment with this number of pm's into process and returns its address. address: 0 for any. flags: ATTACH_*. call:
 * number of the process's system call; the same one once more returns the same address. EINVAL: the segment is gone, or the address is in
 * use; ENOMEM. */
#define SKINK_VM_SEGMENT_ATTACH 0x1001fu
struct skink_vm_segment_attach {
    uint64_t process;
    uint64_t call;
    uint64_t segment;
    uint64_t pages;
    uint64_t address;
    uint64_t flags;
};
struct skink_vm_segment_attach_reply {
    uint64_t address;
};

/* pm: nobody is to attach the segment any more who does not know its number: its memory is freed with its last mapping, or now. Returns how
 * many mappings there are. */
#define SKINK_VM_SEGMENT_RELEASE 0x10020u
struct skink_vm_segment_release {
    uint64_t segment;
};
struct skink_vm_segment_release_reply {
    uint64_t attaches;
};

/* pm: returns the mappings of a segment, its resident pages, when one came and went last (seconds since 1970), and the process that did
 * this. ENOENT: it was never attached, or its memory is freed. */
#define SKINK_VM_SEGMENT_STATUS 0x10021u
struct skink_vm_segment_status {
    uint64_t segment;
};
struct skink_vm_segment_status_reply {
    uint64_t attaches;
    uint64_t resident_pages;
    uint64_t attached_s;
    uint64_t detached_s;
    uint64_t process;
};

/* pm: returns the first memory of a process within from .. end that is present: what was never touched is not. ENOENT: none. */
#define SKINK_VM_NEXT_PRESENT 0x10022u
struct skink_vm_next_present {
    uint64_t process;
    uint64_t from;
    uint64_t end;
};
struct skink_vm_next_present_reply {
    uint64_t start;
    uint64_t stop;
};

/* pm: writes the grant to memory of a process that this may not write itself, within one page: the page becomes its own. EFAULT: nothing is
 * mapped, or it is shared. */
#define SKINK_VM_POKE 0x10023u
struct skink_vm_poke {
    uint64_t process;
    uint64_t address;
    uint64_t grant;
    uint64_t bytes;
};

/* pm: what the memory of a process may have, in bytes; u64::MAX: no limit. What it has already stays. An exec keeps them. */
#define SKINK_VM_SET_LIMITS 0x10024u
struct skink_vm_set_limits {
    uint64_t process;
    uint64_t addresses;
    uint64_t data;
    uint64_t locked;
    uint64_t stack;
};

/* vfs: completes a mapping of a character device with what driver has replied to chardev::Map. vm maps it and replies to the program, with
 * EIO if the memory is not the driver's. may_write: the descriptor is open for writing. EPERM: it is neither in the privileges of driver
 * nor DMA memory of its slot. */
#define SKINK_VM_DEVICE_MAP_DONE 0x10025u
struct skink_vm_device_map_done {
    uint64_t process;
    uint64_t driver;
    uint64_t physical;
    uint64_t caching;
    uint64_t may_write;
};

/* rs: the service in this slot stays down. What programs have mapped of its device's memory is taken from them (SIGBUS from now on). A
 * successor keeps what is still in its privileges without this. */
#define SKINK_VM_DEVICE_LOST 0x10026u
struct skink_vm_device_lost {
    uint64_t slot;
};

/* Drivers: lets the service in slot map memory of the caller's own with MapOffered; a later offer takes the place of the first. EPERM: the
 * memory is neither in the privileges of the caller nor its DMA memory; EINVAL. */
#define SKINK_VM_OFFER_MEMORY 0x10027u
struct skink_vm_offer_memory {
    uint64_t slot;
    uint64_t physical;
    uint64_t bytes;
    uint64_t caching;
};

/* Services: maps, for writing, what the service in slot driver offers to the caller. ENOENT: nothing. */
#define SKINK_VM_MAP_OFFERED 0x10028u
struct skink_vm_map_offered {
    uint64_t driver;
};
struct skink_vm_map_offered_reply {
    uint64_t address;
    uint64_t bytes;
};

/* vfs: the file was truncated or extended from old_bytes to bytes. Of all its images, old ones too, what lies beyond the end is unmapped,
 * with the private copies that programs have of it; what is new in images of the old size reads as zeros; old_bytes UNKNOWN_BYTES: in all
 * shorter ones. None is used for later mappings. Returns whether images of it are in use. */
#define SKINK_VM_IMAGE_RESIZE 0x10029u
struct skink_vm_image_resize {
    uint64_t device;
    uint64_t inode;
    uint64_t old_bytes;
    uint64_t bytes;
};
struct skink_vm_image_resize_reply {
    uint64_t in_use;
};

/* pm: returns how many page faults a process has had, over its execs, and the most memory that it had resident. */
#define SKINK_VM_MEMORY_USE 0x1002au
struct skink_vm_memory_use {
    uint64_t process;
};
struct skink_vm_memory_use_reply {
    uint64_t faults;
    uint64_t peak_bytes;
};

/* pm: what a process, its children and the programs that they execute take from now on is charged to a container, which may have so many
 * pages: anonymous and shared memory, and page tables. Beyond that it is ENOMEM, also of a fault. u64::MAX: no limit. */
#define SKINK_VM_SET_CONTAINER 0x1002bu
struct skink_vm_set_container {
    uint64_t process;
    uint64_t container;
    uint64_t pages;
};

/* pm: returns the pages that are charged to a container. */
#define SKINK_VM_CONTAINER_MEMORY 0x1002cu
struct skink_vm_container_memory {
    uint64_t container;
};
struct skink_vm_container_memory_reply {
    uint64_t pages;
};

/* Drivers: returns whether any program maps memory of a driver in the caller's slot. A device that does not show its memory by itself is
 * told of it as long as that is so. */
#define SKINK_VM_IS_SHOWN 0x1002du
struct skink_vm_is_shown_reply {
    uint64_t is_shown;
};

/* vfs: reserves addresses of the caller for a cache of so many pages, all of them absent. When memory is short, vm frees pages of the cache
 * without asking, and a copy from them fails with EFAULT. Returns the address of the first. EEXIST: the caller has a cache. */
#define SKINK_VM_CACHE_OPEN 0x1002eu
struct skink_vm_cache_open {
    uint64_t pages;
};
struct skink_vm_cache_open_reply {
    uint64_t address;
};

/* vfs: makes these pages of the cache present, at most CACHE_BATCH, and replaces those that images or shared files have, too; what is in
 * those that were absent or replaced is undefined. ENOMEM: it would leave too little free memory. */
#define SKINK_VM_CACHE_TAKE 0x1002fu
struct skink_vm_cache_take {
    uint64_t first;
    uint64_t pages;
};

/* Services that set the real-time clock: it is about to be set, or that is done. In between programs ask the kernel for the time; then they
 * find it in the page of the clocks again. The successor of one that died says that it is done. */
#define SKINK_VM_CLOCK_CHANGE 0x10030u
struct skink_vm_clock_change {
    uint64_t done;
};

/* vfs: the path that the file of an image or shared file was opened by, as MappedName tells it. EEXIST: it has one, which it keeps;
 * ENAMETOOLONG: more than MAX_NAME_BYTES. */
#define SKINK_VM_FILE_NAME 0x10031u
struct skink_vm_file_name {
    uint64_t object;
    uint64_t grant;
    uint64_t bytes;
};

/* Services with inspects_memory: copies the path of the file that is mapped at address into the grant. Word 0 of the reply: its length.
 * ENOENT: none is, or its path is not known. */
#define SKINK_VM_MAPPED_NAME 0x10032u
struct skink_vm_mapped_name {
    uint64_t process;
    uint64_t address;
    uint64_t grant;
    uint64_t bytes;
};

/* vfs: puts pages of its cache into an image or shared file, where pages are missing, from the cache's page first on: both have the same
 * frames from then on, until the cache's are taken anew (CacheTake). Offset and length as for ImageFill. What the last page has behind the
 * end of the file is cleared. EFAULT: a page of the cache is gone; those before it are there. */
#define SKINK_VM_IMAGE_SHOW 0x10033u
struct skink_vm_image_show {
    uint64_t image;
    uint64_t offset;
    uint64_t first;
    uint64_t bytes;
};

/* vfs: the other way round: puts pages of a shared file, from offset on, into the cache from its page first on, in place of what is there;
 * at most CACHE_BATCH pages. Both have the same frames from then on, as after ImageShow. Returns two sets of these pages, the first page in
 * the lowest bit: those that the shared file has, and those that read as zeros because the file has grown while it was mapped, but that
 * nobody has made yet. EINVAL: no such shared file, or not the start of a page; otherwise as CacheTake. */
#define SKINK_VM_SHARED_SHOW 0x10034u
struct skink_vm_shared_show {
    uint64_t object;
    uint64_t offset;
    uint64_t first;
    uint64_t pages;
};
struct skink_vm_shared_show_reply {
    uint64_t shown;
    uint64_t zeros;
};

/* vfs, as a successor: these are the images that it holds, each as often as its number is in the grant, 64 bits each. What a predecessor
 * held besides ends. A number that is no image's counts for nothing. EINVAL: more than MAX_CLAIMS; then nothing ends. */
#define SKINK_VM_CLAIM_IMAGES 0x10035u
struct skink_vm_claim_images {
    uint64_t grant;
    uint64_t images;
};

/* vfs: maps a page of zeros into process, which may read and write it, and returns its address. call: number of the process's system call;
 * the same one once more returns the same address. ENOMEM. */
#define SKINK_VM_PAGE_MAP 0x10036u
struct skink_vm_page_map {
    uint64_t process;
    uint64_t call;
};
struct skink_vm_page_map_reply {
    uint64_t address;
};

/* vfs: unmaps the page at this address of process, as munmap does, unless that was done for the system call with this number. EINVAL,
 * ENOMEM. */
#define SKINK_VM_PAGE_UNMAP 0x10037u
struct skink_vm_page_unmap {
    uint64_t process;
    uint64_t call;
    uint64_t address;
};

#endif
