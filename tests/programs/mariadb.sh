# MariaDB: a data base is set up, serves by a local socket, keeps what was committed when it is killed, and checks whole.
#: package mariadb-server-core,mariadb-client-core,mariadb-common,coreutils
mkdir -p /run/mysqld /tmp/data
mariadb-install-db --no-defaults --user=root --datadir=/tmp/data --skip-test-db --auth-root-authentication-method=normal >/tmp/log 2>&1 || tail /tmp/log
serve() {
    mariadbd --no-defaults --user=root --datadir=/tmp/data --socket=/tmp/sock --skip-networking --innodb-buffer-pool-size=16M >>/tmp/log 2>&1 &
    server=$!
    for n in $(seq 300); do kill -0 $server && mariadb --no-defaults -S /tmp/sock -e 'select 1' >/dev/null 2>&1 && return; sleep 0.2; done
    tail /tmp/log
}
ask() { mariadb --no-defaults -S /tmp/sock -N -e "$1" shop 2>&1; }
serve
mariadb --no-defaults -S /tmp/sock -e 'create database shop'
ask 'create table goods (id int primary key auto_increment, name varchar(40), price decimal(8,2), key (name)) engine=innodb'
ask "insert into goods (name, price) select concat('thing ', seq), seq * 1.25 from seq_1_to_3000"
ask 'select count(*), sum(price), min(name), max(name) from goods'
ask 'start transaction; delete from goods where id < 1000; rollback; select count(*) from goods'
ask "select name from goods where name like 'thing 29%' order by price desc limit 2; explain select * from goods where name = 'x'" | cut -f1,4
for client in 1 2 3; do
    (for n in $(seq 8); do ask "start transaction; update goods set price = price + 1 where id = 5; insert into goods (name, price) values ('client $client', $n); commit"; done) &
    clients="${clients:-} $!"
done
wait $clients
ask "select name, count(*), sum(price) from goods where name like 'client%' group by name; select price from goods where id = 5"
ask 'insert into goods (id) values (5)' | cut -c1-40
kill -9 $server; wait $server 2>/dev/null
serve
ask 'select count(*), sum(price) from goods'
ask 'check table goods' | cut -f1,4
ask 'select name, price from goods order by name, price' | sha256sum
ask shutdown; wait $server; echo "status $?"
