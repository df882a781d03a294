#: timeout 600
# splice and its relatives, by a program that prints the same on Linux: from and to files of ext2 and of tmpfs. Then vfs, ext2 and tmpfs are
# killed after their k-th message while five processes pass files from one to the other through pipes and a socket.
mkdir /root/splice /dev/shm/splice
splice /root/splice
for k in 7 90 800; do
    service inject vfs kill-after $k
    splice /root/splice cycle
done
service inject ext2 kill-after 50
splice /root/splice cycle
service inject tmpfs kill-after 40
splice /dev/shm/splice cycle
# What programs of Debian and busybox do with it.
seq 100000 >/root/splice/numbers
cp /root/splice/numbers /root/splice/copy && cmp /root/splice/numbers /root/splice/copy && echo copied
cat /root/splice/numbers | cat >/root/splice/copy && cmp /root/splice/numbers /root/splice/copy && echo piped
rm -r /root/splice /dev/shm/splice
