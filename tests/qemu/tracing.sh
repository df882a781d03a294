#: system ramdisk
# What the trace ring tells: service top, trace and profile find a program that reads in small pieces, and what works for it; and a file that is made
# anew all the while, of which the file system hears. Only root
# may look. The driver may die meanwhile, and the tracing program too: nothing is recorded then.
readers() {
    while :; do
        dd if=/bin/busybox of=/dev/null bs=512 2>/dev/null
        echo again >/again
    done
}
# Kinds of events that are recorded.
recorded() {
    dd if=/dev/trace bs=4 skip=2 count=1 2>/dev/null | hexdump -e '1/4 "%d\n"'
}
ls -l /dev/trace | awk '{ print $1, $3, $5, $6 }'
su nobody -s /bin/sh -c 'service top 1; service trace 1; service profile 1; head -c 16 /dev/trace'
service top 0 2>&1 | head -1
service profile 1 99999999 2>&1 | head -1
echo "recorded: $(recorded)"

readers &
loop=$!
# Of what is rare nothing may be left when much is lost, as on a busy host.
until service top 1 >/tmp/top 2>/tmp/lost; grep -q '^vfs  *ext2 ' /tmp/top; do :; done
awk '$1 == "dd" && $2 == "vfs" && $3 == "read" && $4 > 500 { print "top: dd -> vfs read" }
    $1 == "vfs" && $2 == "ext2" { found = 1 } END { if (found) print "top: vfs -> ext2" }
    /events lost/ { print "top: lost events are counted" } /^vfs .*%/ { print "top: shares of the processor" }' /tmp/top
service trace 1 >/tmp/trace 2>/tmp/lost
grep -q 'dd -> vfs read(fd 0x0, buffer 0x[0-9a-f]*, bytes 0x200)$' /tmp/trace && echo "trace: the call of dd"
grep -q 'vfs -> dd read = 0x200$' /tmp/trace && echo "trace: the reply to dd"
grep -c ' service ' /tmp/trace
service profile 1 >/tmp/folded 2>/tmp/summary
grep -q '^dd;read();vfs;[^\[ ]*::[^ ]* [0-9]*$' /tmp/folded && echo "profile: a function of vfs in the name of dd"
awk 'NF != 2 && !/^[^;]*;.* [0-9]+$/ { print "odd line: " $0 }' /tmp/folded
awk '/samples/ { print ($2 > 50 && $2 <= 1100) ? "profile: samples" : "samples: " $2 }' /tmp/summary

# The driver dies, and goes on.
(sleep 1; service kill trace) &
service top 2 >/tmp/top 2>/tmp/lost
grep -o 'interrupted 1 times: its driver died' /tmp/lost
awk '$1 == "dd" && $3 == "read" && $4 > 500 { print "top: goes on" }' /tmp/top
# The program dies: the kernel records nothing any more.
service top >/tmp/top &
sleep 1
echo "recorded: $(recorded)"
kill -9 $!
wait $! 2>/dev/null
echo "recorded: $(recorded)"
# rs dies while it is looked at.
(sleep 1; service inject rs kill-after 1) &
service top 2 >/tmp/top 2>/tmp/lost
awk '$1 == "dd" && $3 == "read" && $4 > 500 { print "top: rs has died" }' /tmp/top
kill $loop
echo "recorded: $(recorded)"
