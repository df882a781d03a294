# Files go into the running system and out of it over a serial line, by ZMODEM: Debian's lrzsz on both ends. uart is killed after its
# k-th message while one comes in. docs/book/packages.md says how a user does it.
#: package lrzsz
#: timeout 600
tty=/dev/ttyS1
exec 3<>$tty
stty -F $tty 115200 raw -echo crtscts
mkdir /tmp/in
cd /tmp/in
echo ready >&3
rz -q -b <&3 >&3 && ls
sha256sum -c /sums
for k in 10 100 1000; do
    service inject uart kill-after $k
    echo ready >&3
    rz -q -b -y <&3 >&3
    sha256sum -c /sums
done
seq 1000 >>text
sz -q -b text bytes <&3 >&3 && echo sent
