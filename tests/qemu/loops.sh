#: timeout 900
# Loop devices: what a program of ours sees is what it sees on Linux, whose output the expected one is. Then it mounts an image of a file system,
# made here, writes, compares and unmounts, while vfs and the file systems on both sides of it are killed after their k-th message.
mkdir /root/loops /root/loops/mnt
loops /root/loops
cd /root/loops
dd if=/dev/zero of=image bs=1k count=600 2>/dev/null
busybox mke2fs -F image > /dev/null
loops /root/loops cycle image
for k in 1 2 3 5 8 13 21 34 55 89 144; do
    for service in vfs loop_ext2 ext2; do
        service inject $service kill-after $k
        loops /root/loops cycle image
    done
done
cat /proc/partitions | grep -c loop
cp image /out/image
# The deaths of loop_ext2 have not left it mounted anywhere.
mount -o loop image mnt && ls mnt | wc -l
umount mnt
losetup -a
