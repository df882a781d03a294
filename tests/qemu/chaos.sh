#: timeout 1800
#: system ramdisk
#: icount
# A million random system calls, kernel calls and messages by a program without privileges; afterwards everything works.
chaos 1000000 1 </dev/null >/dev/null 2>&1 && echo all calls made
rm -rf /tmp/chaos
seq 1 1000 | sort -rn | head -n 1
cp /bin/busybox /tmp/copy && cmp /bin/busybox /tmp/copy && echo equal
service list >/dev/null && echo services answer
