# Programs that make terminals for others: script, python's pty, expect with a shell that has job control, and socat.
#: package expect,socat,bsdutils,python3
#: timeout 600
export TERM=vt100 LC_ALL=C
cd /tmp

# script runs a command on a terminal and records it.
script -qec 'test -t 0 && tty | sed "s/[0-9]*$/N/"; stty rows 10 cols 20; stty size; echo error >&2; exit 3' typescript </dev/null
echo "status $?"
sed '/^Script/d' typescript | tr -d '\r' | head -n 2
script -qec 'stty -echo; read line; echo "got $line"' -O /dev/null -I input <<END
a line
END
sed '/^Script/d' input

# python3 passes bytes between its own input and a shell on a terminal, and asks what a terminal is.
cat >spawn.py <<'END'
import fcntl, os, pty, select, signal, struct, sys, termios, time, tty

pid, master = pty.fork()
if pid == 0:
    os.execv("/bin/sh", ["sh", "-c", "tty | sed 's/[0-9]*$/N/'; read line; echo got $line; exit 5"])
output = b""
while b"N\r\n" not in output:
    output += os.read(master, 1024)
os.write(master, b"a line\n")
while True:
    try:
        output += os.read(master, 1024)
    except OSError as error:
        print(os.strerror(error.errno))
        break
print(output, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

# Sizes reach the foreground group by a signal, Ctrl-C too, and a hang-up ends it.
sys.stdout.flush()
pid, master = pty.fork()
if pid == 0:
    def tell(*words):
        os.write(1, " ".join(map(str, words)).encode() + b"\n")
    size = lambda: struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))
    signal.signal(signal.SIGWINCH, lambda *_: tell("size", *size()))
    signal.signal(signal.SIGINT, lambda *_: tell("interrupt"))
    tell("begun")
    while True:
        time.sleep(0.05)  # A signal just before a pause would be lost.
seen = b""
def wait_for(text):
    global seen
    while text not in seen:
        seen += os.read(master, 1024)
    print(text.decode())
    seen = seen.split(text, 1)[1]
wait_for(b"begun")
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
wait_for(b"size 33 101 0 0")
os.write(master, b"\3")
wait_for(b"interrupt")
os.close(master)
print("ended by", signal.Signals(os.WTERMSIG(os.waitpid(pid, 0)[1])).name)

# Packet mode tells of flow control and flushes; raw mode takes every byte as it is.
master, slave = pty.openpty()
fcntl.ioctl(master, termios.TIOCPKT, struct.pack("i", 1))
os.write(slave, b"text\n")
print(os.read(master, 100))
termios.tcflush(slave, termios.TCIFLUSH)
print(os.read(master, 100))
tty.setraw(slave)
fcntl.ioctl(master, termios.TIOCPKT, struct.pack("i", 0))
every = bytes(range(256))
os.write(master, every)
back = b""
while len(back) < 256:
    back += os.read(slave, 256)
print(back == every)
os.close(slave)
print(select.select([master], [], [], 0)[0] == [master])
END
python3 spawn.py

# expect talks to a shell with job control, and with a program that turns the echo off. What a shell prints just after Ctrl-C or Ctrl-Z
# may be flushed with the rest of the output: nothing waits for that. A shell that forks when Ctrl-C comes may lose it, in Linux too.
cat >dialogue.exp <<'END'
log_user 0
set timeout 60
proc wait_for {text} {
    global expect_out
    expect {
        -ex $text {}
        timeout { puts "no $text"; exit 1 }
        eof { puts "end before $text"; exit 1 }
    }
}
spawn -noecho sh -i
send "PS1='ready> '\r"; wait_for "ready> "; wait_for "ready> "
send "sh -c 'echo started; exec sleep 100'\r"; wait_for "\nstarted"; send "\003"; after 500
send "echo status \$?\r"; wait_for "\nstatus 130"; wait_for "ready> "
send "cat\r"; send "through cat\r"; wait_for "through cat\r\nthrough cat"; send "\032"; after 500
send "jobs >list; wc -l <list\r"; wait_for "\n1"; wait_for "ready> "
send "fg\r"; wait_for "\ncat"; send "again\r"; wait_for "again\r\nagain"; send "\004"; wait_for "ready> "
send "stty -echo; echo ask; read secret; stty echo; echo \"\$secret\" | rev\r"
wait_for "rev\r\nask\r\n"
send "drow\r"; wait_for "word"
puts "before the word: [string trim [string map {word {}} $expect_out(buffer)]]"
wait_for "ready> "
send "stty rows 11 columns 44; stty size\r"; wait_for "\n11 44"; wait_for "ready> "
send "seq 2000 | tail -n 1\r"; wait_for "\n2000"; wait_for "ready> "
send "exit 7\r"; expect eof
puts "shell [lindex [wait] 3]"

# Two at a time, and a flood of lines through each.
set ids {}
foreach n {1 2} {
    spawn -noecho sh -c "seq 20000 | sha256sum; seq $n 20000"
    lappend ids $spawn_id
}
foreach spawn_id $ids {
    set lines 0
    expect {
        -re {[^\r\n]+\r\n} { incr lines; exp_continue }
        eof {}
    }
    puts "lines $lines, status [lindex [wait] 3]"
}
END
expect dialogue.exp

# socat connects its input with a shell on a terminal, and two terminals with each other.
(echo 'echo $((6 * 7)) on a terminal; exit'; sleep 2) | socat -t 5 - EXEC:sh,pty,setsid,ctty,raw,echo=0 | tr -d '\r'
socat PTY,link=/tmp/one,raw,echo=0 PTY,link=/tmp/two,raw,echo=0 &
pair=$!
until [ -e /tmp/one ] && [ -e /tmp/two ]; do sleep 0.1; done
head -c 100000 /dev/zero | tr '\0' 'x' >sent
head -c 100000 /tmp/two >received &
receiver=$!
cat sent >/tmp/one
wait "$receiver"
cmp sent received && echo the same
kill "$pair"
wait "$pair"
[ -e /tmp/one ] || echo no link
