# loadkeys and dumpkeys: the keymap, function keys and accents as they are first, a keymap of another country, and what keys send then.
#: package kbd,coreutils
#: screen
chvt 2
# Linux forgets the settings of a terminal that nobody has open.
exec 9<>/dev/tty2
stty raw -echo <&9
tables() { dumpkeys -C /dev/tty2 "$@" 2>&1; }
tables >/tmp/first
cat /tmp/first
tables --keys-only --full-table --numeric | sha256sum
cat >/tmp/map <<'END'
charset "iso-8859-1"
keymaps 0-2,4-6,8,12,64
keycode 3 = two quotedbl twosuperior
keycode 13 = dead_acute dead_grave
keycode 26 = udiaeresis Udiaeresis
keycode 40 = adiaeresis Adiaeresis
keycode 18 = +e +E U+20ac
keycode 21 = +z +Z
keycode 44 = +y +Y
keycode 41 = Compose
keycode 59 = F1
keycode 60 = F60
keycode 61 = Alt_Lock
altgr keycode 16 = at
string F1 = "first"
string F60 = "a string of its own"
compose '"' 'g' to U+00ff
compose '`' 'e' to 'x'
END
loadkeys -C /dev/tty2 /tmp/map 2>&1
tables | diff /tmp/first - | grep '^[-+]' | grep -v -e '^-compose' -e '^---' -e '^+++'
# sent NAME: what the keys of this name send, up to a q.
sent() {
    echo "$1" >&2
    while byte=$(dd bs=1 count=1 status=none | od -An -tx1) && printf '%s' "$byte" && [ "$byte" != ' 71' ]; do :; done <&9
    echo
}
sent "characters"
sent "accents"
sent "strings"
sent "digits"
echo 'keycode 3 = nothing at all' | loadkeys -C /dev/tty2 2>&1 | head -n 1
loadkeys -C /dev/tty2 --clearstring --clearcompose </dev/null 2>&1
tables --funcs-only
tables --compose-only
