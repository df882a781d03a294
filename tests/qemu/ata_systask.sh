#: system ata_systask
#: timeout 600
# Disk, serial lines and clock with their ports on the way "systask".
head -c 1000000 /dev/urandom >/tmp/original
cp /tmp/original /tmp/copy && sync
service kill ata; service kill uart; service kill rtc
cmp /tmp/original /tmp/copy && echo the disk works
hwclock -r >/dev/null && echo the clock works
stty -F /dev/ttyS0 115200 && echo the line works
