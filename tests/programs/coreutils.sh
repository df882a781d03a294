# coreutils, findutils, grep, sed, gawk, diffutils, patch, jq, bc and xxd on a tree of files; copies, sums, sorting, holes, links, times.
#: package coreutils,findutils,grep,sed,gawk,diffutils,patch,jq,bc,xxd,file,tar,gzip,bzip2,xz-utils,zstd
#: timeout 600
export LC_ALL=C TZ=UTC
mkdir /tmp/tree
cd /tmp/tree
for n in $(seq 60); do
    mkdir -p "a/$((n % 7))"
    seq 1 "$n" >"a/$((n % 7))/f$n"
done
ln -s ../0/f7 a/0/link
ln a/1/f1 a/2/hard
truncate -s 5M sparse && printf x | dd of=sparse bs=1 seek=3000000 conv=notrunc status=none
mkfifo pipe
chmod 2750 a/3
touch -d '2001-02-03 04:05:06.789' a/4/f4 && touch -h -d '1999-09-09' a/0/link
stat -c '%n %A %h %F' a/4/f4 a/0/link a/1/f1 a/3 sparse pipe; stat -c '%n %s %y' a/4/f4 a/0/link

find . -type f -size +100c | sort | sha256sum
find a -name 'f*[05]' -newermt 2002-01-01 -printf '%p %s %m\n' | sort | tail -n 3
find a -type f -print0 | xargs -0 -n 7 -P 3 cat | sort -n | uniq -c | sort -k1,1nr -k2,2n | head -n 3
find a -samefile a/1/f1 | sort
find a -type f -exec grep -l '^59$' {} +
cp -a --sparse=always . /tmp/copy
diff -r --no-dereference . /tmp/copy 2>&1 | grep -v fifo
cp --reflink=auto -u sparse /tmp/again && cmp sparse /tmp/again && sha256sum <sparse
mv -n /tmp/copy/a /tmp/moved && ls /tmp/moved | tr '\n' ' '
rm -rf /tmp/copy && test ! -e /tmp/copy && echo removed
install -D -m 640 a/5/f5 /tmp/deep/er/f5 && stat -c %a /tmp/deep/er/f5
realpath --relative-to=/tmp/tree/a /tmp/moved; readlink -f a/0/link; basename /a/b.c .c; dirname /a/b/c

seq 400000 >/tmp/random; seq 100000 | shuf --random-source=/tmp/random >shuffled
sort -n -S 1M --parallel=2 shuffled | sha256sum
sort -n shuffled | split -l 30000 --numeric-suffixes --filter='gzip >$FILE.gz' - part
zcat part0*.gz | wc -l
split -n l/4 shuffled piece && wc -l piece* | tail -n 1
seq 3 >one; seq 4 6 >two; paste -d, one two
printf 'a:1\nb:2\n' >l && printf '1:x\n2:y\n' >r && join -t: -1 2 l r
comm -13 one two; tr a-z A-Z <<X
upper
X
expr 7 \* 6; factor 1234567890; numfmt --to=iec 1234567; printf '%05d|%-5s|%x\n' 42 ab 255; date -u -d @86399 +%FT%T
seq 20 | csplit -s - 5 '/1[0-9]/' '{1}' && wc -l xx* | head -n 3
fold -w 20 -s <<X
the quick brown fox jumps over the lazy dog
X
b2sum <shuffled; md5sum <shuffled; cksum <sparse; base64 <one; od -An -tx1 one; nl two; tac two; expand <<X
	tab
X
env -i A=1 printenv; timeout 0.2 sleep 5; echo "timeout $?"; nice -n 5 nice; nohup true; stdbuf -oL echo line
mktemp -u /tmp/x.XXXXXX | wc -c; tee t1 t2 <one >/dev/null; cmp t1 t2; test -k /tmp && echo sticky
df --output=target / | tail -n 1; du -b --apparent-size one; ls -l --time-style=+ one | cut -c1-10

gawk 'BEGIN { cmd = "sort -n"; for (i = 5; i; i--) print i |& cmd; close(cmd, "to"); while ((cmd |& getline l) > 0) printf l " "; print "" }'
gawk -F, '{ s[$1 % 3] += $2 } END { PROCINFO["sorted_in"] = "@ind_num_asc"; for (k in s) print k, s[k] }' <<X
1,10
2,20
4,40
X
echo '2^200 % 1000007; scale=30; 4*a(1)' | bc -l
jq -c '[.[] | select(.n > 1) | {n, s: (.s | ascii_upcase)}]' <<X
[{"n":1,"s":"a"},{"n":2,"s":"b"},{"n":3,"s":"c"}]
X
sed -n '2{p;q}' two; sed -i.bak 's/5/five/' two; diff -u --label a --label b two.bak two >change; patch -s -R two change && cmp two two.bak && echo patched
xxd one | xxd -r | cmp - one; file -b sparse one /bin/true | sed 's/, BuildID.*//'
for tool in gzip bzip2 xz zstd; do
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - a sparse shuffled | $tool -c | tee "/tmp/$tool" | sha256sum
    mkdir "/tmp/from$tool" && $tool -dc "/tmp/$tool" | tar -C "/tmp/from$tool" -xSf - && diff -r --no-dereference a "/tmp/from$tool/a" && echo "$tool is whole"
done
