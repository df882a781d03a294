#: timeout 420
# `./skink profile`: every tick is counted once, for whom and in which function, and counting changes nothing.
cat >shares.c <<'END'
#include <stdio.h>
#include <x86intrin.h>

__attribute__((noinline)) static long work(long rounds)
{
    long sum = 0;
    for (long i = 0; i < rounds; i++)
        __asm__ volatile("add $1, %0" : "+r"(sum));
    return sum;
}
__attribute__((noinline)) long three_parts(void) { return work(3000000) + 1; }
__attribute__((noinline)) long one_part(void) { return work(1000000) + 1; }

int main(void)
{
    unsigned long begin = __rdtsc();
    long sum = three_parts() + one_part();
    printf("%lu ticks, %ld\n", __rdtsc() - begin, sum);
    return 7;
}
END
mkdir -p over/bin
cc -O1 -static -o over/bin/shares shares.c
command='shares; dd if=/etc/passwd bs=4096 2>/dev/null | md5sum; shares'

# The command's output and status come through, the ticks that it sees are those of an unobserved run.
"$SKINK" exec --icount --overlay over "$command" >unobserved || test $? = 7
for run in 1 2; do
    "$SKINK" profile --overlay over --out out.$run "$command" >observed.$run || test $? = 7
done
head -3 observed.1 | cmp - unobserved
# Twice the same, to the tick.
cmp out.1/profile.folded out.2/profile.folded
cmp out.1/trace.json out.2/trace.json

# The stacks have all ticks, and no more: what the program itself has measured is in them.
total=$(sed -n 's/^.*: \([0-9,]*\) ticks$/\1/p' out.1/profile.txt | tr -d ,)
sum() { awk -v what="$1" 'index($0, what) { sum += $NF } END { printf "%d", sum }' out.1/profile.folded; }
[ "$(awk '{ sum += $NF } END { printf "%d", sum }' out.1/profile.folded)" = "$total" ]
three=$(sum three_parts)
one=$(sum one_part)
measured=$(awk '/ticks,/ { sum += $1 } END { print sum }' unobserved)
# Three parts of four, and the two together are what was measured but for main's own and interruptions.
[ $((three * 1000 / (three + one))) = 750 ] || [ $((three * 1000 / (three + one))) = 749 ]
[ $((three + one)) -le "$measured" ]
[ $((three + one)) -gt $((measured - measured / 500)) ]

# Work counts for whom it is done: the file system's and the driver's for the read that dd makes.
grep -q '^dd;.*read();.*vfs;.*fs::Read;.*ext2;' out.1/profile.folded
grep -q '^md5sum;.*read();.*vfs;' out.1/profile.folded
if grep -q '^md5sum;.*fs::Read' out.1/profile.folded; then exit 1; fi
grep -q '<title>.*three_parts' out.1/flame.svg
python3 - <<'END'
import json
events = json.load(open("out.1/trace.json"))["traceEvents"]
spans = [event for event in events if event["ph"] == "X"]
assert any(span["name"] == "fs::Read" for span in spans)
starts = {event["id"]: event["ts"] for event in events if event["ph"] == "s"}
ends = {event["id"]: event["ts"] for event in events if event["ph"] == "f"}
assert starts and starts.keys() == ends.keys() and all(starts[one] <= ends[one] for one in starts)
END
