# tty, and then vfs, is killed after its k-th message while tmux runs a shell on one pseudo-terminal and shows it on another, which is
# a window of a second tmux. Nobody sees a hang-up, and every line that was printed or typed is there.
#: package tmux,ncurses-base,libc-bin
#: timeout 900
export LC_ALL=C.UTF-8 TERM=screen PS1='> '
cd /tmp
cat >conf <<'END'
set -g status off
set -g default-command sh
set -g history-limit 5000
END
inner() { tmux -L inner -f conf "$@"; }
outer() { tmux -L outer -f conf "$@"; }
# shows SIDE TEXT: waits until that tmux shows a line with the text.
shows() { until "$1" capture-pane -p | grep -q -- "$2"; do sleep 0.1; done; }

inner new-session -d -s work -x 80 -y 24
outer new-session -d -s look -x 80 -y 24 'TMUX= tmux -L inner attach -t work; echo "client $?" >client'
shows outer '^>'
for k in 1 2 3 5 8 13 21 34 55 89 144; do
    for service in tty vfs; do
        inner clear-history
        service inject $service kill-after $k
        outer send-keys "clear; seq 1000; echo round $k $service; tmux wait-for -S done" Enter
        inner wait-for done
        shows outer "^round $k $service"
        inner capture-pane -p -S - | grep '^[0-9]' | tail -n 900 | sha256sum
    done
done
inner list-clients | wc -l
outer send-keys 'exit' Enter
until [ -e client ]; do sleep 0.1; done
cat client
until ! outer has-session 2>/dev/null; do sleep 0.1; done
echo ended
