#: system ramdisk
#: icount
#: screen
#: functions dying
#: timeout 900
# A periodic process of 1 kHz meets every deadline while `find /` scrolls on the screen, and while the services of the screen die meanwhile.
chvt 2
scroll() { find /dev >/dev/tty2; }
exec 3>&1
{
    sleep 0.3
    find / 2>/dev/null | head -n 2000 >/dev/tty2
    echo "all scrolled" >&3
    for k in $(counts 1 9); do
        for service in framebuffer console; do dies $service $k scroll; done
    done
    echo "all killed" >&3
} | rt_periodic | awk '/^periods/ { print ($2 > 500) ? "over 500 periods" : $0 } /^missed/'
