# ts_calibrate asks for five touches on a touch screen whose raw numbers are turned, stretched and moved against the picture; with what it finds, ts_test tells where
# fingers are, to the pixel, and draws there.
#: package libts-bin,coreutils
#: system touch
#: tablet
#: screen
#: timeout 100
chvt 2
# On Linux the number is another one.
event=event2
for name in /sys/class/input/event*/device/name; do
    ! grep -qs Tablet "$name" || event=$(echo "$name" | cut -d/ -f5)
done
export TSLIB_TSDEVICE=/dev/input/$event TSLIB_CALIBFILE=/tmp/pointercal
stdbuf -oL ts_calibrate 2>&1
# A sample's time is not the same twice.
stdbuf -oL ts_test >/tmp/samples 2>&1 &
until grep -q '0$' /tmp/samples; do
    [ -e /tmp/asked ] || { touch /tmp/asked; echo "ready to be touched"; }
    sleep 0.2
done
samples() { awk 'NF >= 4 { print $(NF - 2), $(NF - 1), $NF }' /tmp/samples; }
until [ "$(samples | grep -c ' 0$')" -ge 6 ]; do sleep 0.1; done
samples
md5sum </dev/fb0
echo "touch Quit"
wait
samples | tail -n 1
