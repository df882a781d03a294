# Processes of M3-IPC are killed, or bound for another node, while pm or m3ipc dies at its k-th message since the program began: those who wait
# are told, each process is waited for once, its slot is free again, and bindings stay. Here a sample; the full form goes through every k up to 200.
#: system deaths
#: timeout 900
most=200 step=23
[ -z "${SKINK_DEEP:-}" ] || step=1
for service in pm m3ipc; do
    k=1 tried=0
    while [ $k -le $most ]; do
        for name in test_kill test_kill2 test_rmtbind; do
            service inject $service kill-after $k
            /opt/$name > /tmp/shown 2>&1
            service inject $service kill-after 0
            cmp -s /tmp/shown /opt/$name.expect || { echo "$name: $service killed at $k:"; cat /tmp/shown; }
            /opt/end_node > /dev/null 2>&1
        done
        k=$((k + step)) tried=$((tried + 1))
    done
    [ $tried -gt 8 ] && echo "as ever while $service dies"
done
