#: timeout 600
# tty and uart die again and again while files go both ways over the second serial line: no byte is lost or comes twice.
tty=/dev/ttyS1
exec 3<>$tty
stty -F $tty 19200 raw -echo
# No more often than rs bears.
(for round in 1 2 3 4 5 6; do service kill tty; sleep 0.1; service kill uart; sleep 0.1; done) &
echo ready >&3
head -c 100000 <&3 >/tmp/in
[ "$(sha256sum </tmp/in)" = "$(cat /sum)" ] && echo received
cat /tmp/in >&3
wait
stty -F $tty | head -1
service status tty | grep restarts
service status uart | grep restarts
