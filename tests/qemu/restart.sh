#: timeout 600
# Services die again and again while files are copied; nobody notices more than a delay.
head -c 4000000 /dev/urandom >/tmp/original
sum=$(sha256sum </tmp/original)
(
    for i in 1 2 3 4 5 6; do
        cp /tmp/original /tmp/copy$i && sync && [ "$(sha256sum </tmp/copy$i)" = "$sum" ] || echo copy $i differs
    done
    echo copied
) &
for round in 1 2 3; do
    for service in uart virtio_blk rtc procfs ds; do
        service kill $service || echo cannot kill $service
        sleep 0.1
    done
done
wait
ps -o comm | grep -c '^sh$' >/dev/null && echo procfs lives
[ "$(cut -d. -f1 /proc/uptime)" -ge 0 ] && echo clock runs
hwclock -r >/dev/null && echo rtc lives
for service in uart virtio_blk rtc procfs ds; do
    service status $service | grep -q up || service status $service
done
