#: system ramdisk
# The free space of the ramdisk takes no memory until something is written there, which then outlives the driver.
preserved_kib() {
    local comm=$(grep -lx ramdisk /proc/[0-9]*/comm)
    awk '/^[0-9a-f]*-/ { is_preserved = /^2........-/ } is_preserved && /^Rss/ { print $2 }' "${comm%/comm}/smaps"
}
disk() { md5sum </dev/ram0; }
echo "preserved at the start: $(preserved_kib) KiB"
dd if=/dev/urandom of=/root/random bs=64k count=96 2>/dev/null
sync
[ $(preserved_kib) -ge $((6 * 1024)) ] && echo "what was written takes memory"
written=$(disk) random=$(md5sum </root/random)
service kill ramdisk
[ "$(disk)" = "$written" ] && echo "the disk is as it was"
[ "$(md5sum </root/random)" = "$random" ] && echo "so is the file"
