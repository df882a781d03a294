#: system ramfb
#: screen
#: timeout 600
# As framebuffer.sh, on a picture in memory that the device is told of: modes, panning and turning by telling it of another one, and deaths of the
# driver at every k-th message while a program draws.
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
restarts() { service list | while read -r name state restarts rest; do [ "$name" != framebuffer ] || echo "$restarts"; done; }
framebuffer film &
for k in $counts; do
    before=$(restarts)
    service inject framebuffer kill-after $k
    until [ "$(restarts)" -gt "$before" ]; do sleep 0.05; done
done
touch /tmp/stop
wait
framebuffer picture >/out/picture.ppm
