# What the guest of `./skink test m3ipc_module` runs: the programs of tests/m3ipc, then what the module must bear. $DEEP: in the long form.

# Seconds that a program may take; a kernel that looks for mistakes is ten times as slow.
limit=$([ "$DEEP" ] && echo 2000 || echo 300)

# run NAME PROGRAM ARGUMENT...: a line with the name, the program's hash and its status, then what it has printed.
run() {
    name=$1
    shift
    timeout "$limit" ./"$@" >/tmp/printed 2>&1 </dev/null
    status=$?
    # The processes of one that was ended go on, and would disturb the next.
    killall -q -KILL "$1"
    echo "program $name $(sha256sum <"$1" | cut -c1-64) $status"
    cat /tmp/printed
}

# bear NAME SHORT DEEP: an attack, so often.
bear() {
    ./end_node
    run "attack_$1" attack "$1" "$([ "$DEEP" ] && echo "$3" || echo "$2")"
}

# Whom containers may name, and then nobody: what is tested below begins so.
users=/sys/module/m3ipc/parameters/uids
echo 1000,1001 >$users
for each in test_*; do
    ./end_node
    run "$each" "$each"
done
echo 4294967294 >$users
bear deaths 24 400
bear copies 24 324
bear crowd 30 300
bear beginners 400 4000
bear bombs 8 100
bear others 1 1
bear namespaces 1 1
bear stops 20 300
bear memory 40 1000
bear hurry 500 5000
bear ways 3 100
bear fuzz 40000 1000000
./end_node
for each in 'deaths 30' 'steady 2'; do
    ./$each >/tmp/printed 2>&1
    status=$?
    ./end_node
    echo "program attack_host_${each% *} - $status"
    [ $status = 0 ] && echo good || cat /tmp/printed
done
run attack_proc proc
./end_node
rmmod m3ipc || echo 'the module cannot be unloaded'
# What the kernel has found: a line here is a failure.
echo 'program kernel - 0'
if [ -e /sys/kernel/debug/kmemleak ] || mount -t debugfs debug /sys/kernel/debug 2>/dev/null; then
    sleep 1
    [ ! -e /sys/kernel/debug/kmemleak ] || { echo scan >/sys/kernel/debug/kmemleak; sleep 6; echo scan >/sys/kernel/debug/kmemleak; }
    [ ! -e /sys/kernel/debug/kmemleak ] || cat /sys/kernel/debug/kmemleak
fi
dmesg | grep -E 'BUG|WARNING|Oops|possible (recursive|circular|irq|deadlock)|suspicious RCU|KASAN|self-detected|blocked for more|Call Trace|UBSAN|refcount_t'
