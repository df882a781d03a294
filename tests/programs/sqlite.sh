# SQLite: a data base with a write-ahead log and two writers, transactions, an index, a dump, and a check of all of it.
#: package sqlite3
cd /tmp
sqlite3 a.db <<'SQL'
pragma journal_mode = wal;
create table people (id integer primary key, name text not null, born integer);
create index by_name on people (name);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into people (name, born) select printf('name %05d', i * 7919 % 20000), 1900 + i % 100 from n;
commit;
select count(*), min(name), max(name), sum(born) from people;
explain query plan select * from people where name = 'name 00001';
begin; delete from people where id % 2; rollback;
select count(*) from people;
SQL
ls a.db* | cat

# Two writers and a reader at once; each transaction is whole.
sqlite3 a.db 'create table sums (a int, b int)'
writer() {
    for n in $(seq 30); do echo ".timeout 20000
begin immediate; insert into sums values ($1, $n); insert into sums values ($1, -$n); commit;"; done | sqlite3 a.db
}
writer 1 & writer 2 &
for n in $(seq 10); do sqlite3 a.db '.timeout 20000' 'select coalesce(sum(b), 0), count(*) % 2 from sums'; done | sort -u
wait
sqlite3 a.db 'select a, count(*), sum(abs(b)) from sums group by a'

# A killed writer leaves what was committed.
mkfifo commands
sqlite3 a.db <commands >begun &
exec 3>commands
echo "begin; insert into sums values (3, 1); select 'in it';" >&3
until grep -q 'in it' begun; do sleep 0.1; done
kill -9 $!
wait $! 2>/dev/null
exec 3>&-
sqlite3 a.db 'select count(*) from sums where a = 3' 'pragma wal_checkpoint(truncate)' 'pragma integrity_check'
sqlite3 a.db .dump | sort | sha256sum
sqlite3 a.db "vacuum into 'b.db'" && sqlite3 b.db 'pragma integrity_check' 'pragma page_count'
sqlite3 :memory: "select json_extract('{\"a\":[1,2,3]}', '\$.a[1]'), round(sqrt(2), 10), hex(zeroblob(4))"
echo 'not sql' | sqlite3 a.db || echo "status $?"
