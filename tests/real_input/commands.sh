# Run in a folder with zoneinfo/ and include/; prints the same on Linux and in the guest, and leaves packed.tar.gz and report in $1.
out=$1
section() { echo "== $*"; }
section digests
find . -type f | sort | xargs sha256sum | sha256sum
find . -type f -name '*.h' | sort | xargs sha256sum | tail -n 5
section links
find . -type l | sort | while read -r link; do echo "$link -> $(readlink "$link")"; done | sha256sum
section sizes
find . -type f | sort | xargs wc -c | tail -n 1
section grep
grep -rc '#define' include | sort | awk -F: '{ n += $2 } END { print n }'
grep -rl 'stdint.h' include | sort | head -n 20
section awk
find include -name '*.h' | sort | xargs awk '/^#define/ { n[substr($2, 1, 1)]++ } END { for (c in n) print c, n[c] }' | sort
section sed
sed -n 's/^#define[ \t]*\([A-Z_]*\)[ \t].*/\1/p' include/stdio.h include/unistd.h | sort -u | head -n 30
section tar
tar cf "$out/packed.tar" zoneinfo include
gzip -n -9 "$out/packed.tar"
gunzip -c "$out/packed.tar.gz" | tar tf - | sort | sha256sum
section copy
mkdir "$out/copy"
cp -r zoneinfo "$out/copy/"
diff -r zoneinfo "$out/copy/zoneinfo" && echo equal
cp -r include/linux "$out/copy/old" && sed -i 's/LINUX/SKINK/' "$out/copy/old/types.h"
diff -r include/linux "$out/copy/old" | sed "s|$out|OUT|g"
rm -r "$out/copy"
section sort
find . -type f | sort | xargs cat 2>/dev/null | tr -cs 'A-Za-z' '\n' | sort | uniq -c | sort -rn | head -n 20
