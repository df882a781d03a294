#: timeout 3000
#: icount
# Random calls with arguments that make sense on descriptors of every kind, by children of a user without privileges: 50,000, or a million in
# the deep form. First undisturbed, then while services die; afterwards everything works, and what the children had is free.
calls=50000
[ -z "${SKINK_DEEP:-}" ] || calls=1000000
used() { cut -f1 /proc/sys/fs/file-nr; }
before=$(used)
plausible $calls 1 </dev/null >/dev/null 2>&1 && echo all calls made
while [ "$(used)" -gt "$((before + 2))" ]; do sleep 0.1; done
plausible $((calls / 5)) 2 </dev/null >/dev/null 2>&1 &
for service in vfs tty pm tmpfs vfs pm vm vfs; do
    sleep 0.3
    service kill $service
done
wait $! && echo all calls made
rm -rf /tmp/plausible
seq 1 1000 | sort -rn | head -n 1
cp /bin/busybox /tmp/copy && cmp /bin/busybox /tmp/copy && echo equal
service list >/dev/null && echo services answer
