# Redis by a local socket: values of each kind, a transaction, a script, a subscriber, a copy on the disk, and the benchmark with pipelines.
#: package redis-server,redis-tools
cd /tmp
redis-server --port 0 --unixsocket /tmp/redis.sock --save '' --appendonly no --daemonize yes --dir /tmp --logfile /tmp/redis.log >/dev/null
cli() { redis-cli -s /tmp/redis.sock "$@"; }
until cli ping >/dev/null 2>&1; do sleep 0.1; done
cli set greeting hello
cli append greeting ' world'
cli get greeting
cli rpush list a b c
cli lrange list 0 -1
cli hset hash one 1 two 2
cli hincrby hash two 40
cli zadd scores 3 three 1 one 2 two
cli zrange scores 0 -1 withscores
cli eval 'local sum = 0 for number = 1, 1000 do sum = sum + number end return sum' 0
printf 'multi\nincr counter\nincr counter\nexec\n' | cli
cli --raw subscribe news >/tmp/news &
subscriber=$!
until [ "$(cli publish news first)" = 1 ]; do sleep 0.1; done
until grep -q first /tmp/news; do sleep 0.1; done
kill $subscriber
tail -n 1 /tmp/news
redis-benchmark -s /tmp/redis.sock -c 20 -P 16 -n 20000 -t set,get,incr,lpush -q >/tmp/figures && echo measured
cli get counter:__rand_int__
cli llen mylist
seq 5000 | sed 's/.*/set key& value&/' | cli --pipe | tail -n 1
cli dbsize
cli save
cli shutdown nosave
until ! [ -e /tmp/redis.sock ]; do sleep 0.1; done
redis-server --port 0 --unixsocket /tmp/redis.sock --daemonize yes --dir /tmp --logfile /tmp/redis.log >/dev/null
until cli ping 2>/dev/null | grep -q PONG; do sleep 0.1; done
cli get key4321
cli dbsize
cli shutdown nosave
