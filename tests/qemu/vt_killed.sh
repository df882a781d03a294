#: screen
#: functions dying
#: timeout 600
# Terminals that processes switch (VT_SETMODE), while console, tty and pm die after their k-th message: each signal comes, each switch happens.
chvt 1
vt >/tmp/undisturbed
tail -n 1 /tmp/undisturbed
switch() {
    chvt 1
    vt >/tmp/disturbed
    cmp /tmp/undisturbed /tmp/disturbed || { echo "$service after $k:"; diff /tmp/undisturbed /tmp/disturbed; }
}
for service in console tty pm; do
    for k in $(counts 1 4 11 27); do dies $service $k switch; done
done
# A program that is killed gives the screen back, also when it is of no foreground group of the terminal.
graphics </dev/tty3 &
until graphics modes </dev/tty3 | grep -q 'screen 1, keyboard 4'; do sleep 0.05; done
kill -9 $!
until graphics modes </dev/tty3 | grep 'screen 0, keyboard 3'; do sleep 0.05; done
