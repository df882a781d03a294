#: timeout 600
# Files without a name on ext2 and tmpfs, seals, and programs executed from memory, by a program that compares. Then vfs, the file systems and pm
# are killed after their k-th message meanwhile.
mkdir /root/nameless /tmp/nameless
mount -t tmpfs none /tmp/nameless
nameless /root/nameless 20
nameless /tmp/nameless 20
for k in 1 2 3 5 8 12 18 27 40 60 90 135; do
    service inject vfs kill-after $k
    nameless /root/nameless 3
done
for k in 2 20 80; do
    service inject ext2 kill-after $k
    nameless /root/nameless 3
    service inject tmpfs kill-after $k
    nameless /tmp/nameless 3
    service inject pm kill-after $k
    nameless /tmp/nameless 3
done
ls /root/nameless /tmp/nameless
umount /tmp/nameless
rm -r /root/nameless
