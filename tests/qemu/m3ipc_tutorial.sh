# The name server of docs/book/m3ipc.md and its client: the binaries that have just run in Linux.
/opt/names > /dev/null &
until grep -q '^ 0   0' /proc/drvs/VM0/procs 2> /dev/null; do sleep 0.1; done
/opt/greet serve > /dev/null &
until [ "$(/opt/greet)" = hello ]; do sleep 0.1; done
/opt/greet
# What /proc/drvs tells of them.
cut -c1-6 /proc/drvs/VM0/procs
grep -E 'vmid|bound|name' /proc/drvs/VM0/info
head -1 /proc/drvs/info
