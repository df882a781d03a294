# Shared mappings of files, on ext2 and in memory; shared memory and semaphores by name; file systems in memory with a size.
mkdir /tmp/files
shared /tmp/files
shared /dev/shm >/tmp/output
shared /tmp/files | cmp - /tmp/output && echo the same in memory
rm -f /dev/shm/*
named
ls -A /dev/shm
mkdir /tmp/small
mount -t tmpfs -o size=64k,mode=750 none /tmp/small && ls -ld /tmp/small | cut -c1-10
head -c 100000 /dev/zero >/tmp/small/full 2>/dev/null || echo full
df -k /tmp/small | tail -n 1 | tr -s ' ' | cut -d ' ' -f 2-4
rm /tmp/small/full
full /tmp/small/sparse
umount /tmp/small
mount -t tmpfs -o size=8m none /tmp/small
shared /tmp/small | cmp - /tmp/output
umount /tmp/small
ls /tmp/small
cp /tmp/files/true /out/made
cp /bin/true /out/true
