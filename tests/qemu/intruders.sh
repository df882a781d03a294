#: system intruders
# Drivers that try what they have no right to are refused on every path, and nothing else is disturbed.
for name in emulate direct doomed; do
    until dmesg | grep -q "trial: $name is here again"; do sleep 0.1; done
done
until dmesg | grep -q "trial: systask port:" && dmesg | grep -q "trial: hal port:"; do sleep 0.1; done
dmesg | sed -n -e 's/.*\(trial: \)/\1/p' -e '/denied (/p' | sort
service list | while read -r name state restarts rest; do
    case $name in
    emulate | direct | doomed) [ "$restarts" = 1 ] || echo "$name was restarted $restarts times" ;;
    NAME | virtio_blk | framebuffer) ;;
    *) [ "$state $restarts" = "up 0" ] || echo "$name is $state after $restarts restarts" ;;
    esac
done
seq 1 1000 | sort -rn | head -n 1
