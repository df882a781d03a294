# paint with a finger (on Linux: with a tablet): two strokes of two colours, which the screen shows (screen_paint_touch.check).
#: package coreutils
#: system touch
#: tablet
#: screen
#: timeout 120
chvt 2
# On Linux there are others until the tablet is found.
until sleep 0.1; [ -e /dev/input/event2 ]; do :; done
setsid -c paint </dev/tty2 >/tmp/said 2>&1 &
until grep -q ready /tmp/said; do sleep 0.1; done
echo "ready"
pixel() { od -An -tx4 -j $((4 * ($2 * 1280 + $1))) -N 4 /dev/fb0; }
until pixel 600 200 | grep -q 00ffff00 && pixel 1000 700 | grep -q 00ff00ff; do sleep 0.1; done
echo "drawn"
# The last touch is seen when the cross of a tablet has left the canvas.
until [ "$(pixel 1000 700)" = " 00ff00ff" ] && [ -e /tmp/last ]; do touch /tmp/last; sleep 1; done
pixel 100 197
pixel 100 204
pixel 1003 500
