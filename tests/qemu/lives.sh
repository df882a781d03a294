#: system lives
#: icount
# How rs deals with services that fail, crash, and depend on each other; and what ds keeps for them.
wait_for() {
    until dmesg | grep -q "$1"; do sleep 0.1; done
}
wait_for 'loop is given up'
service kill elder
wait_for 'younger: start 2'
service kill ds
service kill younger
wait_for 'younger: start 3'
service restart elder
# The dependant is restarted with it.
wait_for 'younger: start 4'
dmesg | sed -n 's/.*mayfly: \(.*start .*\)/\1/p'
dmesg | sed -n 's/.*rs: \(.*\(cannot run\|is restarted\|given up\).*\)/\1/p'
service status stillborn | grep -E 'state|last'
service log loop | grep '^end:'
service log loop | grep -q '  0x[0-9a-f]* .*mayfly' && echo 'the backtrace leads to the program'
