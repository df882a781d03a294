#: timeout 1800
#: system ramdisk
#: icount
# A million random system calls, kernel calls and messages by a program without privileges; afterwards everything works.
chaos 1000000 1 </dev/null >/tmp/chaos.log 2>&1
tail -n 1 /tmp/chaos.log | grep -c '^1000000 calls'
seq 1 1000 | sort -rn | head -n 1
cp /bin/busybox /tmp/copy && cmp /bin/busybox /tmp/copy && echo equal
service list >/dev/null && echo services answer
