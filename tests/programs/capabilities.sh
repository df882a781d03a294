# Capabilities by setpriv, capsh, getpcaps, setcap and getcap: what a process has, keeps when its ids change or it executes something, and is
# refused without. Containers lack CAP_SYS_RESOURCE: so everything here runs without it, on Skink as on Linux.
#: package bash,procps,util-linux,libcap2-bin,coreutils,grep,sed
cat >/tmp/body <<'END'
exec 2>&1
umask 022
echo secret >/tmp/secret && chmod 600 /tmp/secret
sets() { grep ^Cap /proc/self/status | tr '\n' ' '; echo; }
echo "== as root"
sets
capsh --print | grep -v '^Guessed'
capsh --decode=00000000a80425fb
getpcaps $$ | sed 's/^[0-9]*/PID/'
echo "== setpriv"
setpriv --dump
setpriv --bounding-set=-all,+chown,+kill grep ^Cap /proc/self/status
setpriv --inh-caps=-all,+chown,+net_raw grep ^Cap /proc/self/status
setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c 'id; grep ^Cap /proc/self/status; cat /tmp/secret | wc -l'
setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override sh -c \
    'id; grep ^Cap /proc/self/status; wc -l </tmp/secret >/dev/null && echo "reads shadow"; chown nobody /tmp/secret; kill -0 1 && echo kills'
cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id
setpriv --reuid=nobody --clear-groups /tmp/id -un
setpriv --no-new-privs --reuid=nobody --clear-groups /tmp/id -un
setpriv --securebits=+noroot,+noroot_locked setpriv --dump | grep -i secure
setpriv --ambient-caps=+kill true
setpriv --bounding-set=-all setpriv --bounding-set=+kill true
echo "== capsh"
capsh --drop=cap_chown,cap_kill --print | grep -E '^(Current|Bounding)'
capsh --drop=cap_chown -- -c 'touch /tmp/f && chown nobody /tmp/f; rm /tmp/f'
capsh --caps=cap_setuid,cap_setgid,cap_setpcap,cap_kill=ep --keep=1 --user=nobody --caps=cap_kill=eip --addamb=cap_kill -- -c 'id -un; grep ^Cap /proc/self/status'
capsh --secbits=0x2f --print | grep -E '^( secure|Secure)'
capsh --inh=cap_chown --has-i=cap_chown --has-p=cap_kill && echo has
capsh --has-b=cap_sys_resource || echo "not bounded"
capsh --noamb --has-no-new-privs || echo none
capsh --mode=NOPRIV --print | grep -E '^(Current|Bounding|Current IAB)'
capsh --mode=NOPRIV -- -c '/tmp/id -un; cat /tmp/secret | wc -l'
echo "== without one"
without() { what=$1; shift; capsh --drop="cap_$what" -- -c "$*" || echo "$what: failed"; }
without sys_chroot 'chroot / true'
without mknod 'mknod /tmp/null c 1 3'
without sys_admin 'mount -t tmpfs none /mnt; hostname other'
without fowner 'touch /tmp/f; chown nobody /tmp/f; chmod 600 /tmp/f; rm /tmp/f'
without setuid 'setpriv --reuid=nobody true'
without setgid 'setpriv --regid=nogroup --clear-groups true'
without sys_nice 'nice -n -5 true'
without sys_time 'date -s @1000000000 >/dev/null'
without setfcap 'touch /tmp/f; setcap cap_kill=ep /tmp/f; rm /tmp/f'
sleep 100 & sleeper=$!
setpriv --reuid=nobody --clear-groups /bin/kill $sleeper 2>&1 | sed 's/[0-9][0-9]*/PID/'
setpriv --reuid=nobody --clear-groups --inh-caps=+kill --ambient-caps=+kill /bin/kill $sleeper
{ wait $sleeper; } 2>/dev/null
echo "killed $?"
echo "== files"
mkdir /root/caps && cd /root/caps && chmod 755 /root /root/caps
cp /usr/bin/id mine && cp /bin/cat reader && cp /bin/grep look
getcap -r .
setcap cap_dac_read_search=ep reader && setcap cap_kill,cap_chown=p look
getcap reader look mine
setcap -v cap_kill=ep look
as() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
as ./reader /tmp/secret | grep -c .
as ./look ^Cap /proc/self/status
as setpriv --no-new-privs ./reader /tmp/secret | wc -l
capsh --drop=cap_dac_read_search -- -c 'setpriv --reuid=nobody --clear-groups ./reader /tmp/secret'
cp -a reader copied && getcap copied reader
cp reader plain && getcap plain
echo >>look && getcap look
setcap -r reader && getcap reader
setcap cap_nonsense=ep mine 2>&1 | head -1
as setcap cap_kill=ep mine
chmod 4755 mine && as ./mine -u
rm /tmp/secret /tmp/id
cd / && rm -r /root/caps
END
setpriv --bounding-set=-sys_resource sh /tmp/body </dev/null
