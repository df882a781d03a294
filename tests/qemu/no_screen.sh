# A machine without a screen: its files say so, and terminals are there all the same, with what was written and its bytes once, whatever becomes of console.
cd /sys/class/graphics
for file in fb0/name fb0/rotate fb0/modes fb0/mode fb0/stride fb0/dev fbcon/rotate; do cat $file 2>&1; done
for file in fb0/rotate fb0/virtual_size; do sh -c "echo 1,1 >$file" 2>&1; done
head -c 1 /dev/fb0 2>&1
sh -c "echo x >/dev/fb0" 2>&1
stty -F /dev/tty2 size
echo "seen by nobody" >/dev/tty2
service kill console
chvt 2
head -c 14 /dev/vcs
echo
service list | while read -r name state rest; do case $name in console | framebuffer) echo "$name $state" ;; esac done
