#: timeout 300
# Real-time threads that never wait leave the others a twentieth of the time: the shell answers, reads files, sleeps, and ends them.
chrt -f 99 sh -c 'while :; do :; done' &
first=$!
ls /bin/sh
sleep 1
chrt -p $first | sed 's/.*current //'
chrt -r 50 sh -c 'while :; do :; done' &
second=$!
sleep 2
cut -d ' ' -f 18,40,41 /proc/$first/stat /proc/$second/stat
kill $first
wait $first
echo "status $?"
kill $second
wait $second
echo "status $?"
