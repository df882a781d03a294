#: package fio,util-linux
#: timeout 900
# Debian's fio writes with several jobs at once, by write(2), pwrite(2), mmap and libaio, whose contexts have eight requests in them, and verifies what it
# reads: its jobs share a System V segment.
# util-linux's ipcmk, ipcs and ipcrm make, show and remove one.
cd /root
for engine in sync psync mmap libaio; do
    set --
    [ $engine != libaio ] || set -- --iodepth=8
    fio --name=$engine --directory=/root --ioengine=$engine --rw=randwrite --bs=4k --size=2m --numjobs=3 "$@" --verify=crc32c --do_verify=1 \
        --verify_fatal=1 --end_fsync=1 --group_reporting --output-format=terse --terse-version=3 >/tmp/$engine
    echo "$engine: status $?, $(cut -d';' -f5 /tmp/$engine) errors, $(cut -d';' -f6 /tmp/$engine) KiB verified"
    rm -f /root/$engine.*
done
id=$(/usr/bin/ipcmk -M 10000 -p 0640 | sed 's/.*: //')
/usr/bin/ipcs -m -i $id | sed 's/Shared memory Segment shmid=.*/shmid=N/; s/_time=.*/_time/; s/cpid=[0-9]*/cpid=N/'
/usr/bin/ipcs -m | grep -c "^0x.* root *640 *10000 *0"
/usr/bin/ipcs -lm | grep -c "max number of segments"
/usr/bin/ipcrm -m $id
/usr/bin/ipcs -m | grep "^0x" || echo 'none is left'
