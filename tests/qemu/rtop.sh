# The view of real-time processes: before the clock runs, and with a periodic process; all but the figures of time.
rtop -1 | tail -n 1
sleep 2 | rt_periodic >/tmp/figures &
until rtop -1 | grep -q rt_periodic; do sleep 0.1; done
rtop -1 | awk '/rt_periodic/ { print $2, $3, $4, $5, $6 }'
rtop -1 | head -n 1
rtop -2
wait
rtop -1 | head -n 1
