#: system ati
#: functions dying
#: package i2c-tools,read-edid,edid-decode,coreutils
#: device ati-vga,model=rv100
#: device i2c-ddc,bus=i2c,address=0x58
# EDIDs by DDC: Debian's tools on two buses, that of a graphics card, whose wires the driver moves itself, and that of the chip set, to which a
# device of this kind was added. Then transactions of several messages, two readers at a time, and a driver that dies.
i2cdetect -y 1
i2cdetect -y 0 0x50 0x5f | tail -n +7 | head -n 1
echo "-- the display"
get-edid -b 1 2>/dev/null >/tmp/edid
edid-decode /tmp/edid | grep -E 'Version|Manufacturer|Model|Made|DTD 1|Display Product Name|Maximum image size'
od -An -v -tx1 -w16 /tmp/edid | head -n 8 >/tmp/expected
dump() { i2cdump -y "$@" | sed -n 's/^[0-7]0: \(.\{47\}\).*/ \1/p'; }
for how in b i c; do
    dump 1 0x50 $how | cmp - /tmp/expected && echo "the same by $how"
done
dump 0 0x58 b | sed -n '1,2p;7,8p'
echo "-- transactions"
i2ctransfer -y 1 w1@0x50 0x36 r4
i2ctransfer -y 1 w1@0x50 0 w1@0x50 0x5a r2@0x50 w1@0x50 8 r3
i2ctransfer -y 1 w1@0x50 0 r128 | sed 's/0x//g; s/.\{48\}/&\n/g' | sed 's/ $//; s/^/ /' | cmp - /tmp/expected && echo "the same at once"
many() { i2ctransfer -y 1 w1@0x50 0 $(yes r1@0x50 | head -n 41) | sed 's/0x//'; }
tr ' ' '\n' </tmp/expected | grep . | head -n 41 >/tmp/bytes
many | cmp - /tmp/bytes && echo "the same by as many messages as Linux allows"
refused() { "$@" 2>&1 | head -n 1; }
refused i2ctransfer -y 1 w1@0x51 0 r1
refused su nobody -s /bin/sh -c 'i2cget -y 1 0x50 2'
i2cdetect -F 1 | grep -w yes
echo "-- at the same time"
for reader in 1 2 3; do
    (for round in 1 2 3; do i2ctransfer -y 1 w1@0x50 0 r128 | cksum; i2cdump -y 1 0x50 b | cksum; done >/tmp/reader$reader) &
done
wait
sort -u /tmp/reader1 /tmp/reader2 /tmp/reader3 | wc -l
echo "-- deaths"
once=$(i2cdump -y 1 0x50 b)
whole=$(i2ctransfer -y 1 w1@0x50 0 r128)
transfer() {
    [ "$(i2ctransfer -y 1 w1@0x50 0 r128)" = "$whole" ] || echo "another transaction after $k"
    [ "$(i2cdump -y 1 0x50 b)" = "$once" ] || echo "another dump after $k"
}
for k in $(counts 1 2 3 4 5 6 8 13 21 55 144); do dies ati_i2c $k transfer; done
messages() { many | cmp - /tmp/bytes || echo "other messages after $k"; }
for k in $(counts 13 34); do dies ati_i2c $k messages; done
