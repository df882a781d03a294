#: package evtest,coreutils
# Debian's evtest on the keyboard and the mouse: what it prints is what it prints on Linux, but for the times.

# Runs evtest on a device until it has shown so many packets. Each count is told to who types.
watch() {
    device=$1 name=$2 packets=$3
    stdbuf -oL evtest "$device" >/tmp/$name 2>&1 &
    evtest=$!
    until grep -q '^Testing' /tmp/$name; do sleep 0.1; done
    echo "$name ready" >&2
    shown=0
    while [ "$shown" -lt "$packets" ]; do
        sleep 0.05
        now=$(grep -c SYN_REPORT /tmp/$name)
        [ "$now" = "$shown" ] || echo "$name $now." >&2
        shown=$now
    done
    kill $evtest
    wait $evtest 2>/dev/null
    sed 's/^Event: time [0-9.]*,/Event:/' /tmp/$name
}

watch /dev/input/event0 keyboard 16
watch /dev/input/event1 mouse 15
