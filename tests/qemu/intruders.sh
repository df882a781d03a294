#: system intruders
# Drivers that try what they have no right to are refused on every path, and nothing else is disturbed.
for name in emulate direct doomed; do
    until dmesg | grep -q "trial: $name is here again"; do sleep 0.1; done
done
dmesg | sed -n 's/.*\(trial: \)/\1/p; s/.*: \(port 0x[0-9a-f]* denied\)/\1/p' | sort
service list | while read -r name state restarts rest; do
    case $name in
    emulate | direct | doomed) [ "$restarts" = 1 ] || echo "$name was restarted $restarts times" ;;
    NAME) ;;
    *) [ "$state $restarts" = "up 0" ] || echo "$name is $state after $restarts restarts" ;;
    esac
done
seq 1 1000 | sort -rn | head -n 1
