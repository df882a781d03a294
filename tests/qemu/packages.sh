# Debian's packages in the root: their programs run, dpkg finds every file whole, and runs the packages' scripts.
#: package hello,bc,lua5.4,dpkg
#: timeout 900
hello
echo '2^100' | bc
lua5.4 -e 'print(_VERSION)'

# busybox has a bc too: scripts and the console's shell, which reads /etc/profile, run the package's.
echo 'bc --version' >/tmp/typed
bc --version | grep -c 'Free Software'
ash -lc '. /tmp/typed' | grep -c 'Free Software'

# What only root may give a file.
stat -c '%a %U %G %n' /usr/bin/su /sbin/unix_chkpwd /var/local /tmp
readlink /bin /lib64
# Init is busybox's, whatever packages bring.
readlink /sbin/init

dpkg --verify && echo 'every file is whole'
export DEBIAN_FRONTEND=noninteractive
dpkg --configure --pending >/tmp/configured || tail -n 5 /tmp/configured
dpkg --verify && echo 'every file is whole'
dpkg-query --show --showformat '${db:Status-Status}\n' | sort -u
# The scripts chose who is awk, and which libraries there are.
awk -W version 2>&1 | sed 's/ .*//;q'
ldconfig -p | sed -n 's/.*\(libc\.so\.6\) .*=> /\1 /p'
