# Data and holes of sparse files on ext2 and on tmpfs, and what select leaves of its time-out: as on Linux, whose output the expected one is.
mkdir /root/file_calls /tmp/file_calls
file_calls /root/file_calls
mount -t tmpfs none /tmp/file_calls
file_calls /tmp/file_calls
umount /tmp/file_calls
rmdir /root/file_calls
