#: timeout 1200
# The way of somebody who writes a driver: `./skink new driver` writes one that passes its tests, boots and answers; after it has
# been killed, too; and GDB, led by the script that `./skink debug` writes, sees into the kernel and the services. In a copy
# of the tree, with the xtask that is built. One test, because it takes a whole build of what `--fast` and `debug` boot.
root=$(dirname "$SKINK")
xtask=$CARGO_TARGET_DIR/debug/xtask
mkdir tree
(cd "$root" && tar cf - --exclude=./target --exclude=./build --exclude=./.git .) | tar xf - -C tree
export SKINK_ROOT="$PWD/tree" SKINK_BUILD="$PWD/tree/build" CARGO_TARGET_DIR="$PWD/tree/target"
unset SKINK_STEPS

"$xtask" new driver counter >said
grep -q 'cargo test -p counter' said
(cd tree && cargo test --quiet -p counter)
"$xtask" exec --fast 'cat /dev/counter; cat /dev/counter; service kill counter; cat /dev/counter' >out
printf '0\n1\n0\n' | cmp - out

# The same name again is refused, and nothing has changed.
cp tree/Cargo.toml before
status=0
"$xtask" new driver counter 2>err || status=$?
[ $status = 2 ]
grep -q "there is a package 'counter' already" err
cmp before tree/Cargo.toml

# GDB sees the kernel's threads and queues, stops in one service and not in others that have code at the same address, and shows
# arguments, locals and types.
"$xtask" debug </dev/null >console 2>said &
machine=$!
trap 'kill $machine 2>/dev/null || :' EXIT
while [ ! -e "$SKINK_BUILD/gdbinit" ] || ! grep -q 'Ctrl-A' said; do
    kill -0 $machine
    sleep 0.2
done

# Without one of the breakpoints GDB would wait for ever.
timeout 120 gdb -q -nx -batch -x "$SKINK_BUILD/gdbinit" \
    -ex 'skink break counter counter::main' -ex continue \
    -ex 'echo \n--- services\n' -ex 'skink services' \
    -ex 'echo \n--- threads\n' -ex 'skink threads' \
    -ex 'echo \n--- queues\n' -ex 'skink queues' \
    -ex 'echo \n--- kernel\n' -ex 'hbreak trap_from_user' -ex continue -ex 'info args' -ex next -ex 'info locals' \
    -ex 'ptype kernel_core::node::Node' \
    -ex kill >dump 2>&1 || { cat dump; exit 1; }

# shown TEXT: GDB's answers have TEXT.
shown() {
    grep -qE -- "$1" dump || { cat dump; echo "GDB does not show: $1"; exit 1; }
}

shown 'counter::main \('
shown '^[0-9]+ +counter +0x[0-9a-f]+ +loaded'
shown '^[0-9]+ +vm .*receives from anybody'
shown '^runs: counter'
shown 'trap_from_user \(vector=[0-9]+'
shown '^error = '
shown 'threads: .*kernel_core::'
if grep -q 'cannot tell' dump; then cat dump; exit 1; fi
