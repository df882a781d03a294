#: screen
#: functions dying
# Shift-PageUp shows lines that have left the screen, also after a death of the console, and Shift-PageDown the present ones again.
changed() { while cmp -s /dev/fb0 "$1"; do sleep 0.05; done; }
until grep -q '# ' /dev/vcs1; do sleep 0.1; done
# On the second terminal the picture that is expected: lines 27 to 76.
printf '\033[?25l%s' "$(seq 76)" >/dev/tty2
chvt 2
settled /tmp/expected
chvt 1
seq 100 >/dev/tty1
settled /tmp/present
echo "look back" >&2
changed /tmp/present
settled /tmp/past
cmp /tmp/past /tmp/expected && echo "the past"
before=$(restarts console)
service kill console
until [ "$(restarts console)" -gt "$before" ]; do sleep 0.05; done
settled /tmp/past
cmp /tmp/past /tmp/expected && echo "still the past"
echo "look forward" >&2
changed /tmp/past
settled /tmp/now
cmp /tmp/now /tmp/present && echo "the present"
# What is written shows the present.
echo "look back again" >&2
changed /tmp/present
echo >/dev/tty1
changed /tmp/expected
echo "no longer the past"
