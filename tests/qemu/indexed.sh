#: timeout 600
#: linux
# Directories of thousands of names, on the disk and in memory, which get indexes as they grow; then one on the disk that grows while ext2 is killed after
# its k-th message. Debian's Linux then finds each name of it by the index, and adds and removes others. The disk is checked after both.
if [ ! -d /root/d ]; then
    directories /root 1000 3000 >/dev/null && echo grown
    directories /dev/shm 1000 3000 >/dev/null && echo grown in memory
    mkdir /root/d && cd /root/d || exit
    i=0
    for k in 1 2 3 5 8 13 21 34 55 89; do
        service inject ext2 kill-after $k
        n=0
        while [ $n -lt 60 ]; do
            : >"a name of some length with the number $i"
            i=$((i + 1))
            n=$((n + 1))
        done
    done
    ls | wc -l
    rm ./*[05]
    ls | wc -l
    find . -type f | wc -l
else
    echo on Linux
    cd /root/d || exit
    find . -type f | wc -l
    i=0
    while [ $i -lt 600 ]; do
        name="a name of some length with the number $i"
        case $i in
            *[05]) [ ! -e "$name" ] || echo "$name is there" ;;
            *) [ -f "$name" ] || echo "$name is missing" ;;
        esac
        : >"another name with the number $i"
        i=$((i + 1))
    done
    ls | wc -l
    rm ./a\ name*7 ./another*3
    ls | wc -l
fi
