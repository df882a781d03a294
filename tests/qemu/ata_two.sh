#: system ata
#: disk_rate 400000
#: second_disk 8
# A disk that is busy for twenty seconds holds up no request for the one on the other channel. Two readers keep the first disk's queue
# from ever being empty: by one command after the other, the second disk's 200 requests would outlast their 128.
dd if=/dev/hdc of=/dev/null bs=512 count=1 2>/dev/null
dd if=/dev/hda bs=64k count=64 2>/dev/null | wc -c >/tmp/size1 &
reader=$!
dd if=/dev/hda bs=64k count=64 skip=64 2>/dev/null | wc -c >/tmp/size2 &
dd if=/dev/hdc bs=512 count=200 2>/dev/null | wc -c
kill -0 $reader && echo the first disk is still busy
wait
cat /tmp/size1 /tmp/size2
