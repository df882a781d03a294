#: system ramdisk
#: screen
# Ticks of the screen: user/trials/screen_ticks.c.
screen_ticks
