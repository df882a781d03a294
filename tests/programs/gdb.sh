# gdb starts programs, stops them at breakpoints, steps, shows and changes variables, watches them, follows threads and children,
# catches signals and calls, attaches and detaches.
#: package coreutils,grep,sed,gdb,gcc,libc6-dev
#: timeout 1500
#: memory 1024
masked() { sed 's/0x[0-9a-f]\{5,\}/ADDRESS/g; s/(LWP [0-9]*)/(LWP N)/g; s/[Pp]rocess [0-9]\+/process N/g; s/, id [0-9]*/, id N/; s/Target Id *Frame/Target Id Frame/; s/__[a-z_]*kill[a-z_]* ([^)]*)/kill ()/' | grep -v -e '^$' -e libthread_db -e 'Thread debugging' -e debuginfod -e '^warning:.*source' -e 'No such file or directory'; }
# What the program itself prints comes behind gdb's output: in which order both reach a pipe is chance.
debug() {
    program=$1; shift
    : >printed
    gdb -nx -q -batch -iex 'set debuginfod enabled off' -iex 'set args >>printed' -ex 'set confirm off' -ex 'set width 0' "$@" $program 2>&1 </dev/null | masked
    [ -z "$last" ] || until grep -q "$last" printed; do sleep 0.1; done
    cat printed
}
last=
cat >program.c <<'C'
#include <stdio.h>
#include <stdlib.h>
struct point { int x, y; const char *name; };
static int counter;
static int add(int a, int b)
{
    int sum = a + b;
    counter += sum;
    return sum;
}
static int twice(int n)
{
    int first = add(n, n);
    int second = add(first, 1);
    return second;
}
static double half(double value)
{
    return value / 2;
}
int main(int argc, char **argv)
{
    struct point p = {1, 2, "origin"};
    int total = 0;
    for (int i = 0; i < 4; i++)
        total += twice(i);
    p.x = total;
    printf("%d %d %d %s %g\n", argc, total, counter, argv[argc - 1], half(total));
    fflush(stdout);
    return p.x == total ? 3 : 4;
}
C
gcc -g -O0 -o program program.c

echo '--- breakpoints, frames, variables'
debug program -ex 'break twice if n == 2' -ex 'run one two >>printed' -ex backtrace -ex 'info args' -ex next -ex 'print first' -ex step -ex 'info locals' -ex finish -ex 'up' -ex 'print p' -ex 'print p.name' -ex 'print total + 1' -ex 'set var total = 1000' -ex continue
echo '--- steps of instructions, registers, memory'
debug program -ex 'break add' -ex run -ex 'x/i $pc' -ex stepi -ex nexti -ex 'print $rsp == $sp' -ex 'print/x $eflags & 0x100' -ex 'set var $rax = 0x1234' -ex 'print/x $rax' -ex 'print counter' -ex 'return 5' -ex 'kill' | grep -v '^[=>]*.*ADDRESS <add'
debug program -ex 'break half' -ex run -ex 'print value' -ex 'finish' -ex 'print $st0' -ex kill
echo '--- watching'
debug program -ex 'set can-use-hw-watchpoints 0' -ex 'break add' -ex run -ex delete -ex 'watch counter' -ex continue -ex continue -ex 'print counter' -ex kill
debug program -ex 'break 24' -ex run -ex delete -ex 'watch p.x' -ex 'watch counter' -ex continue -ex continue -ex backtrace -ex 'info watchpoints' -ex 'delete 3' -ex continue -ex 'print counter' -ex continue
debug program -ex 'break twice' -ex run -ex delete -ex 'watch second' -ex continue -ex continue
debug program -ex 'break main' -ex run -ex 'watch counter if counter > 20' -ex 'hbreak half' -ex continue -ex 'print counter' -ex 'delete 2' -ex continue -ex 'print value' -ex next -ex continue
debug program -ex 'tbreak main' -ex run -ex 'tbreak half' -ex continue -ex 'info breakpoints' -ex continue
echo '--- a crash'
cat >crash.c <<'C'
#include <stddef.h>
static int read_at(int *where) { return *where; }
int main(void) { return read_at(NULL); }
C
gcc -g -O0 -o crash crash.c
debug crash -ex run -ex backtrace -ex 'print where' -ex 'print $_siginfo.si_signo' -ex continue
echo '--- signals'
cat >signals.c <<'C'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int seen;
static void handler(int signal) { seen = signal; }
int main(void)
{
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    printf("seen %d\n", seen);
    raise(SIGUSR1);
    printf("seen again %d\n", seen);
    fflush(stdout);
    abort();
}
C
gcc -g -O0 -o signals signals.c
debug signals -ex 'handle SIGUSR1 nostop noprint pass' -ex 'break handler' -ex run -ex 'print signal' -ex 'delete' -ex continue | grep -v ' in .* from \| kill ()\|__pthread'
debug signals -ex 'catch signal SIGUSR1' -ex run -ex 'signal 0' -ex 'delete' -ex 'handle SIGUSR1 nostop noprint' -ex continue | grep -v ' in .* from \| kill ()\|__pthread\|hit Catchpoint'
echo '--- calls'
debug program -ex 'catch syscall exit_group' -ex run -ex 'print $orig_rax' -ex 'print $rdi' -ex continue | grep -v 'hit Catchpoint'
echo '--- threads'
cat >threads.c <<'C'
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;
static void *worker(void *argument)
{
    pthread_mutex_lock(&lock);
    total += *(int *)argument;
    pthread_mutex_unlock(&lock);
    return argument;
}
int main(void)
{
    pthread_t threads[3];
    int numbers[3] = {1, 2, 3};
    for (int n = 0; n < 3; n++) {
        pthread_create(&threads[n], NULL, worker, &numbers[n]);
        pthread_join(threads[n], NULL);
    }
    return total;
}
C
gcc -g -O0 -pthread -o threads threads.c
# gdb may see the end of the leader before that of a joined thread, and then takes it for a new process.
debug threads -ex 'break worker' -ex run -ex 'info threads' -ex 'print *(int *)argument' -ex next -ex 'print total' -ex continue -ex 'thread apply all -q -s print 1' -ex delete -ex continue | sed 's/Thread [0-9A-FX]*ADDRESS/Thread T/' | grep -v -e ' in .* from ' -e futex -e '^\[Thread .* exited\]' -e '^\[New process' -e '^[* ] 1 .*Thread' 
debug threads -ex 'watch total' -ex run -ex 'print total' -ex continue -ex 'print *(int *)argument' -ex delete -ex continue | sed 's/Thread [0-9A-FX]*ADDRESS/Thread T/' | grep -v -e ' in .* from ' -e '^\[Thread .* exited\]' -e '^\[New process'
echo '--- children'
cat >child.c <<'C'
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int work(int n) { return n * 2; }
int main(void)
{
    int status;
    if (fork() == 0)
        _exit(work(21));
    wait(&status);
    printf("the child has ended with %d\n", WEXITSTATUS(status));
    fflush(stdout);
    execl("/bin/echo", "echo", "another program", NULL);
    return 1;
}
C
gcc -g -O0 -o child child.c
# The parent goes on by itself.
last='another program'
debug child -ex 'set follow-fork-mode child' -ex 'break work' -ex run -ex backtrace -ex finish -ex continue | grep -v '^\[Detaching\|^\[Attaching\|^\[Switching'
last=
debug child -ex 'set detach-on-fork on' -ex 'catch fork' -ex run -ex 'delete' -ex 'catch exec' -ex continue -ex 'delete' -ex continue | grep -v '^\[Detach\|hit Catchpoint\|fork'
echo '--- attaching'
cat >loop.c <<'C'
#include <stdio.h>
#include <unistd.h>
static volatile int ends, rounds;
int main(void)
{
    while (!ends) {
        rounds++;
        usleep(10000);
    }
    printf("ended by %d\n", ends);
    return 7;
}
C
gcc -g -O0 -o loop loop.c
./loop &
loop=$!
sleep 0.3
debug "-p $loop" -ex 'print rounds > 1' -ex 'info inferiors' -ex 'set var ends = 8' -ex detach | grep '^\$\|Detaching\|detached'
wait $loop
echo "status $?"
