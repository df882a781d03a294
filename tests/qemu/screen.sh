#: screen
#: functions dying
#: timeout 900
# The console: a shell on the first terminal, keys to the second one (Alt-F2), and each of the services between keyboard and screen killed after its
# k-th message while text is typed. Each character arrives once and in order, and the screen shows what it would show otherwise.
until grep -q '# ' /dev/vcs1; do sleep 0.1; done
settled /tmp/first
stty -F /dev/tty1 size
fold -w 160 /dev/vcs1 | sed 's/ *$//' | grep . | grep -A9 '^Skink\. '
head -c 4 /dev/vcsa1 | od -An -tu1
setsid -c sh -c 'cat >>/tmp/typed' </dev/tty2 >/dev/tty2 2>&1 &
rounds=0
shown() { until cmp -s /dev/vcs /dev/vcs$1; do sleep 0.05; done; }
# No more keys at a time than the keyboard's controller keeps while nobody takes them.
type_line() {
    echo "second terminal" >&2
    shown 2
    echo "next line" >&2
    rounds=$((rounds + 1))
    until [ "$(wc -l </tmp/typed)" -ge $rounds ]; do sleep 0.05; done
    echo "first terminal" >&2
    shown 1
}
type_line
# The driver of the screen has little to do.
type_and_ask() { type_line; fbset >/dev/null 2>&1; head -c 1 /dev/fb0 >/dev/null; }
for k in $(counts 1 2 5 14); do
    for service in console framebuffer input ps2 tty; do dies $service $k type_and_ask; done
done
# One line for each text that came: there is one text.
sort /tmp/typed | uniq -c | awk '{ $1 = ""; print }'
sed 's/.\{160\}/&\n/g' /dev/vcs2 | sed 's/ *$//' | grep . | sort -u
[ "$(wc -l </tmp/typed)" = $rounds ] && echo "each once"
# A program that is killed gives screen and keyboard back when its shell is in the foreground again.
setsid -c sh -c 'set -m; graphics; graphics modes >/tmp/after; exec sleep 1000' </dev/tty3 >/dev/tty3 2>/dev/null &
until graphics modes </dev/tty3 | grep -q 'screen 1, keyboard 4'; do sleep 0.05; done
service kill tty
killall -9 graphics
until grep -q . /tmp/after; do sleep 0.05; done
until graphics modes </dev/tty3 | grep 'screen 0, keyboard 3'; do sleep 0.05; done
# The other terminal has another picture, and the first one that of the beginning.
chvt 2
settled /tmp/second
! cmp -s /tmp/first /tmp/second || echo "both terminals have one picture"
chvt 1
until cmp -s /tmp/first /dev/fb0; do sleep 0.1; done
cat >/out/picture </dev/fb0
