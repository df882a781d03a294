#: timeout 600
# Signals that are read from descriptors: as on Linux, whose output the expected one is. Then vfs is killed after its k-th message
# while two processes exchange signals that they get by read, poll and epoll.
signalfds
for k in 1 2 3 4 5 6 7 8 10 12 15 19 24 30 38 48 60 75 95 119 150 190; do
    service inject vfs kill-after $k
    signalfds 30
done
signalfds 2000 &
sleep 0.1
service kill vfs
sleep 0.1
service kill vfs
wait
