# GCC and make: three Luas, 70,000 lines of C, by four jobs at a time; what they compute; shared, static and optimized programs; tcc.
#: package gcc,make,libc6-dev,tcc,binutils
#: timeout 1500
#: memory 1024
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

# The full form: SQLite, 270,000 lines of C, taken apart into the files that its single one was made of, and a program that uses it. It prints
# no more when all is well.
take_apart() {
    awk '
    /^\/\*+ Begin file / { if (NR == FNR) part[$4] = 1; else { file = name[++depth] = $4; close(file) } next }
    NR == FNR { next }
    /^\/\*+ End of / && $4 == file { file = name[--depth]; next }
    /^\/\*+ Include / { print "#include \"" $3 "\"" >file; next }
    /^\/\*+ Continuing where / || !depth { next }
    /^\/\* *#include / { header = $3; gsub(/["<>]/, "", header); if (header in part || $3 ~ /</) { sub(/\/\* */, ""); sub(/ *\*\/.*/, "") } }
    file == "sqlite3.h" && /^SQLITE_API .*sqlite3_(version|temp_directory|data_directory)(\[\]|;)/ { sub(/SQLITE_API/, "extern"); sub(/ =.*/, ";") }
    file == "global.c" && /^SQLITE_PRIVATE .* sqlite3BuiltinFunctions;/ { sub(/SQLITE_PRIVATE/, "") }
    { print >file }' "$1" "$1"
}
sqlite() {
    mkdir parts
    cd parts
    take_apart ../sqlite/sqlite3.c
    cat >Makefile <<'M'
use: use.c $(patsubst %.c,%.o,$(filter-out geopoly.c use.c,$(wildcard *.c)))
	$(CC) -w -o $@ $^ -lm
%.o: %.c
	$(CC) -w -O0 -I. -DSQLITE_CORE -DSQLITE_PRIVATE=extern -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE -c $<
M
    cat >use.c <<'C'
#include "sqlite3.h"
#include <stdio.h>
const char *sqlite3_sourceid(void) { return SQLITE_SOURCE_ID; }
static int row(void *unused, int columns, char **values, char **names)
{
    for (int i = 0; i < columns; i++)
        printf("%s%c", values[i] ? values[i] : "NULL", i + 1 < columns ? '|' : '\n');
    return 0;
}
int main(int count, char **words)
{
    static char text[65536];
    char *error = NULL;
    sqlite3 *database;
    text[fread(text, 1, sizeof text - 1, stdin)] = 0;
    int failed = sqlite3_open(words[1], &database) || sqlite3_exec(database, text, row, NULL, &error);
    if (failed)
        fprintf(stderr, "%s\n", error ? error : sqlite3_errmsg(database));
    return sqlite3_close(database) || failed;
}
C
    cat >use.sql <<'Q'
CREATE TABLE number(n INTEGER PRIMARY KEY, square INTEGER, name TEXT);
WITH RECURSIVE count(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM count WHERE n < 20000)
    INSERT INTO number SELECT n, n * n, printf('%05d', n * 7919 % 20011) FROM count;
CREATE INDEX by_name ON number(name);
SELECT count(*), sum(square), min(name), max(name) FROM number;
BEGIN; DELETE FROM number WHERE n % 2; SELECT count(*) FROM number; ROLLBACK;
SELECT count(*), sum(n) FROM number WHERE name BETWEEN '00100' AND '00199';
SELECT n, sum(square) OVER (ORDER BY n ROWS 2 PRECEDING) FROM number ORDER BY n LIMIT 2 OFFSET 9998;
WITH RECURSIVE place(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM place WHERE n < 6),
    queens(rows, placed) AS (VALUES (0, '') UNION ALL SELECT rows + 1, placed || n FROM queens, place WHERE rows < 6 AND NOT EXISTS (
        SELECT * FROM place AS other WHERE other.n <= rows AND abs(substr(placed, other.n, 1) - place.n) IN (0, rows + 1 - other.n)))
    SELECT group_concat(placed, ' ') FROM (SELECT placed FROM queens WHERE rows = 6 ORDER BY placed);
CREATE VIRTUAL TABLE text USING fts5(words);
INSERT INTO text SELECT 'the name of ' || n || ' is ' || name FROM number WHERE n % 10 = 0;
SELECT count(*), min(words) FROM text WHERE text MATCH 'name NOT 0001*' AND rowid % 3 = 0;
CREATE VIRTUAL TABLE box USING rtree(id, left, right, low, high);
INSERT INTO box SELECT n, n % 100, n % 100 + 1, n / 100, n / 100 + 1 FROM number WHERE n <= 5000;
SELECT count(*), sum(id) FROM box WHERE left >= 10 AND right <= 20 AND low >= 5 AND high <= 9;
SELECT json_group_array(json_object('n', n, 'name', name)) FROM number WHERE n < 3;
DELETE FROM number WHERE n % 3 = 0;
VACUUM;
PRAGMA integrity_check;
SELECT count(*), sum(square) FROM number;
Q
    make -s -j4 CC=gcc 2>&1
    make -q CC=gcc && ./use base <use.sql && sha256sum base
    cd ..
}
if [ -n "${SKINK_DEEP:-}" ]; then
    sqlite >got 2>&1
    diff - got <<'E' || :
20000|2666866670000|00001|20010
10000
100|985519
9999|299880014
10000|299940005
246135 362514 415263 531642
666|the name of 1000 is 14655
40|26580
[{"n":1,"name":"07919"},{"n":2,"name":"15838"}]
ok
13334|1778044451111
4b928d5bbe4bff97bb545ce2730bb8f0faafd51fea66b460f32d011e7b192693  base
E
fi
