# PostgreSQL by a local socket: a new cluster, tables, transactions, and the benchmark by several clients, whose sums have to agree.
#: package postgresql-15
bin=/usr/lib/postgresql/15/bin
echo 'postgres:x:105:105::/tmp/pg:/bin/sh' >>/etc/passwd
echo 'postgres:x:105:' >>/etc/group
mkdir /tmp/pg
chown postgres:postgres /tmp/pg
cat >/tmp/pg.sh <<END
cd /tmp/pg
$bin/initdb --auth=trust --locale=C --encoding=UTF8 -D data >/dev/null && echo initialised
$bin/pg_ctl -D data -w -l log -o "-c listen_addresses='' -c unix_socket_directories=/tmp/pg" start >/dev/null && echo started
sql() { $bin/psql -h /tmp/pg -X -q -A -t "\$@" postgres; }
sql -c 'create table people (id int primary key, name text); insert into people select i, md5(i::text) from generate_series(1, 5000) i'
sql -c 'select count(*), min(name), max(name) from people'
sql -c 'begin; delete from people; rollback; select count(*) from people'
sql -c 'insert into people values (1, null)' 2>&1 | head -n 1
$bin/pgbench -h /tmp/pg -i -q postgres 2>&1 | grep -c '^done in'
$bin/pgbench -h /tmp/pg -c 4 -t 100 -n postgres 2>&1 | grep -E 'actually processed|failed'
sql -c 'select count(*) from pgbench_history'
sql -c 'select (select sum(delta) from pgbench_history) = (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) from pgbench_branches)'
$bin/pg_ctl -D data -w -m fast stop >/dev/null && echo stopped
END
su postgres -s /bin/sh -c 'sh /tmp/pg.sh'
