#: timeout 600
# Message queues, timers behind descriptors and pairs of sockets, by programs of ours that print the same on Linux (../rt_tests). Then vfs is
# killed after its k-th message while two processes pass 2,000 messages on through two queues, and a timer expires a hundred times.
queues
timers
sockets
for k in 2 30 70 110 500 2000; do
    service inject vfs kill-after $k
    queues stream
    timers count
done
queues stream &
sleep 0.2
service kill vfs
wait
