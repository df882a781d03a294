#: timeout 1200
# vfs, the file systems and vm die at chosen messages while programs share mapped files, memory and semaphores. They notice nothing.
mkdir /tmp/files
stressed() {
    stress "$1" 60 >/tmp/output
    test "$(cat /tmp/output)" = 'as written, file the same' || { echo "$k: $1"; cat /tmp/output; }
}
messages='2 13 55'
[ -z "${SKINK_DEEP:-}" ] || messages='1 2 3 5 8 13 21 55'
for k in $messages; do
    for name in vfs ext2 tmpfs; do
        folder=/tmp/files
        test $name = tmpfs && folder=/dev/shm
        service inject $name kill-after $k
        shared $folder >/tmp/output
        cmp /tmp/output /usr/share/shared.expect || echo "$name $k: $folder"
        named >/tmp/output
        cmp /tmp/output /usr/share/named.expect || echo "$name $k: named"
    done
    # Many processes at once, each with lines of its own in every page.
    service inject vfs kill-after $((k * 7))
    stressed /tmp/files/lines
    service inject tmpfs kill-after $((k * 7))
    stressed /dev/shm/lines
    service inject vm kill-after $((k * 20))
    shared /tmp/files >/tmp/output
    cmp /tmp/output /usr/share/shared.expect || echo "vm $k"
    # What a mapping has written is there whoever died.
    cmp /tmp/files/true /bin/true && cmp /dev/shm/true /bin/true || echo "$k: lost"
done
service list | awk '$1 == "vfs" || $1 == "ext2" || $1 == "tmpfs" { print $1, ($3 > 0) }'
