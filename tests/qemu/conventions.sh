# Calls that keep a choice or tell a fact: the output is that of Linux. Then /sys, before and after the death of vfs and procfs, and a load
# average that rises while a program computes.
conventions
cat /sys/devices/system/cpu/online /sys/devices/system/cpu/cpu0/topology/core_id
grep sysfs /proc/mounts
service kill vfs
service kill procfs
grep sysfs /proc/mounts
cat /sys/devices/system/cpu/present
ls /sys /proc/1/ns
mount -t sysfs none /mnt && ls /mnt && umount /mnt
echo 1 > /sys/devices/system/cpu/online
while [ "$(cut -d. -f1-2 /proc/loadavg | cut -c1-4)" = 0.00 ]; do :; done
echo load
