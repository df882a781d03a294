#: timeout 1800
#: system ramdisk
#: icount
# Random system calls, kernel calls and messages by a program without privileges, 100,000 of them or a million in the deep form;
# afterwards everything works.
calls=100000
[ -z "${SKINK_DEEP:-}" ] || calls=1000000
chaos $calls 1 </dev/null >/dev/null 2>&1 && echo all calls made
rm -rf /tmp/chaos
seq 1 1000 | sort -rn | head -n 1
cp /bin/busybox /tmp/copy && cmp /bin/busybox /tmp/copy && echo equal
service list >/dev/null && echo services answer
