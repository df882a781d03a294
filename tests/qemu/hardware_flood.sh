#: system tablet
#: screen
#: tablet
#: functions dying
#: timeout 600
# 26,000 events by the devices themselves, keyboard, mouse and tablet, while files that nobody reads are open, and one that is read: no service takes more
# memory for them than for a few hundred, none dies, and the next line that is typed arrives, also after the deaths of all.
chvt 2
sleep 1000 </dev/input/event0 &
sleep 1000 </dev/input/event1 &
sleep 1000 </dev/input/event2 &
cat /dev/input/event2 >/dev/null &
setsid -c sh -c 'cat >/tmp/typed' </dev/tty2 >/dev/tty2 2>&1 &
until [ -e /tmp/typed ]; do sleep 0.1; done
pages() { for service in input ps2 virtio_input console; do awk '{ print $2 }' /proc/$(pidof $service)/statm; done | tr '\n' ' '; }
sober() {
    lines=$(wc -l </tmp/typed)
    echo "sober" >&2
    until [ "$(wc -l </tmp/typed)" -gt "$lines" ]; do sleep 0.1; done
}
echo "flood" >&2
sober
before=$(pages)
echo "flood" >&2
sober
after=$(pages)
for at in 1 2 3 4; do
    old=$(echo $before | cut -d' ' -f$at) new=$(echo $after | cut -d' ' -f$at)
    [ "$new" -le $((old + 4)) ] || echo "service $at: $old pages became $new"
done
for service in input ps2 virtio_input console tty; do echo "$service: $(restarts $service)"; done
for service in input ps2 virtio_input; do service kill $service; done
sober
cat /tmp/typed
kill %1 %2 %3 %4
