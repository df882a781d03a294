#: package evtest,coreutils
#: functions dying
#: timeout 900
# ps2, and then input, is killed after its k-th message while keys are typed: each arrives once and in order at a program that has had the
# keyboard open all the time.
stdbuf -oL evtest /dev/input/event0 >/tmp/events &
evtest=$!
until grep -q '^Testing' /tmp/events; do sleep 0.1; done
typed=0
type_keys() {
    echo "next keys" >&2
    typed=$((typed + 3))
    until [ "$(grep -c 'EV_KEY), code .*value 0' /tmp/events)" -ge $typed ]; do sleep 0.05; done
}
for k in $(counts 1 2 3 4 5 6 7 8 9 11 14 18); do
    for service in ps2 input; do dies $service $k type_keys; done
done
kill $evtest
wait $evtest 2>/dev/null
# One line for each order of keys that was seen, and how often: there is one order.
sed -n 's/^Event: .*code [0-9]* (KEY_\(.\)), value \([01]\)$/\1\2/p' /tmp/events | paste -sd' ' | sed 's/A1 /\nA1 /g' | grep . | sed 's/ $//' | sort | uniq -c | awk '{ $1 = ""; print }'
