# bubblewrap: bash in a container with its own mounts, host name and users, as root and as an ordinary user, and what neither may do from inside.
# It is recorded without chroot, in which Linux gives nobody users of his own: `sh tests/programs/bubblewrap.sh` as root.
#: package bash,bubblewrap,coreutils,grep,sed,util-linux
cat >/tmp/body <<'END'
exec 2>&1
umask 022
cd /tmp
mkdir -p /tmp/shared && echo outside >/tmp/shared/file && chmod 755 /tmp/shared && chown -R 1000:1000 /tmp/shared
mkdir -p /tmp/secret && chmod 700 /tmp/secret && echo secret >/tmp/secret/file
as_user() { setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all "$@"; }
box() { bwrap --ro-bind / / --dev /dev --tmpfs /tmp --chdir / "$@"; }
inside='
echo "shell $0, directory $PWD"
ls /tmp | wc -l
touch /etc/new 2>&1 | sed "s/^touch: //"
echo text >/tmp/new && cat /tmp/new
for n in 1 2 3; do echo $n; done | while read n; do echo -n "$n "; done; echo
echo one two | { read a b; echo $b $a; }
echo random >/dev/null && head -c 4 /dev/zero | wc -c
ls /dev | tr "\n" " "; echo
grep -c . /proc/self/mountinfo >/dev/null && echo mounts
sed -n "s/^[^ ]* \(\/tmp\) \(tmpfs\) .*/\1 \2/p" /proc/mounts
echo $(cat <(echo substituted))
cd / && cd .. && cd ../.. && pwd
exit 7'
echo "== as root"
box bash -c "$inside"
echo "exit $?"
box --bind /tmp/shared /mnt bash -c 'cat /mnt/file; echo inside >/mnt/file2'
cat /tmp/shared/file2 && rm /tmp/shared/file2
box --ro-bind /tmp/shared/file /etc/hostname cat /etc/hostname
box --unshare-uts --hostname inner uname -n
ls /tmp/body
echo "== as a user"
as_user bwrap --ro-bind / / --dev /dev --tmpfs /tmp --chdir / bash -c "$inside"
echo "exit $?"
user() { as_user bwrap --ro-bind / / --dev /dev --tmpfs /tmp --chdir / "$@"; }
user bash -c 'id -u; id -g; cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups'
user --uid 0 --gid 0 bash -c 'id -u; id -g; echo x >/tmp/mine; stat -c "%u %g" /tmp/mine /etc/passwd'
user --unshare-user --uid 5 --gid 6 bash -c 'id -u; id -g; stat -c "%u %g" /'
user --bind /tmp/shared /mnt bash -c 'stat -c "%u %g" /mnt/file; echo more >>/mnt/file; cat /mnt/file'
user --ro-bind /tmp/shared /mnt bash -c 'echo more >>/mnt/file'
user --unshare-uts --hostname inner uname -n
user --unshare-ipc bash -c 'echo ipc'
echo "== with a filter, by which mkdir fails"
printf '\040\0\0\0\0\0\0\0\025\0\0\001\123\0\0\0\006\0\0\0\001\0\005\0\006\0\0\0\0\0\377\177' >/tmp/filter
user --seccomp 3 bash -c 'mkdir /tmp/made; touch /tmp/touched && ls /tmp; grep Seccomp: /proc/self/status' 3</tmp/filter
echo "== what the superuser of a container may not do"
user --uid 0 --gid 0 --cap-add ALL --bind /tmp/secret /mnt cat /mnt/file
user --uid 0 --gid 0 --cap-add ALL bash -c '
kill -0 1 && echo kills
chown 7 /tmp && echo chowns
mknod /tmp/disk b 254 0 && echo makes
echo 7 >/proc/sys/kernel/pid_max && echo sets
date -s @1 >/dev/null && echo "sets the clock"
nice -n -5 true 2>/dev/null; echo nice $?
mount -t ext2 /dev/vda /mnt 2>/dev/null || echo "no disk"
setpriv --reuid=1 true' | sed 's/^bash: line [0-9]*: //'
echo "== nothing is left"
cat /tmp/shared/file
grep -c newroot /proc/self/mounts
uname -n >/dev/null && rm -r /tmp/shared /tmp/secret
END
bash /tmp/body
