# paint with a mouse: strokes of three colours, one across a switch to another terminal and back while the screen's driver and input die. The picture that it keeps is that of
# Linux, and what screen_paint.check expects.
#: package coreutils
#: screen
#: timeout 120
until [ -e /dev/input/event1 ]; do sleep 0.1; done
chvt 2
setsid -c paint /tmp/picture.ppm </dev/tty2 >/tmp/said 2>&1 &
until grep -q ready /tmp/said; do sleep 0.1; done
echo "white"
until [ -e /tmp/white ]; do sleep 0.1; [ "$(od -An -tu4 -j $((4 * (400 * 1280 + 520))) -N 4 /dev/fb0)" -ne 16777215 ] || touch /tmp/white; done
for service in framebuffer input ps2; do
    ! command -v service >/dev/null || service kill $service
done
chvt 3
chvt 2
echo "red"
wait
head -n 2 /tmp/picture.ppm
md5sum </tmp/picture.ppm
cp /tmp/picture.ppm /out/picture.ppm
