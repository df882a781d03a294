# Programs that watch files by inotify, and that talk by local sockets: inotifywait, tail, socat, netcat.
#: package inotify-tools,socat,netcat-openbsd,coreutils,grep,perl
cd /tmp && mkdir -p seen/below
inotifywait -m -r --format '%w%f %e' seen >events 2>told &
watcher=$!
until grep -q established told; do sleep 0.1; done
echo one >seen/file
mv seen/file seen/below/moved
mkdir seen/later
until grep -q 'later CREATE' events; do sleep 0.1; done
sleep 1
echo two >seen/later/inside
ln seen/later/inside seen/link
chmod 600 seen/link
rm -r seen/below
until grep -q 'below DELETE,ISDIR' events; do sleep 0.1; done
kill $watcher
grep -v ISDIR events
inotifywait -q -t 1 -e create seen; echo "nothing came: $?"
rm told
(until grep -q established told; do sleep 0.1; done 2>/dev/null; touch seen/awaited) &
inotifywait -e create --format %f seen 2>told
echo a >grows
tail -F grows >followed 2>/dev/null &
follower=$!
until grep -q a followed; do sleep 0.1; done
printf 'b\nc\n' >>grows
until grep -q c followed; do sleep 0.1; done
mv grows grows.1; echo d >grows
until grep -q d followed; do sleep 0.1; done
echo e >>grows
until grep -q e followed; do sleep 0.1; done
kill $follower
cat followed
# Sockets.
socat UNIX-LISTEN:/tmp/echo,fork EXEC:'tr a-z A-Z' &
server=$!
until [ -S echo ]; do sleep 0.1; done
for n in 1 2 3; do echo "line $n" | socat -t 5 - UNIX-CONNECT:/tmp/echo; done
echo by netcat | nc.openbsd -N -U /tmp/echo
seq 100000 | socat -t 10 - UNIX-CONNECT:/tmp/echo | sha256sum
kill $server
rm -f echo
nc.openbsd -l -U /tmp/file.sock >received &
receiver=$!
until [ -S file.sock ]; do sleep 0.1; done
seq 200000 | nc.openbsd -N -U file.sock
wait $receiver
seq 200000 | cmp - received && echo whole
socat -u UNIX-RECV:/tmp/datagrams OPEN:/tmp/messages,creat,append &
receiver=$!
until [ -S datagrams ]; do sleep 0.1; done
for n in 1 2 3; do echo "message $n" | socat -u - UNIX-SENDTO:/tmp/datagrams; done
until grep -q 'message 3' messages; do sleep 0.1; done
kill $receiver
cat messages
socat ABSTRACT-LISTEN:skink - >heard </dev/null & 
until grep -q @skink /proc/net/unix; do sleep 0.1; done
echo abstract | socat -u - ABSTRACT-CONNECT:skink
wait $!
cat heard
perl -MIO::Socket::UNIX -e '
my $server = IO::Socket::UNIX->new(Local => "/tmp/perl", Listen => 5) or die "listen: $!";
for my $n (1 .. 4) { next if fork; my $c = IO::Socket::UNIX->new(Peer => "/tmp/perl") or die "connect: $!"; print $c "child $n\n"; print scalar <$c>; exit }
for (1 .. 4) { my $c = $server->accept; my $line = <$c>; print $c "heard $line"; } wait for 1 .. 4;' | sort
