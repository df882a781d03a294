#: timeout 900
# pm, vm and rs die at some of their messages (the kernel gives vm and rs eight tries in ten seconds) while programs fork, exec, wait, pipe, sleep and send signals: nobody notices more than a delay.
work() {
    [ "$( (echo b; echo a) | sort | tr -d '\n')" = ab ] || echo "$1: a pipeline is wrong"
    sh -c 'exit 3'
    [ $? = 3 ] || echo "$1: a status is wrong"
    sh -c 'trap "exit 5" TERM; sleep 0.2 & wait; kill -TERM $$; exit 6'
    [ $? = 5 ] || echo "$1: a signal is lost"
    sleep 5 &
    kill $!
    wait $!
    [ $? = 143 ] || echo "$1: a kill is lost"
    head -c 300000 /dev/zero | sha256sum >/tmp/sum
    [ "$(cat /tmp/sum)" = "$sum" ] || echo "$1: memory is wrong"
}
sum=$(head -c 300000 /dev/zero | sha256sum)
for after in 1 2 3 8 13 21 34; do
    for service in pm vm; do
        service inject $service kill-after $after || echo "cannot disturb $service"
        work "$service $after"
    done
    service inject rs kill-after $after
    service kill rtc || service kill rtc || echo "rtc cannot be killed"
    work "rs $after"
done
for service in pm vm rs; do
    service kill $service || echo "cannot kill $service"
    work "$service killed"
done
sleep 0.5
for service in rs vm pm rtc; do
    service status $service | grep -q '^state: up' || service status $service
done
ls /proc/self/stat
