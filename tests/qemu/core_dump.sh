# A program with three threads dies of a signal and leaves a core dump, which core_dump.check reads. Who has no limit for it, another signal, or
# other rights leaves none; pm, vfs and vm may die meanwhile.
cd /out
crashing 11 2>/dev/null; echo "limit 0: $?"
ls core 2>/dev/null
ulimit -c unlimited
crashing 15 2>/dev/null; echo "SIGTERM: $?"
ls core 2>/dev/null
crashing 11 2>/dev/null; echo "SIGSEGV: $?"
stat -c '%n %a %U' core && mv core segv
crashing 6 2>/dev/null; echo "SIGABRT: $?"
mv core abort
ulimit -c 80
crashing 11 2>/dev/null; echo "limit 40 KiB: $?"
stat -c '%s' core
ulimit -c unlimited
# Of another user, and in a directory that he may not write to.
mkdir -m 777 /tmp/open && cd /tmp/open
su nobody -s /bin/sh -c 'ulimit -c unlimited; crashing 11 2>/dev/null; stat -c "%n %a %U" core; cd /root 2>/dev/null || cd /; crashing 11 2>/dev/null; ls core 2>/dev/null'
cp /bin/crashing /tmp/open/setuid && chmod 4755 /tmp/open/setuid && rm core
su nobody -s /bin/sh -c 'ulimit -c unlimited; /tmp/open/setuid 11 2>/dev/null; ls core 2>/dev/null'
for service in pm vfs vm ext2; do
    for k in 20 60 150; do
        service inject $service kill-after $k
        crashing 11 2>/dev/null
        [ $? = 139 ] || echo "$service $k: a wrong status"
    done
    rm -f core
done
crashing 11 2>/dev/null; mv core /out/after
# Nobody is left.
ps | grep -c '[c]oredump'
true
