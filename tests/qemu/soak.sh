#: timeout 900
#: screen
# Every service dies in turn, vm, rs and pm too, while files are copied, packed and compared, programs wait for each other and pipes fill:
# twenty minutes in the full form. Standard error counts the deaths.
seconds=40
[ -z "${SKINK_DEEP:-}" ] || seconds=1200
# Free, or cached: given back when it is needed.
free_kb() { sync; sleep 1; awk '/^(MemFree|Cached):/ { kb += $2 } END { print kb }' /proc/meminfo; }
names() { service list | sed -e 1d -e 's/ .*//'; }
kill_each() {
    for name in $(names); do
        service kill "$name" || service kill "$name" || echo "$name cannot be killed"
        sleep 0.7
        [ -e /tmp/going ] || return
    done
}
mkdir -p /work/tree/inner
for i in 1 2 3 4 5 6 7 8; do
    head -c 200000 /dev/urandom >/work/tree/file$i
    seq $i 9 >/work/tree/inner/small$i
done
ln -s inner/small1 /work/tree/link
cd /work/tree && find . -type f -exec sha256sum {} + >/work/sums
compare() { (cd "$1" && sha256sum -c /work/sums | grep -v ': OK$'); }
round() {
    cp -r /work/tree /work/copy || echo "cp fails"
    compare /work/copy
    tar -cf /work/archive -C /work copy && rm -r /work/copy && tar -xf /work/archive -C /work || echo "tar fails"
    compare /work/copy
    rm -r /work/copy /work/archive || echo "rm fails"
    [ "$(seq 20000 | sort -rn | tail -n 1)" = 1 ] || echo "a pipeline is wrong"
    [ "$(yes | head -c 200000 | wc -c)" = 200000 ] || echo "a pipe is wrong"
    sh -c 'trap "exit 5" TERM; sleep 0.2 & wait; kill -TERM $$; exit 6'
    [ $? = 5 ] || echo "a signal is lost"
    head -c 300000 /work/tree/file1 >/dev/shm/memory && cmp /dev/shm/memory /work/tree/file1 && rm /dev/shm/memory || echo "tmpfs is wrong"
    [ "$(cat /work/tree/link)" = "$(seq 9)" ] || echo "a link is wrong"
}
# What every service takes for good when it dies for the first time, and what the work takes.
touch /tmp/going
round
kill_each
round
before=$(free_kb)
end=$(($(cut -d. -f1 /proc/uptime) + seconds))
while [ "$(cut -d. -f1 /proc/uptime)" -lt $end ]; do kill_each; done &
killer=$!
rounds=0
while kill -0 $killer 2>/dev/null; do
    round
    rounds=$((rounds + 1))
    [ "$(cut -d. -f1 /proc/uptime)" -lt $end ] || rm -f /tmp/going
done
wait
sleep 1
after=$(free_kb)
service list | awk 'NR > 1 && $2 != "up" { print $1, "is", $2 } NR > 1 && $3 == 0 && $1 != "vm" { print $1, "has not died" }'
# The kernel starts vm again, and rs does not count it.
dmesg | grep -q 'vm is killed as injected and starts again' || echo "vm has not died"
service list | awk -v rounds=$rounds 'NR > 1 { deaths += $3 } END { print deaths, "deaths in", rounds, "rounds" }' >&2
echo "$before kB free before, $after after" >&2
[ $rounds -gt 1 ] && echo "the work goes on"
# What lists the pages of a cache of 240 MiB, and maps them, takes 3 MiB.
[ $((before - after)) -lt 8192 ] || echo "$((before - after)) kB are missing"
