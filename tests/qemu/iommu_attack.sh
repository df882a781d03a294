#: system iommu_attack
#: second_disk 4
# A device behind an IOMMU reaches the DMA memory of its driver, before and after it has tried to reach other memory.
for try in $(seq 100); do
    dmesg | grep -q 'own memory again' && break
    sleep 0.2
done
dmesg | sed -n 's/.*trial: //p'
