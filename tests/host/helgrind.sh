#: timeout 300
# The two ends of a box of M3-IPC in two threads, under valgrind's helgrind: nothing is written and read without an order (host/core/tests/helgrind.rs).
root=$(dirname "$SKINK")
cd "$root"
# As the tests of this machine are compiled, so that it is done once.
program=$(cargo test --config 'build.rustc-workspace-wrapper="clippy-driver"' --workspace --exclude kernel --test helgrind --no-run 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$/\1/p')
watched() { valgrind --quiet --tool=helgrind --fair-sched=yes --error-exitcode=9 "$program" "$@" 2>&1; }

[ "$(watched)" = 'no message was wrong' ]

# It does see a race.
if report=$(watched race); then
    echo 'a race was not reported'
    exit 1
fi
echo "$report" | grep -q 'Possible data race.* of size 8'
echo "$report" | grep -q 'pair.rs:'
