#: timeout 1200
# vfs is killed after its k-th message while programs copy files, use pipes, locks, FIFOs, positions and directories, and execute programs.
# They notice nothing: vfs's successor goes on where it was.
cd /tmp
exec 5<>kept
mkdir -p here && cd here
mkfifo fifo
umask 027
for k in 1 2 3 5 8 13 21 34 55 89; do
    service inject vfs kill-after $k
    # Positions, appends, an open file without a name.
    echo line $k >>log
    echo kept $k >&5
    exec 6<>nameless && rm nameless && echo text >&6
    # Data, by programs that are executed and that map their libraries.
    cp /bin/busybox copy && cmp /bin/busybox copy || echo "$k: copy"
    # Pipes with more in them than they hold, writers and readers that wait.
    test "$(seq 1 20000 | sort -rn | tail -n 1)" = 1 || echo "$k: pipeline"
    test "$( (sleep 0.1; echo late) | cat)" = late || echo "$k: waiting reader"
    test "$(yes | head -c 200000 | wc -c)" = 200000 || echo "$k: broken pipe"
    # Names, each change once.
    mkdir d && echo x >d/a && mv d/a d/b && ln d/b d/c && ln -s b d/l && test "$(cat d/l)" = x &&
        rm d/a 2>/dev/null || { rm d/b d/c d/l && rmdir d; } || echo "$k: names"
    # A lock that another waits for.
    (flock 7; : >held; sleep 0.1; echo first >>order) 7>lock &
    until [ -e held ]; do sleep 0.01; done
    (flock 7; echo second >>order) 7>lock
    wait
    rm held
    # Both ends of a FIFO meet.
    echo through >fifo &
    test "$(cat fifo)" = through || echo "$k: FIFO"
    exec 6>&-
done
pwd
umask
wc -l log | tr -s ' '
uniq order | wc -l | tr -s ' '
exec 5>&-
cat ../kept | tail -n 1
ls -l log | cut -c1-10
ls
