#: timeout 300
# Real-time threads that never wait leave the others a twentieth of the time: the shell answers, reads files, sleeps, and ends them.

# has_policy PID NUMBER: waits until it has it. On a busy host a twentieth of the time is little.
has_policy() { until [ "$(cut -d ' ' -f 41 /proc/$1/stat)" = $2 ]; do sleep 0.1; done; }
chrt -f 99 sh -c 'while :; do :; done' &
first=$!
has_policy $first 1
ls /bin/sh
sleep 1
chrt -p $first | sed 's/.*current //'
chrt -r 50 sh -c 'while :; do :; done' &
second=$!
has_policy $second 2
sleep 2
cut -d ' ' -f 18,40,41 /proc/$first/stat /proc/$second/stat
kill $first
wait $first
echo "status $?"
kill $second
wait $second
echo "status $?"
