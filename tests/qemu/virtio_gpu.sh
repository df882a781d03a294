#: system virtio_gpu
#: screen
#: timeout 600
# As framebuffer.sh, on a device that shows what it is told of: what programs store in a mapping is seen all the same, also what they stored just before
# their end, and after deaths of the driver at every k-th message.
if [ -z "${SKINK_DEEP:-}" ]; then
    counts='1 2 3 5 9 14 33 70'
else
    counts=$(seq 200)
fi
for test in information colours modes rotation mapping; do
    echo "-- $test"
    framebuffer $test
done
echo "-- deaths"
restarts() { service list | while read -r name state restarts rest; do [ "$name" != virtio_gpu ] || echo "$restarts"; done; }
framebuffer film &
for k in $counts; do
    before=$(restarts)
    service inject virtio_gpu kill-after $k
    until [ "$(restarts)" -gt "$before" ]; do sleep 0.05; done
done
touch /tmp/stop
wait
framebuffer picture >/out/picture.ppm
# Returns when the next picture is shown.
framebuffer information | tail -n 5 | head -n 1
