#: timeout 600
# Files of /proc say what system calls say: the output is that of Linux. Then procfs is killed after its k-th message, and nothing is noticed;
# settings that root writes have an effect, and those that nothing would heed are refused.
proc_files /dev/shm
for k in 1 2 3 5 8 13 21 34 55; do
    service inject procfs kill-after $k
    proc_files /dev/shm > /tmp/again
    proc_files /dev/shm | cmp - /tmp/again
done
cd /proc/sys/kernel
echo lizard > hostname
hostname
echo desert > domainname
cat domainname
service kill pm
cat hostname
echo 400 > pid_max
for n in 1 2 3 4 5 6 7 8 9 10; do
    for m in 1 2 3 4 5 6 7 8 9 10; do sh -c 'true'; done
done
sh -c '[ $$ -lt 400 ] && echo ids are below 400'
echo 300 > pid_max
echo 32768 > pid_max
stack() { grep stack /proc/self/maps; }
echo 0 > randomize_va_space
one=$(stack)
[ "$one" = "$(stack)" ] && echo at fixed addresses
echo 2 > randomize_va_space
[ "$one" = "$(stack)" ] || echo at random addresses
echo x > ostype
echo 1 > ../vm/overcommit_memory
mount -t proc none /mnt
cat /mnt/sys/kernel/domainname
umount /mnt
