#: timeout 900
# Debian's unmodified rt-tests, dynamically linked, with bounded rounds; each has to end by itself, and well. What the figures are is not
# looked at: they are the emulator's. Before them programs of ours that print what they print on Linux (../rt_tests).
threads
inheritance
inheritance robust
pi_errors
boosted
requeue_pi
in_time
run() {
    echo "== $*"
    "$@" >/tmp/output 2>&1
    status=$?
    echo "status $status"
    test "$status" = 0 || cat /tmp/output
    cp /tmp/output "/out/$1-$((n += 1))"
}
run cyclictest --quiet --loops=50 --priority=80 --threads=3 --mlockall
run cyclictest --quiet --loops=50 --priority=80 --posix_timers
run cyclictest --quiet --loops=50 --priority=80 --relative
run ptsematest --prio=80 --loops=50
run sigwaittest --prio=80 --loops=50
run signaltest --priority=80 --loops=50 --threads=2
_=/usr/bin/svsematest run svsematest --prio=80 --loops=50
run pip_stress
run pi_stress --inversions=50 --groups=1
run pi_stress --inversions=50 --groups=1 --rr --mlockall
run pi_stress --duration=2 --groups=1
run hackbench -p -g 2 -l 20
run hackbench -p -g 1 -l 20 -T
_=/usr/bin/svsematest run svsematest --fork --prio=80 --loops=50
run pmqtest --quiet --prio=80 --loops=50
run pmqtest --quiet --prio=80 --loops=20 --threads=2 --timeout=1
run pmqtest --quiet --prio=80 --duration=4 --timeout=1 --forcetimeout=1
run hackbench -g 2 -l 20
run hackbench -g 1 -l 20 -T
