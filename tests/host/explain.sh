#: timeout 300
# `./skink explain` tells the way of a call, message by message, with file and function, which exist.
"$SKINK" explain read >story

# shown TEXT: the story has a line with TEXT.
shown() {
    grep -qE -- "$1" story || { echo "not told: $1"; cat story; exit 1; }
}

shown '^child 1 -> vfs  read\(0x[0-9a-f]+, '
shown ' servers/vfs/src/calls/[a-z]+\.rs  read$'
shown '^  vfs -> ext2  fs::Read .*'
shown 'fs/ext2/src/[a-z_/]+\.rs  [A-Za-z0-9]+::read$'
shown 'kernel call SafeCopyTo .*'
shown '^= 0x'

root=$(dirname "$SKINK")
sed -n 's|.* \([a-z0-9_/]*/src/[a-z0-9_/]*\.rs\)  \([A-Za-z0-9_:]*\)$|\1 \2|p' story | sort -u >places
[ "$(wc -l <places)" -ge 4 ]
while read -r file function; do
    grep -qE "(fn|const|static) ${function##*:}\b" "$root/$file"
done <places

"$SKINK" explain >topics
grep -q '^  fork ' topics
