# Loop devices with util-linux's losetup and mount, busybox's, and e2fsprogs: a file system is made in a file, mounted, filled, and whole after it.
#: package util-linux,mount,e2fsprogs,busybox-static,coreutils,findutils,grep,sed,tar,diffutils
cd /tmp
show() { losetup -l --noheadings -O NAME,BACK-FILE,OFFSET,SIZELIMIT,AUTOCLEAR,RO | sed 's/  */ /g'; }
sums() { (cd m && find . -type f ! -path './lost+found/*' -exec sha256sum {} + | sort -k 2 | sha256sum); }
truncate -s 6M image
mke2fs -q -F -t ext2 -b 1024 -L looped image
mkdir m
losetup -f
losetup --show -f image
losetup -f
show
losetup -j image | sed 's/.*(/(/'
mount /dev/loop0 m
grep loop /proc/mounts | cut -d ' ' -f 1-3
tar -C /usr/share -cf - perl5 doc/util-linux 2>/dev/null | tar -C m -xf -
cp /bin/sed /bin/grep m
echo sed runs | m/sed s/runs/ran/
sums
dumpe2fs -h /dev/loop0 2>/dev/null | grep -E 'volume name|state'
losetup -d /dev/loop0
show
umount m 2>&1
show
e2fsck -fn image >/dev/null 2>&1; echo e2fsck $?
mount -o loop image m
show
sums
rm m/grep
sync
umount m
show
mount -o loop,ro image m
show
touch m/new 2>&1
umount m
losetup -r /dev/loop3 image
dd if=/dev/zero of=/dev/loop3 bs=512 count=1 2>&1 | head -n 1 | sed 's/dd: //'
mount /dev/loop3 m 2>&1
umount m
losetup -d /dev/loop3
losetup -o 1M --sizelimit 2M /dev/loop1 image
show
blockdev --getsize64 --getss --getro /dev/loop1
cmp -n 2097152 -i 0:1048576 /dev/loop1 image && echo same
truncate -s 2M image2
losetup --offset 512 /dev/loop2 image2
mke2fs -q -t ext2 /dev/loop2
truncate -s 4M image2
losetup -c /dev/loop2
blockdev --getsize64 /dev/loop2
resize2fs /dev/loop2 2>/dev/null
e2fsck -fn /dev/loop2 2>/dev/null | tail -n 1 | sed 's/.*, //'; echo e2fsck $?
losetup -D
show
losetup /dev/loop0 /tmp 2>&1
losetup /dev/loop0 nothing 2>&1
losetup -d /dev/loop0 2>&1
busybox mount -t ext2 -o loop image m
sums
busybox umount -d m
show
debugfs -R 'stat /sed' image 2>/dev/null | grep -o 'Mode: *0755'
e2fsck -fn image >/dev/null 2>&1; echo e2fsck $?
