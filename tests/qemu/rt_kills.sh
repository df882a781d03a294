#: system ramdisk
#: icount
#: timeout 1800
# A periodic process of 1 kHz meets every deadline while drivers and servers are killed 200 times and started again.
exec 3>&1
{
    sleep 0.3
    for round in $(seq 20); do
        for victim in uart tty rtc pci ramdisk ext2 procfs devfs ds vfs; do
            service kill $victim >&2 && kills=$((kills + 1))
            sleep 0.055
        done
    done
    echo kills $kills >&3
} | rt_periodic | grep missed
