#: timeout 600
# Watches of files and directories: on ext2 and on tmpfs as on Linux, whose output the expected one is. Then vfs is killed after its k-th
# message while one process watches what another one does.
mkdir /root/inotify /tmp/inotify
inotify /root/inotify
mount -t tmpfs none /tmp/inotify
inotify /tmp/inotify
for k in 1 2 3 5 8 13 21 34 55 89 144 233 377; do
    service inject vfs kill-after $k
    inotify /root/inotify 20
done
inotify /tmp/inotify 300 &
sleep 0.1
service kill vfs
wait
