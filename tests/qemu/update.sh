#: timeout 900
# Services get new programs while files are copied and thousands of lines go over the serial line; bad programs are rolled back.
head -c 2000000 /dev/urandom >/tmp/original
sum=$(sha256sum </tmp/original)
(
    for i in 1 2 3 4 5 6; do
        cp /tmp/original /tmp/copy$i && sync && [ "$(sha256sum </tmp/copy$i)" = "$sum" ] || echo copy $i differs
    done
    echo copied
) >/tmp/copies 2>&1 &
(
    for service in uart virtio_blk ds; do
        service update $service /new/$service && echo $service updated
    done
    # A program for a shell is none for a service: it crashes, and the old one comes back.
    for service in uart virtio_blk ds; do
        service update $service /bin/service || echo $service: status $?
    done
    # What is no program at all is refused before anything happens.
    service update uart /etc/passwd || echo uart: status $?
    service update uart /nowhere || echo uart: status $?
    service update vm /new/uart || echo vm: status $?
) >/tmp/updates 2>&1 &
seq 1 20000
wait %2
cat /tmp/updates
wait
cat /tmp/copies
# The updated program serves on after a restart; the count of restarts tells one for each roll-back.
service restart uart
for service in uart virtio_blk ds; do service status $service | grep state; done
dmesg | grep -E 'is updated|runs again' | sed 's/.*rs: //' | sort
