#: timeout 600
# Descriptors that mean a process: as on Linux, whose output the expected one is. Then vfs and pm are killed after their k-th message while a
# program makes children by CLONE_PIDFD, signals them, and waits for them by descriptor.
pidfds
for k in 1 2 3 4 5 6 7 8 10 12 15 19 24 30 38 48 60 75 95 119; do
    service inject vfs kill-after $k
    pidfds 20
    service inject pm kill-after $k
    pidfds 20
done
pidfds 400 &
sleep 0.1
service kill vfs
sleep 0.1
service kill pm
wait
