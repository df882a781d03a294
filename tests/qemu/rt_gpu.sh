#: system virtio_gpu
#: icount
#: screen
#: functions dying rt_scrolling
#: timeout 900
# As rt_screen.sh, on a screen that is told of what was drawn: its driver copies by messages and DMA beside a periodic process of 1 kHz, while
# `find /` scrolls and services of the screen die. The device works at the host's pace, so that all of it may have taken few periods.
beside_deaths virtio_gpu 0.5
