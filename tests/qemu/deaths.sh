# vfs, tty or pm is killed at the k-th message of a behaviour of Linux (tests/linux), and the behaviour is the same: epolls, eventfds, signalfds,
# inotify, pidfds, timerfds; asynchronous I/O; message queues; sockets with descriptors in flight; pipes; terminals; System V's objects; locks and leases; signals
# for input and output; traced processes; dirty pages; attributes and names of files; containers;
# of pm alone: signals, filters of seccomp, limits, processes and what they have used, clocks in the vDSO; of vfs alone: files that two processes have mapped.
# Here a sample; the full form goes through every k up to 200 of every behaviour.
#: system deaths
#: timeout 1500
most=200 step=17 every=13
[ -z "${SKINK_DEEP:-}" ] || step=1 every=1
die() {
    service=$1
    shift
    for name in $*; do
        set -- $every
        # Of the others the results say how long something takes, which a death changes.
        [ $name != time ] || set -- 1 timerfd
        deaths_$name "$service" $most $step "$@" && echo "$name: the same while $service dies"
    done
}
die vfs aio asynchronous attributes containers descriptors directories events inotify ipc kcmp mappings names overwriting pidfds pipes ptrace queues shm signalfds sockets terminals time xattrs
die pm asynchronous containers descriptors events filtered filters inotify ipc kcmp limits pidfds pipes processes ptrace queues seccomp shm signalfds signals sockets terminals time vdso watches
die tty asynchronous terminals
