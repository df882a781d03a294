#: system systask
# The drivers on the long way: the console prints this, the clock is read, and none of their ports is refused.
hwclock -r >/dev/null && echo clock is read
head -c 20000 /dev/zero | tr '\0' '.' | fold -w 79 >/dev/console && echo console prints
dmesg | grep 'denied ('
service list | grep -c 'up  *0 ' >/dev/null && echo nobody died
