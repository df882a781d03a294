#: screen
#: functions dying film
#: timeout 600
# The screen as memory: Linux's fbdev, mappings of a device's memory with their limits, and services that die while a program draws. What is seen
# last is what the program has drawn last (framebuffer.check).
# Which nobody else draws on.
chvt 2
for test in information colours modes rotation mapping; do
    echo "-- $test"
    framebuffer $test
done
echo "-- a stranger"
su nobody -s /bin/sh -c 'cat /dev/fb0 2>&1 | head -c 100'
echo "-- deaths"
film framebuffer console input ps2 tty
