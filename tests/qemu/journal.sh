#: timeout 600
#: journal
# The root has a journal, and an image on a loop device. Copies of the image while it is mounted are what a power cut leaves: a mount replays
# what was synced. Then the services below the root are killed after their k-th message, at work.
cd /root
mkdir mnt after
head -c 100000 /bin/busybox >kept
mount -t ext3 -o loop image mnt
types() { cut -d ' ' -f 2,3 /proc/mounts | grep -E '^(/|/root/mnt) '; }
types
service kill vfs
types
for i in 1 2 3 4 5 6 7 8 9 10; do
    mkdir mnt/$i
    cp kept mnt/$i/kept
    ln -s kept mnt/$i/link
    # Freed blocks of directories must not be replayed over what takes their place.
    [ $i = 1 ] || rm -r mnt/$((i - 1))
    sync
    dd if=image of=cut bs=64k 2>/dev/null
    cp cut /out/cut$i
    echo "not synced" >mnt/$i/late
    mount -t ext3 -o loop cut after || exit 1
    cmp kept after/$i/kept && readlink after/$i/link
    [ ! -e after/$((i - 1)) ] && [ ! -e after/$i/late ] || echo "$i is another moment"
    umount after
done
# A file that has no name any more is in use when the power fails.
exec 5>mnt/unnamed
echo text >&5
rm mnt/unnamed
sync
dd if=image of=/out/orphan bs=64k 2>/dev/null
exec 5>&-
umount mnt
cp image /out/image

work() {
    mkdir work work/a
    for file in 1 2 3 4 5 6; do
        head -c ${file}0000 /bin/busybox >work/a/$file
    done
    mv work/a work/b
    rm work/b/1
    sync
    cat work/b/* | wc -c
    rm -r work
}
for k in 1 2 3 5 8 13 21 34 55 89 144; do
    for service in ext2 virtio_blk; do
        service inject $service kill-after $k
        work
    done
done
