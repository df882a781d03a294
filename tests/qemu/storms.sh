#: timeout 600
# A user queues as many signals as there can be, and runs as many timers of 1 us, each longer than one user may: the shell of root answers, pm
# does not die, and the second run gets as much as the first.
run() {
    su nobody -s /bin/sh -c "exec setsid storm $*" >/tmp/storm &
    until grep . /tmp/storm; do sleep 0.1; done
    [ "$(echo root | cat)" = root ] && echo the shell answers
    killall -9 storm 2>/dev/null
    wait
    rm /tmp/storm
}
run signals 200
run timers 8
run signals 200
service status pm | grep restarts
