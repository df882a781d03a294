#: system printer_bare
# The printer driver in C, lib/c/examples/lp.c: what is written to /dev/lp0 is what comes out of the parallel port.
echo one >/dev/lp0
seq 500 >/dev/lp0
service kill lp
echo after its death >/dev/lp0
dmesg | grep -c '^lp: the printer port is reached by'
# Nothing can be read from it, and it has no other minor.
cat </dev/lp0 2>/dev/null || echo unreadable
mknod /tmp/lp1 c 6 1
sh -c ': >/tmp/lp1' 2>/dev/null || echo no second port
