#: system c_trials
# Every function of the C library, as one who may and as one who may not. The service says what went wrong.
until dmesg | grep -q '^c_trials: born again'; do sleep 0.1; done
dmesg | sed -n 's/^c_trials: //p' | grep -v -e ' denied' -e 'no such operation'
# What was refused is in the log (the first sixteen refusals of each incarnation).
for way in systask hal; do
    dmesg | grep -q "^c_trials: port 0x60 denied ($way)" && echo "$way"
done
service status c_trials | grep -e state -e restarts
