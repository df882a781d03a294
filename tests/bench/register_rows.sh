#: system ramdisk
# What messages between two programs of a container cost without the library of M3-IPC: in registers, and in memory by vector 33.
register_rows
