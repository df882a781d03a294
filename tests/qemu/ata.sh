#: system ata
#: timeout 900
# A root on an IDE disk: files are copied and compared while the driver dies again and again.
mount | grep -q '^/dev/hda on / type ext2' || echo the root is elsewhere
head -c 3000000 /dev/urandom >/tmp/original
sum=$(sha256sum </tmp/original)
(
    for i in 1 2 3; do
        cp /tmp/original /tmp/copy$i && sync && [ "$(sha256sum </tmp/copy$i)" = "$sum" ] || echo copy $i differs
    done
    echo copied
) &
for round in 1 2 3 4 5; do
    service kill ata || echo cannot kill ata
    sleep 0.2
done
wait
service status ata | grep restarts
[ "$(sha256sum </in/random)" = "$(cat /in/sum)" ] && echo the disk gives what was put on it
dd if=/dev/hda bs=512 count=1 skip=99999999 2>/dev/null | wc -c
cp /tmp/copy3 /out/copy
sha256sum </tmp/original >/out/sum
