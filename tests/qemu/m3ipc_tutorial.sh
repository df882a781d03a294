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
# And what the command does.
/opt/m3 info
/opt/m3 containers
/opt/m3 ps 0 | awk '{ print $1, $2, $6 }'
/opt/m3 ps 3
/opt/m3 end
/opt/m3 containers
/opt/m3 init 2 --name small --max-containers 3 --max-copy 4096 --processes 20 --tasks 5 --system 10 --open
/opt/m3 info
/opt/m3 containers
sleep 100 &
sleeper=$!
/opt/m3 bind 2 7 $sleeper
/opt/m3 ps | awk '{ print $1, $2, $6 }'
/opt/m3 unbind 2 7
/opt/m3 ps | awk '{ print $1, $2, $6 }'
/opt/m3 run 2 8 sh -c '/opt/m3 ps 2' | awk '{ print $1, $2, $6 }'
kill $sleeper
/opt/m3 end
