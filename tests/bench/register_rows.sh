# What messages between two programs of a container cost without M3-IPC's library: in registers, and in memory by vector 33.
register_rows
