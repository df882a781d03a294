#: package libts-bin,coreutils
#: tablet
#: system touch
# Debian's tslib on a touch screen: each line is where the finger is and how hard it presses; when it has left, all are 0.
export TSLIB_TSDEVICE=/dev/input/event2
stdbuf -oL ts_print_raw >/tmp/touches 2>&1 &
tslib=$!
until ls -l /proc/$tslib/fd 2>/dev/null | grep -q event2; do sleep 0.1; done
echo "touch me" >&2
until [ "$(grep -c ' 0$' /tmp/touches)" -ge 2 ]; do sleep 0.1; done
kill $tslib
wait $tslib 2>/dev/null
sed -n 's/^[0-9.]*: *\([0-9]*\)  *\([0-9]*\)  *\([0-9]*\)$/\1 \2 \3/p' /tmp/touches
