#: timeout 600
# System V shared memory: what a program of ours sees is what it sees on Linux, whose output the expected one is. Then pm and vm die after
# their k-th message while processes attach, count and detach, and no count and no attach is lost. (The kernel gives vm eight tries in ten
# seconds.)
shared_memory
for k in 1 2 3 5 8 13 21 34 55 89 144; do
    service inject pm kill-after $k
    shared_memory work
done
for k in 1 2 5 13 34 89 144; do
    service inject vm kill-after $k
    shared_memory work
done
grep -c . /proc/sysvipc/shm
