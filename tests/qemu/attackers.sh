#: system ramdisk
#: timeout 900
# Three users attack at once, in random order, what they share with others: the shell of root goes on, its copies are whole, and no service
# dies. Standard error says how much memory the tables keep that have grown. The full form lasts an hour.
seconds=20
[ -z "${SKINK_DEEP:-}" ] || seconds=3600
users='1000 1001 1002'
services() { service list | while read -r name state restarts rest; do echo $name $state $restarts; done; }
free_pages() { sync; sleep 1; sed -n 's/^MemFree: *\([0-9]*\) .*/\1/p' /proc/meminfo; }
# attack SECONDS [ATTACK]: all users at once, in the background.
attack() {
    processes=
    for user in $users; do
        attacker $user $1 $user $2 &
        processes="$processes $!"
    done
}
any_left() {
    for process in $processes; do
        ! kill -0 $process 2>/dev/null || return 0
    done
    return 1
}
seq 30000 >/tmp/original
# tmpfs keeps the memory that it has once had.
attack 1 names 2>/dev/null
wait
services >/tmp/before
before=$(free_pages)
attack $seconds
copies=0
while any_left; do
    cp /tmp/original /tmp/copy && cmp /tmp/original /tmp/copy && rm /tmp/copy || echo a copy differs
    [ "$(echo root | cat)" = root ] || echo the shell does not answer
    copies=$((copies + 1))
done
wait
[ $copies -gt 3 ] && echo copies are whole
services | diff /tmp/before - && echo no service has died
after=$(free_pages)
echo "$before kB free before, $after after" >&2
