# util-linux, procps, psmisc, lsof and passwd: what shows and sets the properties of processes, files, the system and its users.
#: package util-linux,procps,psmisc,coreutils,findutils,grep,sed,gawk,lsof,bsdextrautils,uuid-runtime,hostname,login,passwd
cd /tmp
# Properties of processes.
sleep 1000 &
sleeper=$!
ionice -c 3 -p $sleeper
ionice -p $sleeper
ionice -c 2 -n 5 sh -c 'ionice'
renice -n 7 -p $sleeper >/dev/null
ps -o ni=,comm= -p $sleeper
chrt -f -p 5 $sleeper
chrt -p $sleeper | sed 's/^pid [0-9]*//'
chrt -o -p 0 $sleeper
taskset -c -p 0 $sleeper | sed 's/^pid [0-9]*//' | tail -n 1
prlimit --pid $sleeper --nofile=50:60
prlimit --pid $sleeper --nofile -o SOFT,HARD --noheadings
choom -p $sleeper | sed 1d | sed 's/^pid [0-9]*//'
choom -n 300 -p $sleeper | sed 's/^pid [0-9]*//'
choom -p $sleeper | sed 1d | sed 's/^pid [0-9]*//'
choom -n 250 -- cat /proc/self/oom_score_adj /proc/self/oom_adj
setpriv --no-new-privs grep NoNewPrivs /proc/self/status
setpriv --pdeathsig TERM sh -c 'setpriv -d | grep -i death'
setsid -w sh -c '[ $$ = $(ps -o sid= -p $$) ]' && echo leader
pgrep -x sleep | grep -c .
pidof sleep | wc -w
pwdx $sleeper | sed 's/^[0-9]*/PID/'
pstree -A $$ | head -n 1 | cut -c1-2
state() { ps -o stat= -p $sleeper | cut -c1; }
killall -s STOP sleep
until [ "$(state)" = T ]; do sleep 0.1; done
skill -CONT -p $sleeper
until [ "$(state)" = S ]; do sleep 0.1; done
killall sleep
wait $sleeper
echo $?
killall sleep 2>&1
exec 7>held 8<held 9<>held
fuser held 2>/dev/null | grep -c $$
lsof -a -p $$ -d 7-9 -Fan | grep -v '^p'
(cd /proc/$$/fd && stat -c %A 7 8 9)
exec 7>&- 8<&- 9>&-
flock lock -c 'flock -n lock true || echo locked'
flock lock sh -c "lslocks -n -o TYPE,MODE | grep -c FLOCK"
nohup sh -c 'kill -HUP $$; echo survived' 2>/dev/null | cat
timeout -s INT 0.3 sleep 9
echo $?
# Files.
fallocate -l 1M space
fallocate -p -o 256K -l 512K space
fallocate -d space
stat -c %s space
dd if=/dev/zero of=sparse bs=1k seek=1023 count=1 2>/dev/null
cmp sparse space && echo equal
namei -m /tmp/sparse | tail -n 1
findmnt -n -o FSTYPE,TARGET /proc
hardlink -q -t . && stat -c %h sparse space
mcookie | wc -c
uuidgen -s -n @dns -N example.org
cal 2 2024 | sed 's/ *$//'
echo abc | rev
printf 'a:1\nbb:22\n' | column -t -s :
echo hex | hexdump -C
getopt -o ab: -l long: -- -a -b 1 --long=2 rest
printf 'abc\nabd\nb\n' >words
look ab words
logger -s -t me said 2>&1 | sed 's/^<[0-9]*>.*me/me/'
# System V's objects.
ipcmk -M 4096 >/dev/null
ipcmk -Q >/dev/null
ipcmk -S 3 >/dev/null
ipcs | grep -c 0x
ipcs -l | grep -c max
ipcrm -a
ipcs | grep -c 0x
# The system.
free | wc -l
vmstat | wc -l
vmstat -s | wc -l
uptime | grep -c load
w -h | wc -l
sysctl -n kernel.ostype
hostname skink && hostname && uname -n
# Users.
for kind in auth account password session; do echo "$kind required pam_unix.so" >/etc/pam.d/common-$kind; done
echo 'audio:x:29:' >>/etc/group
touch /etc/shadow
mkdir -p /var/mail
useradd -m -s /bin/sh -u 1234 walker && id walker && stat -c %U /home/walker
su walker -c 'id -un; echo ~; ls -A | wc -l'
echo walker:secret | chpasswd
usermod -aG audio walker
id -nG walker
passwd -S walker | cut -d' ' -f1,2
runuser -u walker -- sh -c 'id -u; kill -0 1 2>&1'
userdel -r walker 2>/dev/null
id walker 2>&1
exit 0
