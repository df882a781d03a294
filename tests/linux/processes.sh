# Processes: scripts with #!, environment, limits of exec, ids.
printf '#!/bin/sh\necho script $0 "$@"\n' >script; chmod +x script; ./script a 'b c'
printf '#!/bin/cat\nI print myself\n' >self; chmod +x self; ./self
printf '#!/nowhere/interpreter\n' >bad; chmod +x bad; ./bad 2>/dev/null; echo bad $?
printf '#! /bin/sh -e\nfalse\necho not reached\n' >strict; chmod +x strict; ./strict; echo strict $?
: >empty; chmod +x empty; ./empty; echo empty $?
VARIABLE=value sh -c 'echo $VARIABLE'
export LONG="$(seq 1 10000 | tr '\n' ' ')"; sh -c 'echo ${#LONG}'
sh -c 'echo $1 $#' name $(seq 1 3000)
sh -c 'echo $PPID' | grep -q "^$$\$" && echo parent
tr '\0' ' ' </proc/self/cmdline; echo
cut -d' ' -f2 /proc/self/stat
grep -E '^(Name|Threads):' /proc/self/status
readlink /proc/self/cwd; cd /; readlink /proc/self/cwd; cd - >/dev/null
ls /proc/self/fd | grep -c '^[012]$'
grep -q 'r-xp.*busybox' /proc/self/maps && echo text is mapped
(ulimit -n 10; exec 9</dev/null; echo descriptors $?)
i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i + 1)); done; echo hundred
seq 1 20 | xargs -P 4 -n 1 sh -c 'exit 0' _; echo parallel $?
setsid sh -c 'ps -o pid= >/dev/null; echo session'
# By its path: su asks the kernel for it, and `command -v` names a built-in shell without one.
for folder in $(echo "$PATH" | tr : ' '); do
    [ -x "$folder/sh" ] && shell=$folder/sh && break
done
su nobody -s "$shell" -c 'id -u; echo x >/etc/forbidden' 2>&1 | sed 's/^[^ ]*sh: //'
time -f '' true; sleep 0.01; usleep 1000; echo slept
type cd; command -v sh
