# paint with a mouse: strokes of three colours, one across a switch to another terminal and back while the screen's driver and input die. The picture that it keeps is that of
# Linux, and what screen_paint.check expects.
#: package coreutils
#: screen
#: timeout 120
# Waits until the pixel X Y of the screen has a colour.
shown() { until [ "$(od -An -tx4 -j $((4 * ($2 * 1280 + $1))) -N 4 /dev/fb0)" = " 00$3" ]; do sleep 0.1; done; }
until [ -e /dev/input/event1 ]; do sleep 0.1; done
chvt 2
setsid -c paint /tmp/picture.ppm </dev/tty2 >/tmp/said 2>&1 &
until grep -q ready /tmp/said; do sleep 0.1; done
echo "white"
shown 520 400 ffffff
for service in framebuffer input ps2; do
    ! command -v service >/dev/null || service kill $service
done
chvt 3
chvt 2
# A mouse keeps few movements that nobody fetches: the next ones wait for its driver.
for service in framebuffer input ps2; do
    until ! command -v service >/dev/null || service status $service | grep -q up; do sleep 0.1; done
done
echo "red"
shown 300 600 ff0000
echo "green"
shown 300 400 00c000
echo "leave"
wait
head -n 2 /tmp/picture.ppm
md5sum </tmp/picture.ppm
cp /tmp/picture.ppm /out/picture.ppm
