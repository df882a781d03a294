# GCC and make: three Luas, 70,000 lines of C, by four jobs at a time; what they compute; shared, static and optimized programs; tcc.
#: package gcc,make,libc6-dev,tcc,binutils
#: timeout 1500
cat >Makefile <<'M'
versions := 5.2.4 5.3.6 5.4.7
sources = $(filter-out %/luac.c %/onelua.c %/ltests.c %/print.c,$(wildcard lua-$(1)/*.c))
all: $(versions:%=bin/lua-%)
define program
bin/lua-$(1): obj-$(1)/host.o $(patsubst lua-$(1)/%.c,obj-$(1)/%.o,$(call sources,$(1)))
	@mkdir -p bin
	$(CC) -o $$@ $$^ -lm -ldl
obj-$(1)/host.o: host.c
	@mkdir -p obj-$(1)
	$(CC) -O0 -Ilua-$(1) -c -o $$@ $$<
obj-$(1)/%.o: lua-$(1)/%.c
	@mkdir -p obj-$(1)
	$(CC) -O0 -DLUA_USE_POSIX -DLUA_USE_DLOPEN -DLUA_COMPAT_5_3 -c -o $$@ $$<
endef
$(foreach version,$(versions),$(eval $(call program,$(version))))
M
cat >host.c <<'C'
#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include <stdio.h>
int main(int count, char **words)
{
    lua_State *state = luaL_newstate();
    luaL_openlibs(state);
    if (count == 2 && luaL_dofile(state, words[1]) == 0)
        return 0;
    fprintf(stderr, "%s\n", lua_tostring(state, -1));
    return 1;
}
C
cat lua-*/*.[ch] | wc -l
make -s -j4 CC=gcc 2>&1 || echo "make failed"
make -q CC=gcc && echo 'nothing is left to do'
cat >try.lua <<'L'
local function sieve(n) local p, c = {}, 0 for i = 2, n do if not p[i] then c = c + 1 for j = i * i, n, i do p[j] = true end end end return c end
local s = {} for i = 1, 2000 do s[i] = ('%05d'):format(i * 7919 % 2003) end table.sort(s)
print(_VERSION, sieve(20000), s[1], s[#s], #table.concat(s, ','), string.rep('ab', 3), math.floor(-3.5), pcall(error, 'e'))
L
for lua in bin/*; do "$lua" try.lua; done
nm bin/lua-5.4.7 | grep -c ' T lua'; size bin/lua-5.2.4 | tail -n 1 | wc -w; readelf -h bin/lua-5.3.6 | grep Type

cat >part.c <<'C'
#include <stdio.h>
int twice(int n) { return 2 * n; }
__attribute__((constructor)) static void first(void) { puts("constructed"); }
C
cat >main.c <<'C'
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
int twice(int);
static __thread int own = 5;
static void *work(void *n) { own += *(int *)n; return (void *)(long)own; }
int main(void)
{
    int n = 7;
    void *result;
    pthread_t thread;
    pthread_create(&thread, NULL, work, &n);
    pthread_join(thread, &result);
    printf("%d %ld %d %.6f\n", twice(21), (long)result, own, sqrt(2));
    return EXIT_SUCCESS;
}
C
gcc -fPIC -shared -o libpart.so part.c && gcc -O2 -o dynamic main.c -L. -lpart -lm -Wl,-rpath,. && ./dynamic
gcc -O2 -flto -static -o static main.c part.c -lm && ./static
gcc -c part.c && ar rcs libpart.a part.o && gcc -g -o archived main.c libpart.a -lm && strip archived && ./archived
echo 'int main(void) { return undefined; }' | gcc -x c - 2>&1 | grep -c error
sed '/__thread/d; s/own += .*; return/return/; s/(long)own/(long)*(int *)n/; s/, own, sqrt/, 0, sqrt/' main.c >plain.c
tcc -o small plain.c part.c -lm -lpthread && ./small
tcc -run - <<'C'
#include <stdio.h>
int main(void) { puts("tcc runs what it has just compiled"); return 0; }
C
