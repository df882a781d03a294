#: timeout 600
# Counters and epolls, by a program of ours that prints the same on Linux (../rt_tests/events.c). Then vfs is killed after its k-th message
# while two processes pass 2,000 tokens by epolls over a counter, a pipe and a timer.
events
for k in 1 2 3 5 8 13 21 34 55 89 233 610 1597 4181; do
    service inject vfs kill-after $k
    events cycle
done
events cycle &
sleep 0.2
service kill vfs
wait
