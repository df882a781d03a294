# Valgrind finds a leak, a read behind the end and a race, and counts what it should.
#: package coreutils,grep,sed,valgrind,gcc,libc6-dev,libc6-dbg
#: timeout 900
#: memory 768
cat >wrong.c <<'C'
#include <stdlib.h>
#include <string.h>
int main(void)
{
    char *kept = malloc(100), *lost = malloc(40);
    int sum = kept[100];
    lost = NULL;
    if (sum == 12345)
        strcpy(kept, "x");
    free(kept);
    return lost != NULL;
}
C
gcc -g -O0 -o wrong wrong.c
valgrind --leak-check=full ./wrong 2>&1 | sed 's/^==[0-9]*== *//; s/0x[0-9A-F]*/ADDRESS/' | grep -E 'Invalid read|bytes after a block|definitely lost:|ERROR SUMMARY|depends on uninit'
valgrind -q --error-exitcode=9 ./wrong 2>/dev/null; echo "status $?"
cat >race.c <<'C'
#include <pthread.h>
static int shared;
static void *work(void *unused) { shared++; return unused; }
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, work, NULL);
    pthread_create(&b, NULL, work, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return shared != 2;
}
C
gcc -g -o race race.c -lpthread
valgrind --tool=helgrind ./race 2>&1 | grep -c 'Possible data race during'
valgrind --tool=cachegrind --cachegrind-out-file=/dev/null ./race 2>&1 | grep -c 'I *refs'
valgrind -q /bin/echo 'under valgrind'
