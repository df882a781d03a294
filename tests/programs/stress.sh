# stress-ng: the stressors of its classes cpu, memory, pipe, filesystem, scheduler and interrupt, each by itself, a little of its work with its
# own checks, as a user without rights. The full form has those that take long as well.
#: package stress-ng,coreutils
#: timeout 600
#: memory 768
#
# Of each class all stressors are here but these:
#   iomix         wants a file of 1 GiB, which our disk has no space for
#   vm-segv       its child, which unmaps all of its memory, was once found stopped (state T) where Linux ends it by SIGSEGV; alone it passes
#                 (CAVEATS.md)
#   rseq, tmpfs   do nothing on Linux either: rseq is glibc's, and no tmpfs can be written
#   bind-mount, binderfs, clock, cpu-online, fanotify, ioport, ipsec-mb, netlink-proc, netlink-task, smi, softlockup, uprobe
#                 want rights, a network or other hardware, and skip themselves without
#   forkheavy, oom-pipe, vforkmany
#                 fill all of memory or all slots of processes
# mutex ends by time, not by a number of operations: stress-ng fails it for want of resources (3) when its first thread has done them all
# before the second one is made. On Linux it failed 11 times of 60 on one processor.
cd /tmp
stress() {
    for name; do
        case $name in
        mutex) limit="-t 1" ;;
        *) limit="-t 20 --$name-ops 2" ;;
        esac
        # shellcheck disable=SC2086 # the options of a limit are words
        chroot --userspec=1000:1000 / timeout -s KILL 100 \
            stress-ng --verify --oomable --temp-path /tmp "--$name" 1 $limit >output 2>&1
        status=$?
        echo "$name $status"
        [ $status = 0 ] || cat output >&2
    done
}

# cpu
stress atomic branch bsearch context cpu crypt fp fp-error funccall funcret getrandom goto hash hsearch judy \
    list longjmp matrix matrix-3d mergesort nop numa opcode pkey plugin prefetch priv-instr radixsort rdrand \
    regs rotate secretmem skiplist str stream syncload tsc tsearch vecmath vecshuf vecwide waitcpu wcs \
    x86cpuid zlib

# memory
stress bad-altstack full lockbus malloc membarrier memcpy memfd memthrash mincore misaligned null pipe randlist remap \
    stack stackmmap tlb-shootdown vm vm-addr vm-rw zero

# pipe
stress fifo ring-pipe sendfile splice tee vm-splice

# filesystem
stress access chattr chmod chown copy-file dentry dir dirdeep dirmany dnotify dup eventfd fcntl fiemap \
    file-ioctl filename flock fsize fstat getdent handle hdd inotify io ioprio lease lockf lockofd mknod \
    open rename touch utime verity xattr

# scheduler
stress affinity clone close cyclic daemon exit-group fault fork futex kill loadavg mq msg mutex nanosleep \
    nice poll pthread race-sched resched schedpolicy sem sem-sysv session sleep spawn switch vfork wait \
    zombie

# interrupt
stress aio aiol alarm itimer pidfd sigabrt sigchld sigfd sigfpe signal signest sigpending sigpipe sigq sigrt \
    sigsegv sigsuspend sigtrap timer timerfd

# The full form prints no more when all is well: what takes long has to succeed too.
if [ -n "${SKINK_DEEP:-}" ]; then
    stress af-alg heapsort jpeg lsearch qsort shellsort sparsematrix tree vecfp mcontend memrate \
        pipeherd resources rmap chdir fallocate fpunch inode-flags link locka procfs symlink \
        sync-file exec hrtimers mmapfork yield sigio |
        grep -v ' 0$' || :
fi
