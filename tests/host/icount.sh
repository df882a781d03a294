#: timeout 300
# Under --icount the same command takes the same way, tick by tick.
for run in 1 2; do
    "$SKINK" exec --icount --trace trace.$run 'ls -l /etc | sort' >out.$run
done
cmp out.1 out.2
cmp trace.1 trace.2
