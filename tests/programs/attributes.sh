# Extended attributes, set and read by attr's programs, and carried by tar, cp, mv and rsync, within and between a disk and memory.
#: package attr,tar,coreutils,findutils,grep,rsync
# Prints the attributes of a tree, sorted, as a dump that setfattr could restore.
show() { (cd "$1" && find . | LC_ALL=C sort | while read -r file; do getfattr -h -d -m - -e "${2:-text}" "$file" 2>&1; done); }

try() {
    echo "== $2"
    rm -rf "$1" && mkdir -p "$1/tree/inner" && cd "$1" || exit 1
    echo text >tree/file
    ln -s file tree/link
    ln tree/file tree/inner/hard
    mkfifo tree/fifo
    setfattr -n user.colour -v green tree/file
    setfattr -n user.empty tree/file
    setfattr -n user.bytes -v 0x00ff0a22 tree/file
    setfattr -n trusted.of.root -v hidden tree/inner
    setfattr -n security.note -v 0sbm90ZQ== tree/inner
    setfattr -h -n trusted.of.link -v here tree/link
    show tree hex
    getfattr -n user.colour --only-values tree/inner/hard && echo
    getfattr -R -m '^user' tree | LC_ALL=C sort | uniq -c
    # Refused.
    setfattr -n user.colour -v x tree/fifo
    setfattr -n nonsense -v x tree/file
    setfattr -n user.of.link -h -v x tree/link
    setfattr -x user.none tree/file
    getfattr -n user.none tree/file
    setfattr -n "user.$(printf %0300d 1)" -v x tree/file 2>&1 | sed 's/0000*/0/'
    su nobody -s /bin/sh -c 'getfattr -n trusted.of.root tree/inner; setfattr -n user.mine -v 1 tree/file; getfattr -d -m - tree/inner'
    # Kept by tar, cp, mv and rsync, in the same file system and in the other.
    tar --xattrs --xattrs-include='*' -cf kept.tar tree
    mkdir unpacked && tar --xattrs --xattrs-include='*' -xf kept.tar -C unpacked
    tar --xattrs -tvvf kept.tar | grep '^ ' | LC_ALL=C sort
    cp -a tree copied
    cp -r --preserve=xattr tree preserved
    cp -r tree plain
    rsync -aHX tree/ synced
    rm -rf "$3" && mkdir "$3" && cp -a tree "$3/copied" && rsync -aHX tree/ "$3/synced" && cp -a tree moving && mv moving "$3/moved"
    show tree >kept
    for other in unpacked/tree copied preserved synced plain "$3/copied" "$3/synced" "$3/moved"; do
        show "$other" >now
        cmp -s kept now && echo "${other##*/}: the same" || echo "${other##*/}: $(grep -c = now) of $(grep -c = kept)"
    done
    # Changed on one side, and synchronised again.
    setfattr -n user.colour -v red tree/file
    setfattr -x user.empty tree/file
    rsync -aHXi tree/ synced
    show synced
    show tree >dump
    setfattr -x user.colour tree/file && setfattr -x user.bytes tree/file
    (cd tree && getfattr -d file && setfattr --restore=../dump && getfattr -d file)
    # Many, replaced and removed one after the other.
    for n in $(seq 60); do setfattr -n "user.n$n" -v "value $n" tree/inner; done
    for n in $(seq 2 2 60); do setfattr -n "user.n$n" -v "a longer value $n" tree/inner; done
    for n in $(seq 3 3 60); do setfattr -x "user.n$n" tree/inner; done
    getfattr -d tree/inner | LC_ALL=C sort | sha256sum
    chmod 600 tree/inner && touch tree/inner && getfattr -d tree/inner | grep -c =
    cd / && rm -rf "$1" "$3"
}
exec 2>&1
try /tmp/attributes 'a disk' /dev/shm/other
try /dev/shm/attributes 'memory' /tmp/other
