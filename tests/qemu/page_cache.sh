#: memory 128
#: timeout 600
# What is read of a file stays in memory, as far as that is free. Programs that need the memory get it at once, the file can be read all the while, and
# what is read is always what the file has.
cached() { sed -n 's/^Cached: *\([0-9]*\) kB/\1/p' /proc/meminfo; }
sum() { md5sum </large | cut -c 1-32; }
before=$(cached)
expected=$(sum)
[ "$(cached)" -ge $((before + 20000)) ] && echo 'it is kept'
[ "$(sum)" = "$expected" ] && [ "$(sum)" = "$expected" ] && echo 'and is the same'

# Its first bytes change, and are seen.
printf 'changed' | dd of=/large bs=1 conv=notrunc 2>/dev/null
[ "$(head -c 7 /large)" = changed ] && echo 'a change is seen'
printf '1\n2\n3\n4' | dd of=/large bs=1 conv=notrunc 2>/dev/null
[ "$(sum)" = "$expected" ] && [ "$(sum)" = "$expected" ] && echo 'and the change back'

(for i in 1 2 3; do hog memory; done) >/dev/null 2>&1 &
good=0
for i in 1 2 3 4 5; do [ "$(sum)" = "$expected" ] && good=$((good + 1)); done
wait
# A program that gets no memory for itself computes no sum.
[ $good -ge 1 ] && echo 'read while memory is short'
[ "$(sum)" = "$expected" ] && [ "$(sum)" = "$expected" ] && [ "$(sum)" = "$expected" ] && echo 'and afterwards'
[ "$(cached)" -ge 20000 ] && echo 'it is kept again'
