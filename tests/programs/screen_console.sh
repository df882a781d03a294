# vim, less, htop and mc on a terminal of the screen, driven by its keyboard: what /dev/vcsa2 shows, characters, attributes and cursor.
#: package vim,less,htop,mc,libcom-err2,libc-bin,ncurses-base,coreutils
#: screen
#: timeout 900
#: memory 1024
export LC_ALL=C.UTF-8 TERM=linux HOME=/tmp PS1='ready> ' MC_SKIN=default
mkdir -p /tmp/top/files/folder /tmp/.config/mc /tmp/.config/htop
cd /tmp/top/files
seq 200 | sed 's/.*/line & of the text/' >text
printf 'int main(void) {\n    /* comment */\n    return "string" != 0;\n}\n' >main.c
dated() { touch -d '2026-01-02 03:04' text main.c folder . ..; }
printf '[Midnight-Commander]\nauto_save_setup=false\nverbose=false\n[Layout]\nmessage_visible=0\nfree_space=false\nhintbar_visible=false\n' >/tmp/.config/mc/ini
screen() { fold -w 160 </dev/vcs2 | sed 's/ *$//'; }
# shows TEXT: waits until the screen has it.
shows() {
    tries=0
    until screen | grep -q -e "$1"; do
        sleep 0.1
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "no $1 in:"; screen; exit 1; }
    done
}
gone() { while screen | grep -q -e "$1"; do sleep 0.1; done; }
# at_rest: nobody but this shell is at work.
at_rest() { read -r _ _ _ running _ </proc/loadavg; [ "${running%/*}" -le 1 ]; }
# settled: waits until nothing changes and nobody is at work; on a busy host half a second is too short for a program to draw anything.
settled() { until cat /dev/vcsa2 >/tmp/last; sleep 0.5; at_rest && cmp -s /tmp/last /dev/vcsa2; do :; done; }
# picture NAME: all of the screen.
picture() {
    settled
    echo "== $1"
    screen | grep .
    head -c 4 /dev/vcsa2 | od -An -tu1
    md5sum </dev/vcsa2
}
# row NUMBER: one row with its attributes.
row() { settled; tail -c +$((5 + $1 * 320)) /dev/vcsa2 | head -c 320 | tee /tmp/row | md5sum; od -An -v -tu1 -w2 /tmp/row | awk '{ printf "%c", $1 } END { print "" }' | sed 's/ *$//'; }

chvt 2
setsid -c sh -c 'sh; echo ended' </dev/tty2 >/dev/tty2 2>&1 &
shows 'ready>'
echo "start vim" >&2
shows 'return "string"'
picture "vim"
echo "change it" >&2
shows '^done'
picture "after changes"
echo "two windows" >&2
shows 'line 77 of'
picture "two windows and a selection"
echo "leave vim" >&2
shows '^left vim'
cat main.c
picture "after vim"

echo "start less" >&2
shows '^line 77 of'
picture "less"
echo "leave less" >&2
shows '^left less'

echo "start htop" >&2
shows 'F10.*Quit'
shows 'PID'
row 49
echo "help of htop" >&2
shows 'Press any key to return'
picture "help of htop"
echo "back to the list" >&2
shows 'F10.*Quit'
echo "leave htop" >&2
shows '^left htop'

dated
echo "start mc" >&2
shows 'main.c'
shows '10.*Quit'
picture "mc"
echo "look into a file" >&2
shows 'give "string"'
picture "viewer of mc"
echo "back to the panels" >&2
shows '5 *Copy'
echo "menu" >&2
shows 'Quick view'
picture "menu of mc"
echo "no menu" >&2
gone 'Quick view'
echo "a dialogue" >&2
shows 'Enter directory name'
picture "a dialogue of mc"
echo "make it" >&2
gone 'Enter directory name'
shows '/made'
echo "leave mc" >&2
shows '^left mc'
ls -d /tmp/top/files/made
