#: system ramdisk
#: icount
# Real-time processes: sleep, periods, deadlines, watchdogs, one that loops for ever, pools that are full.
mrt_processes
