#: system ramdisk
#: icount
#: timeout 900
# Whatever service dies, vm and rs included, while a hundred processes sleep: interrupts wait for 4,000 ticks at most. The longest path is the end
# of a driver with its lines (1,500) and the first of its peers after it (1,900); how much of it the timer meets is a matter of phase.
for i in $(seq 100); do sleep 100 & done
deaths='for name; do service kill $name >&2 || exit 1; sleep 0.6; done'
for names in "uart tty rtc pci" "ramdisk ext2 procfs devfs" "ds vfs" "pm pm" "rs rs" "vm vm"; do
    longest=$(mrt_bound sh -c "$deaths" kill $names 2>/dev/null | awk '/^timer/ && / status 0$/ { print $2 }')
    [ "${longest:-9999}" -le 4000 ] && echo "$names: bounded" || echo "$names: $longest"
done
