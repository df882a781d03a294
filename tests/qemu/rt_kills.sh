#: system ramdisk
#: icount
#: timeout 1800
# A periodic process of 1 kHz meets every deadline while drivers and servers are killed and started again: 30 times, or
# 200 in the deep form.
rounds=3
[ -z "${SKINK_DEEP:-}" ] || rounds=20
exec 3>&1
{
    sleep 0.3
    for round in $(seq $rounds); do
        for victim in uart tty rtc pci ramdisk ext2 procfs devfs ds vfs; do
            service kill $victim >&2 || echo cannot kill $victim >&3
            sleep 0.055
        done
    done
    echo all killed >&3
} | rt_periodic | grep missed
