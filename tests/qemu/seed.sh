# A seed for the random numbers outlives the machine: the shutdown leaves one that only root can read, and the next boot takes it. Anybody
# may write to /dev/urandom.
for shutdown in 1 2; do
    /etc/rc.shutdown
    stat -c '%a %s' /var/lib/random-seed
    cp /var/lib/random-seed /tmp/seed.$shutdown
done
cmp -s /tmp/seed.1 /tmp/seed.2 || echo the seeds differ
grep -q '^::shutdown:/etc/rc.shutdown' /etc/inittab && echo the shutdown leaves one
grep -q 'cat $seed >/dev/urandom' /etc/rc && echo the boot takes it
su -s /bin/sh nobody -c 'head -c 5000 /dev/zero >/dev/urandom' && echo anybody may stir
