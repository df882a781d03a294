#: timeout 600
# Extended attributes, by a program that prints the same on Linux, on ext2 and on tmpfs. Then vfs and the file systems are killed after their
# k-th message while attributes are set, read and removed.
mkdir /root/xattrs /tmp/xattrs
chmod 755 /root /root/xattrs
xattrs /root/xattrs
mount -t tmpfs none /tmp/xattrs
chmod 755 /tmp/xattrs
xattrs /tmp/xattrs
for k in 3 20 150 1000; do
    service inject vfs kill-after $k
    xattrs /root/xattrs cycle
done
service inject ext2 kill-after 99
xattrs /root/xattrs cycle
service inject tmpfs kill-after 99
xattrs /tmp/xattrs cycle
umount /tmp/xattrs
rm -r /root/xattrs
