# rsync between two folders: a first copy, changes as differences, deletions, links, holes, and a dry run that finds nothing.
#: package rsync
cd /tmp && mkdir -p from/sub/deep && export RSYNC_OLD_ARGS=1
for n in $(seq 80); do seq "$n" $((n * 40)) >"from/sub/f$n"; done
dd if=/dev/zero of=from/large bs=64k count=64 status=none; seq 300000 >from/text
ln -s sub/f3 from/link; ln from/sub/f4 from/sub/deep/hard; TZ=UTC touch -d '2002-02-02 03:04:05' from/sub/f5; chmod 640 from/sub/f6
rsync -aH --stats from/ to/ | grep -E '^Number of (files|created|regular)|^Total file'
diff -r from to && find to | wc -l; stat -c '%Y %a' to/sub/f5; stat -c '%a %h' to/sub/f6 to/sub/f4
rsync -aHin --delete from/ to/; echo "nothing to do: $?"
sed -i 's/^777$/changed/' from/text; rm from/sub/f7; echo new >from/sub/new; touch to/extra
rsync -aHi --no-whole-file --delete from/ to/ | sed '/^\.d/d; s/^\(....\)[.t]/\1_/' | sort; diff -r from to && echo same
rsync -a --inplace --checksum --exclude='*.skip' --include='*/' from/sub/ other/; ls other | wc -l
rsync -a --link-dest=/tmp/to from/ next/ && stat -c %h next/sub/f1
tar cf - from | sha256sum | wc -l; rsync --list-only from/sub/f5 | tr -s ' ' | cut -d' ' -f1,2,5
rsync /nowhere /tmp/x 2>/dev/null; echo "status $?"; rsync --daemon --config=/nonexistent --no-detach 2>/dev/null; echo "status $?"
