#: screen
#: package i2c-tools,coreutils
#: timeout 600
# One allocation after the other fails in the services of the screen and of the bus: the call that needed it says so, nobody dies, and what comes
# afterwards is whole.
if [ -z "${SKINK_DEEP:-}" ]; then
    last=10
else
    last=100
fi
restarts() { service list | awk '/^(console|framebuffer|input|smbus|tty) / { print $1, $3 }'; }
until grep -q '# ' /dev/vcs1; do sleep 0.1; done
before=$(restarts)
size() { until [ "$(stty -F /dev/tty$1 size)" = "$2" ]; do sleep 0.05; done; }
once=$(i2cdump -y 0 0x50 b)
for n in $(seq $last); do
    # The terminals take the new size, if not at once.
    service inject console fail-allocation $n
    fbset -xres 1024 -yres 768
    for terminal in 1 2 6; do size $terminal '48 128'; done
    fbset -xres 1280 -yres 800
    for terminal in 1 2 6; do size $terminal '50 160'; done
    # Text and pictures of it.
    service inject console fail-allocation $n
    until printf '\033cround %d\n' $n >/dev/tty3 && head -c 12 /dev/vcs3 >/tmp/shown; do echo "round $n: refused" >&2; done
    grep -q "round $n" /tmp/shown || echo "another text in round $n"
    service inject smbus fail-allocation $n
    until [ "$(i2cdump -y 0 0x50 b 2>/dev/null)" = "$once" ]; do echo "round $n: refused" >&2; done
    for service in console smbus; do service inject $service fail-allocation 0; done
done
[ "$(restarts)" = "$before" ] && echo "nobody has died"
