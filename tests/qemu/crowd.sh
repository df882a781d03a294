#: timeout 600
# One user takes all that he can get of what vfs keeps for programs. Meanwhile the superuser's pipes and files work, no service dies, and
# nothing of it is kept afterwards.
service status | grep '^vfs' >/tmp/before
mkfifo /tmp/end
for what in pipes vectors polls; do
    rm -f /tmp/crowded
    crowd $what </tmp/end &
    exec 9>/tmp/end
    while [ ! -e /tmp/crowded ]; do sleep 1; done
    echo $what
    (sleep 1; echo late) | cat
    seq 20000 | sort -rn | head -n 1
    echo file >/tmp/file && cat /tmp/file && ls /bin | grep -c '^sh$'
    exec 9>&-
    wait
done
crowd pipes </dev/null
wait
(sleep 1; echo after) | cat
service status | grep '^vfs' | diff -q - /tmp/before >/dev/null || service status
