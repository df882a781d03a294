# htop on a terminal: it finds processes, shows them as a tree, gives them signals and another niceness, and keeps its settings.
#: package htop,tmux,coreutils,libc-bin,ncurses-base
#: timeout 600
export LC_ALL=C.UTF-8 TERM=screen HOME=/tmp
cd /tmp
# htop shows the text of this script too, as an argument of the shell, and the arguments of each grep: the names that are looked for are
# in neither.
one=$((12340 + 5)) two=$((23450 + 6))
sleep $one &
first=$!
two=$two sh -c 'sleep $two; echo the sleep has ended' &
cat >conf <<'END'
set -g status off
set -g default-command sh
END
t() { tmux -L test -f conf "$@"; }
# lines TEXT: how many lines of the screen have it.
lines() { echo "$1" >pattern && t capture-pane -p -t top | grep -c -f pattern; }
# shows TEXT: waits until the screen has it.
shows() { until [ "$(lines "$1")" != 0 ]; do sleep 0.2; done; }
gone() { until [ "$(lines "$1")" = 0 ]; do sleep 0.2; done; }

t new-session -d -s top -x 120 -y 40 'htop --no-color -d 5; echo "htop $?" >status; tmux wait-for -S ended'
shows 'F10Quit'
shows 'Tasks:'
t capture-pane -p -t top | sed -n 's/^ *\(PID USER.*Command\) *$/\1/p'
t capture-pane -p -t top | tail -n 1

# A filter shows these processes alone; the keys that follow are for the one.
t send-keys -t top F4 $one Enter
gone 'htop --no-color'
shows "sleep $one"
lines 'sleep [0-9]'
t send-keys -t top Home F8 F8
until [ "$(cut -d' ' -f19 /proc/$first/stat)" = 2 ]; do sleep 0.1; done
echo nice
t send-keys -t top F9
shows '15 SIGTERM'
t send-keys -t top Enter
wait "$first"
echo "status $?"
gone "sleep $one *$"

# The tree, without a filter: the sleep is below its shell.
t send-keys -t top F4 BSpace BSpace BSpace BSpace BSpace BSpace BSpace BSpace BSpace BSpace BSpace BSpace Enter F5
shows "─ sleep $two"
lines "─ sleep $two"
t send-keys -t top F3 $two Enter
t send-keys -t top F9 9
shows 'SIGKILL'
t send-keys -t top Enter
wait
t send-keys -t top F2
shows 'Display options'
t send-keys -t top F10 q
t wait-for ended
cat status
sed -n '/^tree_view=/p;/^fields=/p;/^sort_key=/p' .config/htop/htoprc
