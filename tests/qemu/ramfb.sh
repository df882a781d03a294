#: system ramfb
#: screen
#: functions dying film
#: timeout 600
# As framebuffer.sh, on a picture in memory that the device is told of: modes, panning and turning by telling it of another one, and deaths of the
# driver at every k-th message while a program draws.
# Which nobody else draws on.
chvt 2
for test in information colours modes rotation mapping; do
    echo "-- $test"
    framebuffer $test
done
echo "-- deaths"
film framebuffer console input ps2 tty
