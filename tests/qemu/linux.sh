#: timeout 600
# What scripts print here is what they print on Linux: see ../linux/README.md.
mkdir -p /tmp/linux
cp /linux/*.sh /tmp/linux
for script in /tmp/linux/*.sh; do
    name=$(basename "$script" .sh)
    mkdir "/tmp/linux/$name"
    cd "/tmp/linux/$name"
    sh "$script" >"/out/$name" 2>&1 </dev/null
done
