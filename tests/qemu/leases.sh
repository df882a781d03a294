# Leases of files, and who is told when one is to be broken: on ext2 and on tmpfs as on Linux, whose output the expected one is. In the full
# form a holder does nothing for 45 seconds, and nothing more is printed.
mkdir /root/leases /tmp/leases
chmod 777 /root/leases
cat /proc/sys/fs/lease-break-time
leases /root/leases
mount -t tmpfs none /tmp/leases
chmod 777 /tmp/leases
leases /tmp/leases
[ -z "${SKINK_DEEP:-}" ] || leases /root/leases wait
