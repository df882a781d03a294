#: system ramdisk
#: icount
# Messages between real-time processes: kinds, order, inheritance, time limits, ends.
mrt_messages
