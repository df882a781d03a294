#: timeout 300
# A broken line in a back end of M3-IPC makes a program of tests/m3ipc fail, there. The short form looks whether each line still stands in its file, once;
# the full one, $SKINK_DEEP, breaks it, builds what that changes and runs the program. It does so in a layer over the tree, which only its own processes see in the tree's place, so
# that all else is built already; for that it must be root.
cat >mutants <<'END'
shared % test_vcopy4 % host/core/src/copy.rs % if parties[0].leader == parties[1].leader { % if parties[0].leader == parties[1].leader && bytes < 0 {
shared % test_locked % host/core/src/circles.rs % if !self.is_circle(own) { % if !self.is_circle(own) || self.number.get() < 256 {
shared % test_notify4 % host/core/src/exchange.rs % if !self.rights().is_system() { % if !self.rights().is_system() && value == 1 {
skink % test_vcopy4 % servers/m3ipc/src/exchange.rs % if bytes < 0 || bytes > node.max_copy() { % if bytes < 0 {
skink % test_dc_init3 % servers/m3ipc/src/server.rs % if self.container(container)?.has(number) { % if self.container(container)?.has(number) || number.get() > 0 {
skink % test_dc_init % servers/m3ipc/src/node.rs % if self.containers.iter().any(|container| container.number == number) { % if self.containers.iter().any(|container| container.number == number && number > 31) {
module % test_vcopy4 % host/m3ipc-module/copy.c % if (!error && (bytes < 0 || bytes > READ_ONCE(node.limits.d_max_copylen))) % if (!error && bytes < 0)
module % test_notify4 % host/m3ipc-module/exchange.c % error = me->rights.priv_id < NR_SYS_PROCS ? % error = me->rights.priv_id >= 0 ?
module % test_fifo % host/m3ipc-module/exchange.c % list_add_tail(&me->in_queue, &to->member->senders); % list_add(&me->in_queue, &to->member->senders);
END
root=$(cd "$(dirname "$SKINK")" && pwd)
cat >replace.py <<'PYTHON'
import sys
folder, file, line, mutant = sys.argv[1:]
text = open(f'{folder}/{file}').read()
assert text.count(line) == 1, f'{file}: not once: {line}'
if mutant:
    open(f'{folder}/{file}', 'w').write(text.replace(line, mutant))
PYTHON
each() {
    sed 's/ % /\t/g' mutants | while IFS="$(printf '\t')" read -r back_end program file line mutant; do
        "$1" || { echo "$back_end, $program: $file: $line"; exit 1; }
    done
}

still_stands() { python3 replace.py "$root" "$file" "$line" ''; }
each still_stands
[ -n "${SKINK_DEEP:-}" ] || exit 0

if [ -z "${LAYER:-}" ]; then
    LAYER=$(mktemp -d)
    export LAYER
    mkdir "$LAYER/upper" "$LAYER/work"
    status=0
    unshare --mount sh -eu "$0" || status=$?
    rm -rf "$LAYER"
    exit $status
fi
mount -t overlay -o "lowerdir=$root,upperdir=$LAYER/upper,workdir=$LAYER/work" overlay "$root"
cd "$PWD"
rm -f "$root/build/lock"
unset CARGO_TARGET_DIR SKINK_BUILD SKINK_DEEP

# What a program prints on the shared back end.
shared() (
    cd "$root"
    cargo build --quiet --release --package libm3ipc --package m3ipcd
    gcc -O2 -static -I lib/m3ipc/include "tests/m3ipc/$program.c" -o "$LAYER/mutant" -L target/release -lm3ipc
    export M3IPC_SOCKET="$LAYER/socket"
    rm -f "$M3IPC_SOCKET"
    target/release/m3ipcd 2>"$LAYER/log" &
    broker=$!
    trap 'kill $broker' EXIT
    while ! [ -S "$M3IPC_SOCKET" ]; do sleep 0.01; done
    timeout 20 "$LAYER/mutant" </dev/null || true
)
dies() {
    cp "$root/$file" original
    python3 replace.py "$root" "$file" "$line" "$mutant"
    case $back_end in
        shared)
            shared >printed
            ! cmp -s printed "$root/tests/m3ipc/$program.expect"
            ;;
        skink)
            ! "$SKINK" test "m3ipc/$program" >printed 2>&1 </dev/null || return 1
            grep -q 'Skink, ' printed && ! grep -q 'Linux, binary' printed
            ;;
        module)
            ! "$SKINK" test m3ipc_module >printed 2>&1 </dev/null || return 1
            grep -q "$program, binary" printed
            ;;
    esac || { tail -n 20 printed; return 1; }
    cp original "$root/$file"
    echo "$back_end: $program dies of $file" | tee -a "$LAYER/progress"
}
each dies
