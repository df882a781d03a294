#: memory 128
#: timeout 900
# Users read and change thousands of files while programs take memory that the page cache has, and vfs and the disk's driver die: each
# reads what it has written, always.
steps=2000
[ -z "${SKINK_DEEP:-}" ] || steps=100000
press() { dd if=/dev/zero of=/dev/null bs=40M count=2 2>/dev/null; }
readers 6 400 $steps &
for round in 1 2 3 4; do
    press
    service kill vfs
    press
    service kill virtio_blk
done
while [ -e /proc/$! ]; do press; done
wait $!
