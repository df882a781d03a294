#: screen
#: timeout 600
# A screen that is turned by a quarter shows the text that it showed upright (screen_turned.check), whoever of its services dies.
if [ -z "${SKINK_DEEP:-}" ]; then
    counts='1 2 3 5 9'
else
    counts=$(seq 200)
fi
restarts() { service list | while read -r name state restarts rest; do [ "$name" != framebuffer ] || echo "$restarts"; done; }
until grep -q '# ' /dev/vcs1; do sleep 0.1; done
printf '\033[H\033[2J\033[?25lThe \033[41mred\033[m one\033[50;150HThe end' >/dev/tty1
until cat /dev/vcs1 | grep -q 'The end'; do sleep 0.1; done
cp /dev/fb0 /tmp/first
until sleep 0.1; cmp -s /dev/fb0 /tmp/first; do cp /dev/fb0 /tmp/first; done
cat /tmp/first >/out/upright
framebuffer turn 1
for k in $counts; do
    before=$(restarts)
    service inject framebuffer kill-after $k
    until [ "$(restarts)" -gt "$before" ]; do head -c 1 /dev/fb0 >/dev/null; printf '\033[H \rT' >/dev/tty1; done
done
service kill console
until cmp -s /dev/fb0 /tmp/first; do sleep 0.1; done
stty -F /dev/tty1 size
# What is drawn last has to be seen before the picture is taken.
framebuffer picture | head -n 2 | tail -n 1
sleep 0.5
