# M3-IPC in containers with limits: whom a container of M3-IPC names may join, and no others; members' processes are limited as everybody's; and those who
# are killed with their container are bound no more.
#: timeout 120
mkdir -p /c/bin /c/proc /c/tmp
cp /bin/busybox /opt/talk /c/bin
for name in sh sleep true; do ln -s busybox /c/bin/$name; done
start() {
    container run "$1" --root /c --memory 16M --processes "$2" -- sleep 1000 &
    until container exec "$1" -- true 2>/dev/null; do sleep 0.1; done
}
bound() { grep -q "^ 0 *$1 " /proc/drvs/VM0/procs; }
start one 4
start two 20
id=$(container list | while read -r name number rest; do [ "$name" = one ] && echo "$number"; done)
/opt/talk 0 start $((0xffffff00 + id))

echo '== the processes of one container, and root'
container exec one -- talk 0 server >/dev/null &
until bound 1; do sleep 0.1; done
container exec one -- talk 0 client 2
container exec two -- talk 0 client 3
/opt/talk 0 client 4

echo '== limits stay'
container exec one -- sh -c 'i=0; while [ $i -lt 6 ]; do sleep 100 & i=$((i + 1)); done' 2>&1 | grep -c fork
container exec one -- talk 0 client 2

echo '== a killed one'
container kill one
until ! bound 1; do sleep 0.1; done
/opt/talk 0 client 6
/opt/end_node
container kill two
wait
