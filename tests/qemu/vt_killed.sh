#: screen
#: timeout 600
# Terminals that processes switch (VT_SETMODE), while console, tty and pm die after their k-th message: each signal comes, each switch happens.
if [ -z "${SKINK_DEEP:-}" ]; then
    counts='1 4 11 27'
else
    counts=$(seq 200)
fi
restarts() { service list | while read -r name state restarts rest; do [ "$name" != "$1" ] || echo "$restarts"; done; }
chvt 1
vt >/tmp/undisturbed
tail -n 1 /tmp/undisturbed
for service in console tty pm; do
    before=$(restarts $service)
    for k in $counts; do
        service inject $service kill-after $k
        chvt 1
        vt >/tmp/disturbed
        cmp /tmp/undisturbed /tmp/disturbed || { echo "$service after $k:"; diff /tmp/undisturbed /tmp/disturbed; }
    done
    [ "$(restarts $service)" -gt "$before" ] && echo "$service was restarted"
done
# A program that is killed gives the screen back, also when it is of no foreground group of the terminal.
graphics </dev/tty3 &
until graphics modes </dev/tty3 | grep -q 'screen 1, keyboard 4'; do sleep 0.05; done
kill -9 $!
until graphics modes </dev/tty3 | grep 'screen 0, keyboard 3'; do sleep 0.05; done
