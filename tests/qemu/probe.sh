#: system ramdisk
# probe: which calls, under which condition, counted by what; mistakes are shown where they are. Only root may; a service that dies
# meanwhile is looked at again when it is back; a thousand keys take bounded room.
readers() {
    while :; do
        dd if=/bin/busybox of=/dev/null bs=512 count=40 2>/dev/null
        dd if=/bin/busybox of=/dev/null bs=16k count=4 2>/dev/null
        cat /nowhere 2>/dev/null
    done
}
su nobody -s /bin/sh -c "probe 1 'vfs read { count }'"
for text in 'vfs reed { count }' 'vfs read bytes = 1 { count }' 'vfs read { sum }' ''; do
    probe 1 "$text" 2>&1 | head -1
done
probe 1 'vfs read bytes > 4096 { sum }' 2>&1 | sed -n '2,3p'
probe 2>&1 | head -1

readers &
loop=$!
probe 3 'vfs Read bytes > 4096 { hist(latency) by caller } vfs read caller == dd { count by bytes } vfs openat errno == ENOENT { count by caller, errno }' >/tmp/found
grep -c '^hist(latency) by caller (ns)$' /tmp/found
awk '$1 == "dd:" && $2 == "count" && $3 + 0 > 0 { print "histogram of dd" } $2 == ".." && $5 ~ /#/ { bars = 1 } END { if (bars) print "bars" }' /tmp/found
awk '$1 == "512" && $2 > 5 { print "512" } $1 == "16384" && $2 > 0 { print "16384" }' /tmp/found
# A cat that ends before its name was asked for is ?.
grep -qE '^ *(cat|\?), ENOENT ' /tmp/found && echo "cat misses"
probe 1 '* * caller == vfs { quantize(latency) by server, label; max(latency) }' | grep -q '^  ext2, fs::' && echo "requests of vfs"
probe 1 'vfs read bytes == 512 { print by fd }' | grep -q '^dd -> vfs read = [0-9]*, [0-9]* ns, 0$' && echo "printed"
# ext2 dies, and is looked at again.
(sleep 1; service kill ext2) &
probe 2 'ext2 * { count by label }' >/tmp/found 2>/tmp/lost
grep -q 'fs::' /tmp/found && echo "ext2 has died"
kill $loop
# A thousand keys.
(sleep 1; for size in 1 2 3 4; do for low in $(seq 250); do head -c $((size * 250 + low)) /dev/zero; done; done >/dev/null) &
probe 4 'vfs * { count by bytes, arg1 }' >/tmp/found 2>/tmp/lost
awk '/^  / { rows++ } END { print (rows <= 258) ? "bounded" : rows }' /tmp/found
wait
