# strace shows calls, their results and signals, follows children and threads, also by a filter, counts, attaches to who runs already, and changes results.
#: package coreutils,grep,sed,strace,gcc,libc6-dev
#: timeout 900
#: memory 768
masked() { sed 's/0x[0-9a-f]\{5,\}/ADDRESS/g; s/^[0-9]\+ */N /; s/[Pp]rocess [0-9]\+/process N/g; s/getppid() *= [0-9]*/getppid() = P/; s/si_pid=[0-9]*/si_pid=N/; s/child_tidptr=[^)]*/child_tidptr=T/' "$@"; }
printf 'some text\n' >file

echo '--- calls'
strace -o out -P file cat file
masked out
strace -o out -e trace=unlink,unlinkat,mkdir,rmdir sh -c 'mkdir d; rmdir d; rmdir d'
strace -f -o out -e trace=mkdir,rmdir,unlinkat -e signal=none sh -c 'mkdir d; rmdir d; rmdir d; rm nothing' 2>/dev/null
masked out
strace -o out -e trace=write -s 4 -x echo 'a long line'
masked out
strace -y -o out -e trace=read -P file cat file
grep -c 'read(3</' out

echo '--- signals'
cat >signals.c <<'C'
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static void handler(int signal) { (void)signal; syscall(SYS_getppid); }
int main(void)
{
    signal(SIGUSR1, handler);
    signal(SIGALRM, handler);
    kill(getpid(), SIGUSR1);
    alarm(1);
    pause();
    struct timespec time = {5, 0};
    alarm(1);
    nanosleep(&time, NULL);
    kill(getpid(), SIGTERM);
    return 0;
}
C
gcc -O1 -o signals signals.c
strace -o out -e trace=kill,pause,getppid,rt_sigreturn,alarm ./signals
echo "status $?"
sed 's/kill([0-9]*/kill(N/' out | masked

echo '--- children and threads'
cat >many.c <<'C'
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *thread(void *argument) { syscall(SYS_getppid); return argument; }
int main(void)
{
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    if (fork() == 0)
        _exit(3);
    wait(NULL);
    if (vfork() == 0)
        execl("/bin/true", "true", NULL);
    wait(NULL);
    return 4;
}
C
gcc -O1 -pthread -o many many.c
strace -f -o out -e trace=getppid,execve,exit_group,exit -e signal=none ./many
echo "status $?"
masked out | sed 's/ADDRESS \/\* [0-9]* vars \*\//ENVIRONMENT/' | sort | uniq -c | sed 's/^ *//'
strace -ff -o each -e trace=exit_group,exit -e signal=none ./many
cat each.* | sort | uniq -c | sed 's/^ *//'

echo '--- stopped by a filter, at nothing else'
strace -f --seccomp-bpf -o out -e trace=getppid -e signal=none ./many
echo "status $?"
masked out | sort | uniq -c | sed 's/^ *//'

echo '--- counting'
strace -c -o out -e trace=write,lseek,chdir sh -c 'echo a; echo b; cd /; cd /nowhere' >/dev/null 2>&1
sed -n 's/^ *[0-9.]* *[0-9.]* *[0-9]* *\([0-9]*\) *\([0-9]*\) *\([a-z]*\)$/\3 \1 \2/p' out | grep -v total | sort

echo '--- changing what calls do'
strace -qq -o out -e trace=unlinkat -e inject=unlinkat:error=EPERM rm -f file 2>&1 | sed 's/.*: //'
masked out
ls file
strace -qq -o out -e trace=write -e inject=write:retval=2:when=1 sh -c 'echo hidden; echo shown'
masked out
strace -qq -o out -e trace=write -e inject=write:signal=TERM:when=2 sh -c 'echo one; echo two; echo three'
echo "status $?"
masked out
strace -qq -o out -e trace=openat -e fault=openat:error=ENOENT -P file cat file 2>&1 | grep -v Requested | sed 's/.*: //'

echo '--- attaching'
cat >loop.c <<'C'
#include <sys/syscall.h>
#include <unistd.h>
#include <stdio.h>
int main(void)
{
    for (int n = 0; n < 40; n++) {
        syscall(SYS_getppid);
        usleep(50000);
    }
    puts("the loop has ended");
    return 6;
}
C
gcc -O1 -o loop loop.c
./loop >loop.out &
loop=$!
sleep 0.3
timeout -s INT 0.7 strace -o out -e trace=getppid -p $loop 2>&1 | masked
[ $(grep -c 'getppid() ' out) -gt 3 ] && echo followed
wait $loop
echo "status $?"
cat loop.out
sleep 100 &
sleeper=$!
(sleep 0.5; kill $sleeper) &
strace -o out -p $sleeper 2>/dev/null
tail -n 2 out | masked
wait $sleeper
echo "status $?"
strace -p 999999 2>&1 | masked
strace -o out no-such-program 2>&1 | masked
