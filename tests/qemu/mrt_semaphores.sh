#: system ramdisk
#: icount
# Semaphores of real-time processes: order, inheritance through chains, time limits, ceilings, ends.
mrt_semaphores
