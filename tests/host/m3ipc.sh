#: timeout 600
# M3-IPC in Linux: the command, deaths of members and of the broker, and a member that scribbles. What calls do is in tests/m3ipc.
root=$(dirname "$SKINK")
made=${CARGO_TARGET_DIR:-$root/target}/release
(cd "$root" && cargo build --quiet --release --package libm3ipc --package m3ipcd --package m3)
for program in boxes buffers deaths steady scribbler talk; do
    gcc -O1 -Wall -Wextra -Werror -static -I "$root/lib/m3ipc/include" "$root/host/tests/$program.c" -o "$program" -L "$made" -lm3ipc
done
export M3IPC_SOCKET="$PWD/socket"

# The one broker of this test; each part ends its container.
"$made/m3ipcd" 2>log &
broker=$!
trap 'kill $broker' EXIT
while ! [ -S socket ]; do sleep 0.01; done

# The command.
m3=$made/m3
"$m3" --help | grep -q 'usage: m3'
! "$m3" ps 2>error || exit 1
"$m3" init 3 --name lab
"$m3" containers | grep -q '^ *3 lab  *0 '
"$m3" run 3 7 sleep 60 &
sleeper=$!
while ! "$m3" ps 3 | grep -q ' 7 .*sleep.*running'; do sleep 0.01; done
"$m3" trace 3 >traced &
tracer=$!
while ! grep -q ' 7 sleep .*running$' traced; do sleep 0.01; done
! "$m3" trace 4 2>error || exit 1
grep -q 'EMOLVMNOTRUN.*m3 containers' error
"$m3" trace 3 --for 0
! "$m3" run 3 7 true 2>error || exit 1
grep -q 'EMOLSLOTUSED.*m3 ps' error
! "$m3" ps 4 2>error || exit 1
grep -q 'm3 containers' error
! "$m3" bind 3 -5 2>error || exit 1
grep -q 'PID is missing' error
! "$m3" frob 2>error || exit 1
grep -q "no command 'frob'" error
"$m3" end 3
! wait "$sleeper" || exit 1
wait "$tracer"
! "$m3" ps 3 2>error || exit 1
"$m3" end
! "$m3" end 2>error || exit 1
grep -q EMOLDRVSINIT error
"$m3" init 2 --name small --node 1 --max-containers 3 --max-nodes 4 --max-copy 4096 --processes 20 --tasks 5 --system 10 --uid 1000 --gid 1001 --capability 21
"$m3" info >told
grep -q '^node 1, socket' told && grep -qx '3 containers, 4 nodes' told && grep -qx 'copies of at most 4096 bytes' told
"$m3" containers | grep -q '^ *2 small  *0  *20  *5  *1$'
! "$m3" init 3 2>error || exit 1
grep -q EMOLRANGE error
"$m3" init 1 --open
! "$m3" init 0 --max-copy 4096 2>error || exit 1
grep -q 'm3 info' error
! "$m3" init 0 --max-colours 3 2>error || exit 1
grep -q "max-colours" error
# shellcheck disable=SC2046
! "$m3" init 0 $(seq -f '--uid %.0f' 1 9) 2>error || exit 1
grep -q 'at most 8 users' error
sleep 60 &
sleeper=$!
[ "$("$m3" bind 2 7 $sleeper)" = 7 ]
"$m3" ps 2 | grep -q " $sleeper .*sleep"
"$m3" unbind 2 7
! "$m3" ps 2 | grep sleep || exit 1
kill $sleeper
"$m3" end

# A second broker at the same socket is refused.
! "$made/m3ipcd" 2>error || exit 1
grep -q 'another m3ipcd' error

# Members in namespaces of their own; who may join goes by the ids outside of them.
user='setpriv --reuid 1000 --regid 1000 --clear-groups'
chmod a+rx . && chmod a+rw socket
"$m3" init 3
./talk 3 server &
server=$!
while ! "$m3" ps 3 | grep -q ' 1 .*talk'; do sleep 0.01; done
for world in '' 'unshare --map-root-user --net' 'unshare --map-root-user --net --pid --fork' 'bwrap --unshare-all --bind / / --dev /dev --proc /proc'; do
    [ "$($world ./talk 3 client 2)" = 'sendrec -> 0, type 8' ]
done
for world in '' 'bwrap --unshare-all --uid 0 --bind / /'; do
    [ "$($user $world ./talk 3 client 2)" = 'bind -> -1' ]
done
[ "$(./talk 3 client 2 last)" = 'sendrec -> 0, type 100' ]
wait "$server"
"$m3" end

# Who may join by a capability: a process that has it where the broker is. What it has in a user namespace of its own does not count, nor what a program
# has that it executes while its child uses its connection; and the broker does not reach into that program's memory.
(
    export M3IPC_SOCKET="$PWD/capable"
    "$made/m3ipcd" --uid 1000 2>capable.log &
    broker=$!
    trap 'kill $broker' EXIT
    while ! [ -S capable ]; do sleep 0.01; done
    ./talk 0 start 0 21
    ./talk 0 server &
    server=$!
    while ! "$m3" ps 0 | grep -q ' 1 .*talk'; do sleep 0.01; done
    able="$user --inh-caps +sys_admin --ambient-caps +sys_admin"
    [ "$($able ./talk 0 client 70)" = 'sendrec -> 0, type 8' ]
    for world in "$user" "$user --inh-caps +sys_nice --ambient-caps +sys_nice" "$user unshare --user" "$user unshare --map-root-user" "$able unshare --map-root-user"; do
        [ "$($world ./talk 0 client 71)" = 'bind -> -1' ]
    done
    [ "$(./talk 0 client 2 last)" = 'sendrec -> 0, type 100' ]
    wait "$server"

    # Programs as a user finds them in /usr/bin: one runs as root, one has the capability.
    "$m3" init 1
    cp "$(command -v sleep)" as_root
    cp as_root with_capability
    chmod u+s as_root
    python3 -c 'import os, struct; os.setxattr("with_capability", "security.capability", struct.pack("<5I", 0x2000001, 1 << 21, 0, 0, 0))'
    cat >executed.py <<'PYTHON'
import ctypes, os, socket, struct, sys, time

BIND, COPY, SELF, EMOLPERM = 8, 32, 0x8ace, -1
what, program = sys.argv[1:]

def connected():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(os.environ['M3IPC_SOCKET'])
    return s

def ask(s, call, *arguments):
    s.send(struct.pack('<4I6q', 0x4d330001, call, 0, 1, *(arguments + (0,) * 6)[:6]))
    _, _, error, _, value = struct.unpack_from('<4Iq', s.recv(10000))
    return -error if error else value

block = ctypes.create_string_buffer(8)
here = ctypes.addressof(block)
s = connected()
told, tells = os.pipe()
own, stays = os.getpid(), os.fork()
if stays:
    if what == 'copy':
        assert ask(s, BIND, 1, 80) >= 0
        peer = int(os.read(told, 20))
        assert ask(s, COPY, SELF, here, peer, here, 8) == 8
    os.execv(program, [program, '1000'])
if what == 'copy':
    peer = ask(mine := connected(), BIND, 1, 81)
    os.write(tells, b'%d' % peer)
# Until the parent has the program's capabilities.
while 'CapEff:\t0000000000000000' in open(f'/proc/{own}/status').read():
    time.sleep(0.01)
got = ask(s, BIND, 0, 82) if what == 'join' else ask(s, COPY, SELF, here, peer, here, 8)
print(what, 'EMOLPERM' if got == EMOLPERM else got)
PYTHON
    for what in join copy; do
        for program in as_root with_capability; do
            : >executed
            $user python3 executed.py $what ./$program >>executed &
            executed=$!
            while ! grep -q . executed; do sleep 0.01; done
            kill $executed
            wait $executed || true
            [ "$(cat executed)" = "$what EMOLPERM" ]
        done
    done
    "$m3" end
)

# One of two is killed while they talk.
./deaths 100
"$m3" end

# The broker's worker is killed while clients ask and processes come and go.
./steady 4 &
steady=$!
for i in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.3
    # The worker is the supervisor's only child, once the last one has a successor.
    while worker=$(cat /proc/$broker/task/$broker/children); [ -z "$worker" ]; do sleep 0.01; done
    # shellcheck disable=SC2086
    kill -9 $worker
done
wait "$steady"
while [ "$(grep -c 'worker ended' log)" -lt 10 ]; do sleep 0.01; done
"$m3" end

# Supervisor and worker of a broker are killed in turns meanwhile, each also twice in a row; then SIGTERM to either ends both.
turns() (
    export M3IPC_SOCKET="$PWD/turns"
    "$made/m3ipcd" 2>turns.log &
    supervisor=$!
    trap 'kill $supervisor $worker $(successor supervisor) 2>/dev/null || true' EXIT
    while worker=$(cat /proc/$supervisor/task/$supervisor/children); [ -z "$worker" ] || ! [ -S turns ]; do sleep 0.01; done
    worker=${worker% }
    successor() { sed -n "s/.*pid \([0-9]*\) is the new $1.*/\1/p" turns.log | tail -n 1; }
    kill_9() {
        local last=$(successor "$1")
        kill -9 "$2"
        while [ "$(successor "$1")" = "$last" ]; do sleep 0.01; done
    }
    ./steady $(($1 * 3 / 10 + 1)) &
    steady=$!
    for i in $(seq "$1"); do
        sleep 0.2
        case $((i % 4)) in
            0 | 1) kill_9 supervisor "$supervisor"; supervisor=$(successor supervisor) ;;
            *) kill_9 worker "$worker"; worker=$(successor worker) ;;
        esac
    done
    wait "$steady"
    [ "$(grep -c 'supervisor ended' turns.log)" = $(($1 / 2)) ] && [ "$(grep -c 'worker ended' turns.log)" = $(($1 / 2)) ]
    "$m3" end
    case $2 in
        worker) kill "$worker" ;;
        supervisor) kill "$supervisor" ;;
    esac
    while [ -e "/proc/$supervisor" ] || [ -e "/proc/$worker" ]; do sleep 0.01; done
    [ "$(grep -c 'ended' turns.log)" = "$1" ]
)
turns 20 worker
turns 4 supervisor
turns 0 supervisor
turns 0 worker

# Garbage at the broker's socket.
python3 - <<'PYTHON' || exit 1
import os, random, socket
random.seed(11)
for i in range(300):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(os.environ['M3IPC_SOCKET'])
    s.settimeout(5)
    head = b'\x01\x00\x33\x4d' if i % 2 else b''
    body = bytes(random.choice((0, 1, 255, random.randrange(256))) for _ in range(random.randrange(1, 300)))
    try:
        s.send(head + body)
        s.recv(100)
    except OSError:
        pass
    s.close()
PYTHON
"$m3" end 2>error || grep -q EMOLDRVSINIT error

# More connections than a broker has files for: a user beyond his share is told so, and nobody waits for ever.
(
    export M3IPC_SOCKET="$PWD/crowded" m3
    prlimit --nofile=32:32 "$made/m3ipcd" --uid 1001 --uid 1002 --uid 1003 --uid 1004 --uid 1005 2>crowd.log &
    export supervisor=$!
    trap 'kill $supervisor $(sed -n "s/.*pid \([0-9]*\) is the new supervisor/\1/p" crowd.log) 2>/dev/null || true' EXIT
    while ! [ -S crowded ]; do sleep 0.01; done
    chmod a+rw crowded
    "$m3" init 3
    python3 - <<'PYTHON'
import os, signal, socket, subprocess, time

def connected(uid):
    """A connection of this user."""
    os.seteuid(uid)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(os.environ['M3IPC_SOCKET'])
    os.seteuid(0)
    return s

def asked():
    """What a command gets to hear, over a connection of its own."""
    ran = subprocess.run([os.environ['m3'], 'ps', '3'], capture_output=True, text=True)
    return 'served' if ran.returncode == 0 else ran.stderr

root = [connected(0) for i in range(16)]
answer = asked()
assert 'EMOLNOMEM' in answer, answer
root.pop().close()
assert asked() == 'served'
supervisor = int(os.environ['supervisor'])
held = [connected(uid) for uid in (1001, 1002, 1003, 1004) for i in range(4)]
last = connected(1005)
assert last.recv(1) == b'', 'the broker had a file left'
# All its files are in use: the supervisor has a successor nevertheless.
os.kill(supervisor, signal.SIGKILL)
while 'is the new supervisor' not in open('crowd.log').read():
    time.sleep(0.01)
away = 0
for s in held:
    s.setblocking(False)
    try:
        away += s.recv(1) == b''
    except BlockingIOError:
        pass
assert 0 < away < 16, away
for s in root + held:
    s.close()
assert asked() == 'served'
PYTHON
    "$m3" end
    grep -q 'user 0 has connections enough' crowd.log
    ! grep 'worker ended' crowd.log || exit 1
)

# Boxes. Each takes one of the broker's files, which count among what a user may have: 160 / 8. Others do not notice, and a successor knows who has which.
(
    export M3IPC_SOCKET="$PWD/boxed"
    prlimit --nofile=160:160 "$made/m3ipcd" --uid 1000 --uid 1001 2>boxes.log &
    broker=$!
    trap 'kill $broker' EXIT
    while ! [ -S boxed ]; do sleep 0.01; done
    chmod a+rw boxed
    "$m3" init 0
    other='setpriv --reuid 1001 --regid 1001 --clear-groups'
    mkfifo stay
    $user ./boxes 40 8 <stay >filled &
    filler=$!
    exec 4>stay
    while ! grep -q . filled; do sleep 0.01; done
    [ "$(cat filled)" = '12 boxes, 16 refused, 0 strange' ]
    grep -q 'user 1000 has boxes enough' boxes.log
    [ "$($other ./boxes 50 4 </dev/null)" = '6 boxes, 0 refused, 0 strange' ]
    kill -9 "$(pgrep -P $broker)"
    [ "$($user ./boxes 55 5 </dev/null)" = '3 boxes, 7 refused, 0 strange' ]
    [ "$(./boxes 50 4 </dev/null)" = '6 boxes, 0 refused, 0 strange' ]
    exec 4>&-
    wait $filler
    [ "$($user ./boxes 40 4 </dev/null)" = '6 boxes, 0 refused, 0 strange' ]
    "$m3" end
)

# Buffers. A user has a share of their memory, and what he frees, or dies with, he may have again.
(
    export M3IPC_SOCKET="$PWD/buffered"
    "$made/m3ipcd" --uid 1000 --uid 1001 --buffers 64 2>buffers.log &
    broker=$!
    trap 'kill $broker $taker 2>/dev/null || true' EXIT
    while ! [ -S buffered ]; do sleep 0.01; done
    "$m3" init 0
    other='setpriv --reuid 1001 --regid 1001 --clear-groups'
    for i in 1 2 3; do
        [ "$($user ./buffers fill 70)" = '2 buffers, then -12' ]
    done
    [ "$(./buffers fill 70)" = '8 buffers, then -12' ]
    grep -q 'user 1000 has buffers enough' buffers.log

    # Who may not copy from a process may not map its buffers either. Root may.
    $user ./buffers take 10 &
    taker=$!
    while ! "$m3" ps 0 | grep -q ' 10 .*buffers'; do sleep 0.01; done
    [ "$($user ./buffers show 11 10)" = 'vcopy -> 1048576, 65' ]
    [ "$($other ./buffers show 11 10)" = 'vcopy -> -1, 0' ]
    # A new program has none of the former one's.
    [ "$($user ./buffers exec 11 10 | tr '\n' ' ')" = 'vcopy -> 1048576, 65 vcopy -> -71, 0 ' ]
    ./buffers last 11 10
    wait "$taker"
    ./buffers take 1 &
    taker=$!
    while ! "$m3" ps 0 | grep -q ' 1 .*buffers'; do sleep 0.01; done
    [ "$($other ./buffers show 11 1)" = 'vcopy -> 1048576, 65' ]
    ./buffers last 11 1
    wait "$taker"

    # The worker is killed while buffers come and go.
    ./buffers steady 4 >steady.out &
    steady=$!
    for i in 1 2 3 4 5 6 7 8; do
        sleep 0.4
        while worker=$(cat /proc/$broker/task/$broker/children); [ -z "$worker" ]; do sleep 0.01; done
        # shellcheck disable=SC2086
        kill -9 $worker
    done
    wait "$steady"
    grep -qx 'many rounds, 0 wrong, nothing left' steady.out || { cat steady.out; exit 1; }
    # Nothing of the dead is left with the supervisor or its worker, which is another one soon after the last kill.
    is_clean() {
        worker=$(cat /proc/$broker/task/$broker/children)
        [ -n "$worker" ] && ls -l "/proc/$broker/fd" "/proc/${worker% }/fd" >files 2>/dev/null && ! grep -q 'm3ipc buffer' files
    }
    until is_clean; do sleep 0.01; done
    "$m3" end
)

# Without root: broker, command and programs are an ordinary user's, and use the shared library.
mkdir own
cp "$made/m3ipcd" "$made/m3" "$made/libm3ipc.so" own
for program in buffers deaths talk; do
    gcc -O1 -Wall -Wextra -Werror -I "$root/lib/m3ipc/include" "$root/host/tests/$program.c" -o own/$program -L own -lm3ipc
done
chown -R 1000:1000 own
(
    cd own
    export M3IPC_SOCKET="$PWD/socket" LD_LIBRARY_PATH="$PWD"
    $user ./m3ipcd 2>log &
    broker=$!
    trap 'kill $broker' EXIT
    while ! [ -S socket ]; do sleep 0.01; done
    $user ./m3 init 3 --name mine
    $user ./talk 3 server &
    server=$!
    while ! $user ./m3 ps 3 | grep -q ' 1 .*talk'; do sleep 0.01; done
    grep -q "$PWD/libm3ipc.so" "/proc/$server/maps"
    [ "$($user ./talk 3 client 2)" = 'sendrec -> 0, type 8' ]
    [ "$($user unshare --map-root-user ./talk 3 client 2)" = 'sendrec -> 0, type 8' ]
    [ "$(setpriv --reuid 1001 --regid 1001 --clear-groups ./talk 3 client 2)" = 'bind -> -1' ]
    [ "$($user ./talk 3 client 2 last)" = 'sendrec -> 0, type 100' ]
    wait "$server"
    $user ./m3 end
    $user ./m3 init 0
    $user ./buffers take 10 &
    taker=$!
    while ! $user ./m3 ps 0 | grep -q ' 10 .*buffers'; do sleep 0.01; done
    [ "$($user ./buffers show 11 10)" = 'vcopy -> 1048576, 65' ]
    $user ./buffers last 11 10
    wait "$taker"
    $user ./m3 end
    $user ./deaths 20

    # A broker in a user namespace has one id for all users that this does not have: they are not the user of that id.
    $user unshare --map-root-user ./m3ipcd --uid 65534 --socket mapped 2>log &
    mapped=$!
    trap 'kill $broker $mapped' EXIT
    while ! [ -S mapped ]; do sleep 0.01; done
    export M3IPC_SOCKET="$PWD/mapped"
    $user ./m3 init 0
    [ "$(setpriv --reuid 1001 --regid 1001 --clear-groups ./talk 0 client 2)" = 'bind -> -1' ]
    $user ./m3 end
)

# One in a pid namespace knows no pid of a process outside of it, and cannot bind it.
(
    export M3IPC_SOCKET="$PWD/inside"
    unshare --pid --fork --kill-child "$made/m3ipcd" 2>inside.log &
    inside=$!
    trap 'kill -9 $inside' EXIT
    while ! [ -S inside ]; do sleep 0.01; done
    ! "$m3" init 0 2>error || exit 1
    grep -q EMOLPERM error
)

# Supervisor and worker are killed both at once: members with a box talk on, others are told that there is no broker, and a new one begins with nothing.
(
    export M3IPC_SOCKET="$PWD/lost"
    "$made/m3ipcd" 2>lost.log &
    broker=$!
    trap 'kill $broker $server 2>/dev/null || true' EXIT
    while ! [ -S lost ]; do sleep 0.01; done
    "$m3" init 0
    ./talk 0 server &
    server=$!
    while ! "$m3" ps 0 | grep -q ' 1 .*talk'; do sleep 0.01; done
    ./talk 0 client 2 3 >talked &
    client=$!
    while ! "$m3" ps 0 | grep -q ' 2 .*talk'; do sleep 0.01; done
    [ "$(./talk 0 client 3)" = 'sendrec -> 0, type 8' ]
    sleep 0.2
    worker=$(cat /proc/$broker/task/$broker/children)
    # Stopped first, so that neither finds the other one dead.
    for signal in STOP KILL; do
        # shellcheck disable=SC2086
        kill -$signal $broker $worker
    done
    while "$m3" ps 0 2>error; do sleep 0.01; done
    grep -q EMOLDRVSINIT error
    wait "$client"
    grep -qx 'many answers, 0 failed' talked
    kill "$server"
    "$made/m3ipcd" 2>lost.log &
    broker=$!
    while ! "$m3" init 0 2>error; do sleep 0.01; done
    ./talk 0 server &
    server=$!
    while ! "$m3" ps 0 | grep -q ' 1 .*talk'; do sleep 0.01; done
    [ "$(./talk 0 client 2 last)" = 'sendrec -> 0, type 100' ]
    wait "$server"
    "$m3" end
)

# A member writes at random into all that it shares.
./scribbler 3
"$m3" end
grep -c 'worker ended' log | grep -qx 10
