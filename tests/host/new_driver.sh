#: timeout 900
# `./skink new driver` writes a driver that passes its tests, boots and answers; after it has been killed, too. In a copy of
# the tree, with the xtask that is built.
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
