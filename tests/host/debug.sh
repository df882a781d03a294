#: timeout 600
# GDB, led by the script that `./skink debug` writes, sees the kernel's threads and queues, stops in one service
# and not in others that have code at the same address, and shows arguments, locals and types.

# dump LINE...: GDB's answers to LINE... at the machine that waits.
"$SKINK" debug </dev/null >console 2>said &
machine=$!
trap 'kill $machine 2>/dev/null || :' EXIT
while [ ! -e "$SKINK_BUILD/gdbinit" ] || ! grep -q 'Ctrl-A' said; do
    kill -0 $machine
    sleep 0.2
done

# Without one of the breakpoints GDB would wait for ever.
timeout 120 gdb -q -nx -batch -x "$SKINK_BUILD/gdbinit" \
    -ex 'skink break pm pm::main' -ex continue \
    -ex 'echo \n--- services\n' -ex 'skink services' \
    -ex 'echo \n--- threads\n' -ex 'skink threads' \
    -ex 'echo \n--- queues\n' -ex 'skink queues' \
    -ex 'echo \n--- kernel\n' -ex 'hbreak trap_from_user' -ex continue -ex 'info args' -ex next -ex 'info locals' \
    -ex 'ptype kernel_core::node::Node' \
    -ex kill >dump 2>&1 || { cat dump; exit 1; }

# shown TEXT: GDB's answers have TEXT.
shown() {
    grep -qE -- "$1" dump || { echo "GDB does not show: $1"; cat dump; exit 1; }
}

shown 'pm::main \(_?start='
shown '^[0-9]+ +pm +0x[0-9a-f]+ +loaded'
shown '^[0-9]+ +vm .*receives from anybody'
shown '^runs: pm'
shown 'trap_from_user \(vector=[0-9]+'
shown '^error = '
shown 'threads: .*kernel_core::'
if grep -q 'cannot tell' dump; then cat dump; exit 1; fi
