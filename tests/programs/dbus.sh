# A message bus: its daemon knows who calls by the sockets' peers, hands out names, passes calls, replies and signals.
#: package dbus,libglib2.0-bin
cat >/tmp/session <<'END'
call() { dbus-send --session --print-reply=literal --dest=org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus."$@"; echo; }
call ListNames | tr -s ' ' '\n' | sort
call GetConnectionUnixUser string:org.freedesktop.DBus
call NameHasOwner string:no.body
gdbus call --session --dest no.body --object-path / --method no.body.Asks 2>&1 | sed 's/.*DBus.Error/error/'
# One listens to signals, the other emits them.
dbus-monitor --session "interface='org.skink.Test'" >/tmp/heard &
listener=$!
until grep -q NameAcquired /tmp/heard; do sleep 0.1; done
for number in 1 2 3; do
    gdbus emit --session --object-path /org/skink --signal org.skink.Test.Happened "$number" "'number $number'"
done
until grep -q 'number 3' /tmp/heard; do sleep 0.1; done
kill $listener
sed -n '/Happened/,$p' /tmp/heard | sed 's/.*interface/interface/'
# Many clients at once.
for client in 1 2 3 4 5 6 7 8; do call GetId >/tmp/id.$client & done
for client in 1 2 3 4 5 6 7 8; do until [ -s /tmp/id.$client ]; do sleep 0.1; done; done
sleep 1
cat /tmp/id.* | sort -u | grep -c .
END
dbus-run-session -- sh /tmp/session
echo status $?
