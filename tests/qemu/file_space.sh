# Names that are swapped, holes and ranges of zeros: on ext2 and on tmpfs as on Linux, whose output the expected one is.
mkdir /root/space /tmp/space
file_space /root/space
mount -t tmpfs none /tmp/space
file_space /tmp/space
