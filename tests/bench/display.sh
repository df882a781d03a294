#: system ramdisk
#: screen
# Ticks of the screen: user/trials/screen_text.c for text, user/trials/screen_ticks.c for the driver.
screen_text
screen_ticks
