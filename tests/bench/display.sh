#: system ramdisk
#: screen
# Ticks of the screen: user/trials/screen_text.c for text, user/trials/screen_ticks.c for the driver; and what its services keep.
screen_text
screen_ticks
# Memory beside the pixels, which are the device's, with a shell on the first terminal.
for service in console framebuffer; do echo "${service}_memory_bytes $(awk '{ print $2 * 4096 }' /proc/$(pidof $service)/statm)"; done
