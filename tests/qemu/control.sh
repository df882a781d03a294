#: system ramdisk
#: icount
#: timeout 600
# The control loop of docs/book/real-time.md, with the vessel at the other end of the line: it holds its temperature; and when the loop hangs, its
# watchdog switches the heater off.
control
control stuck
