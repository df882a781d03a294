#: system iommu
# Files stay whole behind an IOMMU while pci, which has its tables, and the disk's driver die.
mkdir /work
head -c 4000000 /dev/urandom >/work/from
sum=$(sha256sum </work/from)
(
    for i in 1 2 3 4 5 6; do
        sleep 0.3
        service kill pci
        [ $((i % 2)) = 0 ] && service kill virtio_blk
    done
) &
killer=$!
rounds=0
while kill -0 $killer 2>/dev/null || [ $rounds = 0 ]; do
    cp /work/from /work/to && sync && [ "$(sha256sum </work/to)" = "$sum" ] || echo "a copy is not whole"
    rounds=$((rounds + 1))
done
wait
dmesg | sed -n 's/.*\(pci: \)/\1/p' | sort -u
service list | awk '$1 == "pci" || $1 == "virtio_blk" { print $1, $2, $3 }'
