# A shell on the first terminal of the screen is typed to, and what it shows is read from /dev/vcs1.
stty -F /dev/tty1 size
(PS1='> ' setsid sh -i </dev/tty1 >/dev/tty1 2>&1 &)
shows() { until grep -q -- "$1" /dev/vcs1; do sleep 0.1; done; }
shows '> '
echo "type now" >&2
shows '^.*Skink" .*Hello, Skink'
fold -w 80 /dev/vcs1 | sed 's/ *$//' | grep .
head -c 4 /dev/vcsa1 | od -An -tu1
