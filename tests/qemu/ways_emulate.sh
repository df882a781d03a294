#: system emulate
# All drivers reach their ports by instructions that the kernel carries out: the clock is read, the console prints, and no port is refused.
hwclock -r >/dev/null && echo clock is read
seq 1 500 >/dev/console && echo console prints
dmesg | grep 'denied ('
service status rtc | grep -q up && service status uart | grep -q up && echo drivers are up
