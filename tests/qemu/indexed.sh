#: timeout 600
# Directories of thousands of names, on the disk, and in memory, where they have indexes; then one on the disk that grows beyond its first block while
# ext2 is killed after its k-th message. What is left of it is checked after the run.
directories /root 1000 3000 > /dev/null && echo grown
directories /dev/shm 1000 3000 > /dev/null && echo grown in memory
mkdir /root/d && cd /root/d
i=0
for k in 1 2 3 5 8 13 21 34 55 89; do
    service inject ext2 kill-after $k
    n=0
    while [ $n -lt 60 ]; do
        : > "a name of some length with the number $i"
        i=$((i + 1))
        n=$((n + 1))
    done
done
ls | wc -l
rm ./*[05]
ls | wc -l
find . -type f | wc -l
