# tmux and screen: sessions that outlive the terminals that look at them, windows that are split and resized, and what they show.
#: package tmux,screen,expect,coreutils,procps,libc-bin,ncurses-base
#: timeout 600
export LC_ALL=C.UTF-8 TERM=vt100 HOME=/tmp
cd /tmp
cat >conf <<'END'
set -g status-interval 0
set -g assume-paste-time 0
set -g default-terminal screen
set -g default-command sh
set -g update-environment ''
set -g automatic-rename off
END
export PS1='ready> '
t() { tmux -L test -f conf "$@"; }
# shows PANE TEXT: waits until the pane shows a line with the text.
shows() { until t capture-pane -p -t "$1" | grep -q "$2"; do sleep 0.1; done; }

t new-session -d -s work -x 80 -y 24
shows work.0 ready
t send-keys -t work 'stty size; echo $((6 * 7)) in tmux; tmux wait-for -S said' Enter
t wait-for said
t split-window -h -t work
t split-window -v -t work.1
t list-panes -t work -F '#{pane_index} #{pane_width}x#{pane_height} #{pane_left},#{pane_top}'
t resize-pane -t work.0 -x 50
t list-panes -t work -F '#{pane_index} #{pane_width}x#{pane_height}'
shows work.2 ready
t send-keys -t work.2 'until stty size | grep "11 29"; do sleep 0.1; done; seq 5; tmux wait-for -S said' Enter
t wait-for said
t capture-pane -p -t work.2 | grep '^[0-9]'
t capture-pane -p -t work.0 | grep '^[0-9]'

# Text goes from pane to pane by a buffer, and all panes hear what is typed into one.
t set-buffer 'echo pasted text
'
t paste-buffer -t work.1
shows work.1 '^pasted text'
t set-option -w -t work synchronize-panes on
t send-keys -t work.0 'clear; echo all of us' Enter
for pane in 0 1 2; do
    shows work.$pane '^all of us'
done
t set-option -w -t work synchronize-panes off

# Clients attach on terminals of their own, type, and go; a client's size is the window's.
cat >attach.exp <<'END'
log_user 0
set timeout 100
proc wait_for {text} {
    expect {
        -ex $text {}
        timeout { puts "no $text"; exit 1 }
        eof { puts "end before $text"; exit 1 }
    }
}
spawn -noecho sh -c "stty rows 30 cols 100; exec tmux -L test attach -t work"
wait_for "work"
send "\002z"; send "until stty size | grep '29 100' >size; do sleep 0.1; done; tmux wait-for -S typed\r"
exec tmux -L test wait-for typed
exec cat size >@stdout
exec stty -F $spawn_out(slave,name) rows 20 cols 60
while {[exec tmux -L test display -p -t work "#{window_width}"] != 60} { after 100 }
send "\002c"; while {[llength [split [exec tmux -L test list-windows -t work] "\n"]] != 2} { after 100 }
exec tmux -L test rename-window -t work second
send "\002d"; wait_for "detached"
expect eof
puts "client [lindex [wait] 3]"
END
expect attach.exp
t list-windows -t work -F '#{window_index} #{window_name} #{window_panes} #{window_width}x#{window_height}'
t list-clients | wc -l

# A flood of lines passes, and the history keeps the last of them.
t send-keys -t work:0.1 'seq 20000; tmux wait-for -S done' Enter
t wait-for done
t capture-pane -p -S -1000 -t work:0.1 | grep '^[0-9][0-9]*$' | sed -n '1p;$p' | cut -c1-2
t kill-pane -t work:0.2
t send-keys -t work:second 'exit' Enter
until [ "$(t list-windows -t work | wc -l)" = 1 ]; do sleep 0.1; done
t list-panes -t work -F '#{pane_index} #{pane_dead}'
t kill-server
while pgrep -x tmux >/dev/null; do sleep 0.1; done
t has-session 2>/dev/null || echo no session

# screen: a session without a terminal, two windows, a picture of each, detaching and going back.
mkdir -p /run/screen && chmod 777 /run/screen
# sc COMMAND...: gives the session a command, as soon as it takes one, for the window $window.
sc() { until screen -S kept -p $window -X "$@" >/dev/null; do sleep 0.1; done; }
# pictured TEXT: waits until the shown window has a line with the text.
pictured() { until sc hardcopy /tmp/picture && grep -qs "$1" picture; do sleep 0.2; done; }
window=0
screen -d -m -S kept sh
pictured 'ready>'
sc stuff 'echo $((7 * 9)); tty | tr -d 0-9; echo on the screen
'
pictured '^on the screen'
grep -v '^$\|ready>' picture
sc screen -t other sh
window=1
pictured 'ready>'
sc stuff 'clear; echo another window
'
pictured '^another window'
window=0
sc select 0
pictured '^on the screen'
cat >attach.exp <<'END'
log_user 0
set timeout 100
spawn -noecho sh -c "stty rows 30 cols 100; exec screen -r kept -p 0"
expect "on the screen"
send "clear; stty size; exit 6\r"; expect "30 100"; expect "another window"
send "\001d"; expect "detached"
expect eof
puts "screen [lindex [wait] 3]"
END
expect attach.exp
screen -ls | grep -c Detached
window=1
sc quit
until ! screen -ls >/dev/null; do sleep 0.1; done
echo ended
