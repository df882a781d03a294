#: timeout 900
#: system ramdisk
#: icount
# Damaged ext2 images are refused or give errors; whatever is in them, ext2 and vfs serve the next one, and the root is unharmed.
# /bad holds a small image, and bytes to put over it: "OFFSET BYTE" a line, a blank line between two images.
umount /out
dd if=/bad/image of=/dev/vda bs=64k 2>/dev/null || exit 1
mounted=0
refused=0
try() {
    if mount -t ext2 /dev/vda /out 2>/dev/null; then
        mounted=$((mounted + 1))
        {
            ls -lR /out
            cat /out/* /out/directory/*
            echo new >/out/new
            cp /bin/true /out/directory/copy
            rm -r /out/directory
            mkdir -p /out/another/one
            mv /out/file /out/another
            sync
        } >/dev/null 2>&1
        umount /out || exit 1
    else
        refused=$((refused + 1))
    fi
    dd if=/bad/image of=/dev/vda bs=64k 2>/dev/null || exit 1
}
while read -r offset byte; do
    if [ -n "$offset" ]; then
        printf "\\$byte" | dd of=/tmp/byte 2>/dev/null
        block=$((offset / 512))
        dd if=/dev/vda of=/tmp/sector bs=512 skip=$block count=1 2>/dev/null
        dd if=/tmp/byte of=/tmp/sector bs=1 seek=$((offset % 512)) conv=notrunc 2>/dev/null
        dd if=/tmp/sector of=/dev/vda bs=512 seek=$block conv=notrunc 2>/dev/null
    else
        try
    fi
done </bad/changes
echo "$mounted mounted, $refused refused" >&2
mount -t ext2 /dev/vda /out && cat /out/file && umount /out
cp /bin/busybox /tmp/copy && cmp /bin/busybox /tmp/copy && echo root is well
dd if=/bad/image of=/dev/vda bs=64k 2>/dev/null
