#: timeout 600
#: memory 128
# Services die while programs take all memory there is: their successors need none that is not kept for them.
(for i in 1 2 3 4; do hog memory; done) >/dev/null 2>&1 &
for round in 1 2 3 4 5 6; do
    # A command for which there is no memory kills nobody.
    for service in uart virtio_blk rtc ds; do service kill $service; done 2>/dev/null
    sleep 0.3
done
wait
sleep 0.5
for service in uart virtio_blk rtc ds; do
    service status $service | grep -q 'state: up' && echo $service up || service status $service
done
[ "$(dmesg | grep -c 'is killed')" -ge 8 ] && echo many died
