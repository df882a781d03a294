#: system ramdisk
#: icount
#: screen
#: timeout 900
# One allocation after the other fails in each server: the call that needed it says so, and nobody else notices anything. The deep form
# goes as far as the workload has allocations.
last=12
[ -z "${SKINK_DEEP:-}" ] || last=400
scarce 1 $last pm vm vfs rs tty ext2 tmpfs procfs devfs ds console input smbus
