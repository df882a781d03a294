#: system virtio_gpu
#: screen
#: functions dying film
#: timeout 600
# As framebuffer.sh, on a device that shows what it is told of: what programs store in a mapping is seen all the same, also what they stored just before
# their end, and after deaths of the driver at every k-th message.
# Which nobody else draws on.
chvt 2
for test in information colours modes rotation mapping; do
    echo "-- $test"
    framebuffer $test
done
echo "-- deaths"
film virtio_gpu console input ps2 tty
# Returns when the next picture is shown.
framebuffer information | tail -n 5 | head -n 1
