#: system ramdisk
#: timeout 900
# Three users attack at once, in random order, what they share with others: the shell of root goes on, its copies are whole, no service dies,
# and what they took is there again. The full form lasts an hour.
seconds=20
[ -z "${SKINK_DEEP:-}" ] || seconds=3600
services() { service list | while read -r name state restarts rest; do echo $name $state $restarts; done; }
free_pages() { sync; sleep 1; sed -n 's/^MemFree: *//p' /proc/meminfo; }
seq 30000 >/tmp/original
# What is made on first use is there before.
for user in 1000 1001 1002; do attacker $user 1 9 2>/dev/null; done
services >/tmp/before
free_pages >/tmp/free
for user in 1000 1001 1002; do attacker $user $seconds $user & done
copies=0
while [ "$(jobs -r | wc -l)" -gt 0 ] && kill -0 $! 2>/dev/null; do
    cp /tmp/original /tmp/copy && cmp /tmp/original /tmp/copy && rm /tmp/copy || echo a copy differs
    [ "$(echo root | cat)" = root ] || echo the shell does not answer
    copies=$((copies + 1))
done
wait
[ $copies -gt 3 ] && echo copies are whole
services | diff /tmp/before - && echo no service has died
free_pages | diff /tmp/free - && echo memory is there again
