# Text tools over real text.
seq 1 50 | sed -n '5,10p;s/^4\(.\)$/four \1/p'
seq 1 20 | awk '$1 % 3 == 0 { a[n++] = $1 } END { for (i = 0; i < n; i++) printf "%s%s", a[i], i < n - 1 ? "," : "\n" }'
echo 'the quick brown fox jumps over the lazy dog' | tr ' ' '\n' | sort | uniq -c | sort -rn | awk '{ print $1, $2 }'
printf 'a:1\nb:2\nc:3\n' | cut -d: -f2 | paste -s -d+ | tee expression; expr 1 + 2 + 3
printf '%s\n' 10 9 8 100 | sort; printf '%s\n' 10 9 8 100 | sort -n
echo 'hello world' | grep -o 'w.*'; echo abc | grep -c b; echo abc | grep -v b; echo $?
printf 'one\ntwo\n' >1; printf 'one\nthree\n' >2; diff 1 2; echo diff $?
seq 1 10 | xargs -n 3 echo; printf 'a\0b c\0' | xargs -0 -n 1 echo item
echo 'some text to pack' | gzip -n | gunzip; echo 'more' | gzip -n | sha256sum
seq 1 5000 >numbers; tar cf archive.tar numbers 1 2; tar tf archive.tar; mkdir out; tar xf archive.tar -C out; cmp numbers out/numbers && echo equal; rm archive.tar
head -c 100000 /dev/zero | sha256sum; seq 1 100000 | md5sum; printf abc | sha1sum
dd if=/dev/zero bs=4096 count=25 2>/dev/null | wc -c
basename /a/b/c.txt .txt; dirname /a/b/c.txt; expr length abcdef; expr abc : 'a\(.\)'
test -f numbers && test -d out && test ! -e nothing && echo tests
env -i A=1 B=2 env | sort; printf '%05d %x %s\n' 42 255 text
date -u -d @1000000000 '+%Y-%m-%d %H:%M:%S'
od -An -tx1 <1; hexdump -C 2; fold -w 10 expression; rev 1; tac numbers | head -n 2; nl 1
find . -type f -name '*' | sort | xargs sha256sum
id -u; uname -s -m; stty -a </dev/null 2>&1 | head -n 1
