# Signals, traps, background jobs, wait.
trap 'echo got usr1' USR1
kill -USR1 $$
sh -c 'kill -TERM $$'; echo term $?
sh -c 'kill -KILL $$'; echo kill $?
sh -c 'kill -SEGV $$' 2>/dev/null; echo segv $?
trap '' INT; sh -c 'kill -INT $$; echo ignored is inherited'; trap - INT
sleep 100 & kill $!; wait $! 2>/dev/null; echo sleep $?
(sleep 0.1; exit 3) & wait $!; echo job $?
(trap 'echo child cleans up; exit 4' TERM; while :; do sleep 0.05; done) & sleep 0.3; kill $!; wait $!; echo trapped $?
for i in 1 2 3 4 5; do (exit $i) & pids="$pids $!"; done
for p in $pids; do wait $p; echo waited $?; done
sh -c 'trap "echo bye" EXIT; exit 9'; echo exit $?
timeout 0.2 sleep 10; echo timeout $?
sh -c 'sleep 0.2; kill -CONT $0' $$ & wait; echo continued
mkfifo pipe; (echo through the fifo >pipe) & cat pipe; wait
(while :; do echo x; done) 2>/dev/null | head -n 1
sh -c 'sleep 5 & echo $! >pid; wait' & sleep 0.3; kill -STOP $(cat pid); sleep 0.3; grep -o 'State:.T' /proc/$(cat pid)/status; kill -CONT $(cat pid); kill $(cat pid); wait; echo done
