# Files go both ways over the second serial line.
tty=/dev/ttyS1
exec 3<>$tty
stty -F $tty 38400 raw -echo crtscts
echo ready >&3
head -c 100000 <&3 >/tmp/in
[ "$(sha256sum </tmp/in)" = "$(cat /sum)" ] && echo received
cat /tmp/in >&3
stty -F $tty | head -1
