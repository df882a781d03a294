#: system virtio_gpu
#: icount
#: screen
#: functions dying
#: timeout 900
# As rt_screen.sh, on a screen that is told of what was drawn: its driver copies by messages and DMA beside a periodic process of 1 kHz, while
# `find /` scrolls and services of the screen die.
chvt 2
scroll() { find /dev >/dev/tty2; }
exec 3>&1
{
    sleep 0.3
    find / 2>/dev/null | head -n 2000 >/dev/tty2
    echo "all scrolled" >&3
    for k in $(counts 1 9); do
        for service in virtio_gpu console; do dies $service $k scroll; done
    done
    echo "all killed" >&3
    # The device works at the host's pace, so that all of it may have taken few periods.
    sleep 0.5
} | rt_periodic | awk '/^periods/ { print ($2 > 500) ? "over 500 periods" : $0 } /^missed/'
