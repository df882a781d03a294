#: system ramdisk
#: timeout 900
# Three users attack at once, in random order, what they share with others: the shell of root goes on, its copies are whole, no service
# dies, and memory is within 2 MiB of what it was before: at once, or in one of four more rounds, since tables grow with what random order
# makes them hold and are used again, while a leak loses as much in every round. The full form lasts an hour.
attacks='signals timers vectors polls pipes packets files sockets queues semaphores memory tables regions processes futexes sleepers locks names calls listeners epolls watches lives leases letters areas splices rights terminals tracees alarms devices attributes'
seconds=20
again=20
[ -z "${SKINK_DEEP:-}" ] || { seconds=3600; again=600; }
users='1000 1001 1002'
services() { service list | while read -r name state restarts rest; do echo $name $state $restarts; done; }
# Services return memory when they are asked whether they live. What is cached is given back when it is needed.
areas() { sed 's/^ *[0-9-]* *//; s/ .*//; /key/d' /proc/sysvipc/shm; }
free_pages() { for area in $(areas); do ipcrm -m $area; done; rm -rf /dev/shm/attack.* /tmp/attack.*; sync; sleep 3; awk '/^(MemFree|Cached):/ { kb += $2 } END { print kb }' /proc/meminfo; }
# attack SECONDS [ATTACK]: all users at once, in the background.
attack() {
    processes=
    for user in $users; do
        # Random calls write to every descriptor.
        attacker $user $1 $user $2 >/dev/null &
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
for attack in $attacks; do
    attack 1 $attack 2>/dev/null
    wait
done
# Lets everybody attack for so many seconds, while root works.
endure() {
    attack $1
    while any_left; do
        cp /tmp/original /tmp/copy && cmp /tmp/original /tmp/copy && rm /tmp/copy || echo a copy differs
        [ "$(echo root | cat)" = root ] || echo the shell does not answer
        copies=$((copies + 1))
    done
    wait
}
services >/tmp/before
copies=0
after=$(free_pages)
for round in 1 2 3 4 5; do
    before=$after
    endure $seconds
    seconds=$again
    after=$(free_pages)
    echo "$before kB free before, $after after" >&2
    [ $after -le $((before - 2048)) ] || { free=again; break; }
done
[ $copies -gt 3 ] && echo copies are whole
services | diff /tmp/before - && echo no service has died
[ "$free" = again ] && echo memory is free again
