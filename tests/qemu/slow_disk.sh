#: disk_rate 400000
#: memory 256
# A disk that takes half a minute for a file holds nobody who reads what is cached, whether in the same directory or through
# another file system. With this memory ext2 caches 8 MiB, less than the file.
dd if=/dev/zero of=/tmp/large bs=64k count=192 2>/dev/null
sync
echo cached >/tmp/small
echo cached >/dev/shm/small
cat /tmp/large | wc -c >/tmp/size &
reader=$!
reads=0
while [ $reads -lt 1000 ] && kill -0 $reader; do
    read -r first </tmp/small
    read -r second </dev/shm/small
    [ "$first $second" = "cached cached" ] || echo "read $first $second"
    reads=$((reads + 1))
done
kill -0 $reader && echo "$reads times read while the disk is busy"
wait $reader
cat /tmp/size
