# vim, nano and less on terminals of tmux: what they leave in files, and the screens that they show.
#: package vim,nano,less,tmux,libc-bin,ncurses-base,coreutils
#: timeout 600
export LC_ALL=C.UTF-8 TERM=screen HOME=/tmp PS1='ready> '
cd /tmp
seq 300 | sed 's/.*/line & of the text/' >text
cat >conf <<'END'
set -g status off
set -g default-command sh
END
t() { tmux -L test -f conf "$@"; }
type() { t send-keys -t edit "$@"; }
screen() { t capture-pane -p -t edit; }
# shows TEXT: waits until the screen has it.
shows() {
    tries=0
    until screen | grep -q -- "$1"; do
        sleep 0.1
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "no $1 in:"; screen; exit 1; }
    done
}
t new-session -d -s edit -x 80 -y 24
shows 'ready>'

# Vim: an insertion, a macro, a block, a filter, a substitution, undo and redo, a second window, a shell.
type 'vim.basic -N -u NONE -i NONE text' Enter
shows '^line 1 of'
type 'Ofirst line' Enter second Escape
shows '^second'
type ':set report=0 nomore ruler' Enter 'qajyyp:s/line/LINE/' Enter q '3@a' ':echo "done" line(".")' Enter
shows '^done 10'
type 50G0 C-v 10jlld
type ':200,$!sort -r' Enter
shows 'filtered'
type ':%s/of the/in a/g' Enter
shows 'substitutions'
type 100G5dd
shows '5 fewer'
type u
shows '5 more'
type C-r
shows '5 fewer'
type ':new other' Enter 'ia window' Escape ':w' Enter
shows 'written'
type ':r !echo from a shell; stty size </dev/tty' Enter
shows '^24 80'
screen
type ':wq' Enter
type ':echo "lines" line("$")' Enter
shows '^lines [0-9]'
type '/line 77 ' Enter ':echo "at" line(".")' Enter
shows '^at [0-9]'
screen | tail -n 1

# The shell stops it and goes on with it, and a change of size reaches it.
type C-z
shows 'Stopped'
type clear Enter fg Enter
shows '^line 77'
t resize-window -t edit -x 60 -y 15
until grep -qs '^15 60$' size; do
    type ':call writefile([&lines .. " " .. &columns], "size")' Enter
    sleep 0.2
done
cat size
t resize-window -t edit -x 80 -y 24
until grep -qs '^24 80$' size; do
    type ':call writefile([&lines .. " " .. &columns], "size")' Enter
    sleep 0.2
done
type ':w! changed' Enter
until [ -s changed ]; do sleep 0.1; done
type ':q!' Enter
shows '^ready>'
type 'clear; echo left $?' Enter
shows '^left 0'
sha256sum changed
sed -n '1,8p;48,54p;198,203p' changed
cat other

# nano: an insertion, a search with a replacement, cuts and pastes, another name.
type 'clear; nano --ignorercfiles text' Enter
shows '^line 1 of'
type 'by nano' Enter 'C-\'
shows '^Search'
type 'line 2 ' Enter
shows '^Replace with'
type 'row 2 ' Enter
shows 'Replace this instance'
type A
shows 'Replaced'
type C-_
shows 'Enter line number'
type 10 Enter C-k C-k C-u C-u C-u
screen | sed '1d;/^\[/d' | head -n 20
type C-o
shows 'File Name to Write'
type .nano Enter
shows 'DIFFERENT NAME'
type y
shows 'Wrote'
type C-x
shows '^ready>'
sha256sum text.nano
sed -n '1,4p;9,14p' text.nano

# less: a search, a line by its number, a filter, a shell; and a pipe, with the keys from the terminal.
type 'clear; less text' Enter
shows '^line 23 of'
type '/line 77 ' Enter
shows '^line 99 of'
type 200g
shows '^line 222 of'
type '&line 2.5 ' Enter
shows '^line 295 of'
screen | head -n 11
type '&' Enter G
shows '^line 300 of'
type '!echo a shell' Enter
shows '^a shell'
type Enter q
shows '^ready>'
type 'clear; seq 100000 | less' Enter
shows '^23$'
type G
shows '^100000$'
type 50000g
shows '^50022$'
type q
shows '^ready>'
type 'clear; echo left $?' Enter
shows '^left 0'
t kill-server
