#: screen
# The screen as memory: Linux's fbdev, mappings of a device's memory with their limits, and a driver that dies while a program draws. What is seen
# last is what the program has drawn last (framebuffer.check).
for test in information colours modes rotation mapping; do
    echo "-- $test"
    framebuffer $test
done
echo "-- a stranger"
su nobody -s /bin/sh -c 'cat /dev/fb0 2>&1 | head -c 100'
echo "-- deaths"
restarts() { service list | while read -r name state restarts rest; do [ "$name" != framebuffer ] || echo "$restarts"; done; }
framebuffer film &
for k in 1 2 3 5 9 14 33 70; do
    before=$(restarts)
    service inject framebuffer kill-after $k
    until [ "$(restarts)" -gt "$before" ]; do sleep 0.05; done
done
touch /tmp/stop
wait
framebuffer picture >/out/picture.ppm
