#: timeout 600
#: memory 128
# Memory, processes, descriptors and disk run out; each time the taker is told, and the shell lives.
hog memory
echo after memory
su nobody -s /bin/sh -c 'ulimit -u 200; hog processes'
echo after processes
hog descriptors
dd if=/dev/zero of=/tmp/filler bs=64k 2>&1 | grep -c 'No space left'
echo data >/tmp/one_more 2>/dev/null || echo disk full
rm /tmp/filler
echo data >/tmp/one_more && cat /tmp/one_more
