#: package i2c-tools,coreutils
#: functions dying
# Debian's i2c-tools on the bus of the chip set: the EEPROMs of the memory modules, what answers and what does not, and a driver that dies. Up to
# the last two parts the output is that of Linux on the same machine.
i2cdetect -y 0
echo "-- writes"
for i in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do i2cset -y 0 0x50 0x0$i 0x$i$i; done
i2cset -y 0 0x51 0xf0 0x5a && i2cget -y 0 0x51 0xf0
i2cset -y 0 0x51 0xf2 0x1234 w && i2cget -y 0 0x51 0xf2 w
i2cset -y -r 0 0x51 0xf4 0x77
i2cset -y 0 0x51 0x80 7 10 20 30 s && i2cget -y 0 0x51 0x80
echo "-- reads"
i2cset -y 0 0x50 3 && i2cget -y 0 0x50
i2cget -y 0 0x50 2
i2cget -y 0 0x50 2 w
i2cdump -y 0 0x50 b
i2cdump -y -r 0-15 0 0x50 w
i2cget -y 0 0x51 0x80 s
echo "-- refused"
refused() { "$@" 2>&1 | head -n 1; }
refused i2cget -y 0 0x10 2
refused i2cget -y 0 0x78 2
refused i2cget -y 2 0x50 2
refused i2ctransfer -y 0 w1@0x50 2 r1
refused su nobody -s /bin/sh -c 'i2cget -y 0 0x50 2'
echo "-- functions"
i2cdetect -F 0 | grep -w yes
echo "-- deaths"
once=$(i2cdump -y 0 0x50 b)
dump() { [ "$(i2cdump -y 0 0x50 b)" = "$once" ] || echo "another dump after $k"; }
for k in $(counts 1 2 3 5 8 13 21 34 55 89 144 200); do dies smbus $k dump; done
