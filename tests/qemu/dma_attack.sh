#: system dma_attack
#: second_disk 4
# What a device can do to memory without an IOMMU: iommu_attack is the same with one.
for try in $(seq 100); do
    dmesg | grep -q 'own memory again' && break
    sleep 0.2
done
dmesg | sed -n 's/.*trial: //p'
