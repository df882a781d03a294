#: timeout 900
# ext2 and the disk's driver die again and again, together too, while files are copied, packed, renamed and removed. Nothing is lost,
# nothing is done twice, and what was open stays open.
mkdir -p /work/tree/inner
for i in 1 2 3 4 5 6; do head -c 300000 /dev/urandom >/work/tree/file$i; done
for i in 1 2 3 4 5 6 7 8 9; do echo "$i" >/work/tree/inner/small$i; done
ln -s inner/small1 /work/tree/link
cd /work/tree || exit
find . -type f -exec sha256sum {} + >/work/sums
compare() {
    (cd "$1" && sha256sum -c /work/sums | grep -v ': OK$')
    [ "$(cat "$1"/link)" = 1 ] || echo "the link in $1 is wrong"
}

# A file without a name, in use by this shell from the first death to the last.
exec 3>/work/unnamed 4</work/unnamed
rm /work/unnamed
echo first >&3

(
    for i in 1 2 3 4 5 6 7 8; do
        sleep 0.5
        service kill ext2
        sleep 0.2
        service kill virtio_blk
        [ $((i % 2)) = 0 ] && service kill ext2
    done
) &
killer=$!
rounds=0
while kill -0 $killer 2>/dev/null; do
    cp -r /work/tree /work/copy || echo cp fails
    compare /work/copy
    tar -cf /work/archive -C /work copy || echo tar fails
    rm -r /work/copy || echo rm fails
    tar -xf /work/archive -C /work || echo untar fails
    compare /work/copy
    mv /work/copy /work/moved && rm -r /work/moved || echo mv fails
    rounds=$((rounds + 1))
    echo $rounds >>/work/log
    sync
done
wait
[ $rounds -gt 1 ] && echo copied
seq $rounds | cmp - /work/log && echo each line once
echo last >&3
cat <&4
for service in ext2 virtio_blk; do
    service status $service | grep -q up || service status $service
done
