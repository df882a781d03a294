#: system ramdisk
#: icount
#: screen
#: functions dying rt_scrolling
#: timeout 900
# A periodic process of 1 kHz meets every deadline while `find /` scrolls on the screen, and while the services of the screen die meanwhile.
beside_deaths framebuffer 0
