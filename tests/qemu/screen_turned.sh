#: screen
#: functions dying
#: timeout 600
# A screen that is turned by a quarter shows the text that it showed upright (screen_turned.check), whoever of its services dies.
until grep -q '# ' /dev/vcs1; do sleep 0.1; done
printf '\033[H\033[2J\033[?25lThe \033[41mred\033[m one\033[50;150HThe end' >/dev/tty1
until cat /dev/vcs1 | grep -q 'The end'; do sleep 0.1; done
settled /tmp/first
cat /tmp/first >/out/upright
framebuffer turn 1
draw() { head -c 1 /dev/fb0 >/dev/null; printf '\033[H \rT' >/dev/tty1; }
for k in $(counts 1 2 3 5 9); do dies framebuffer $k draw; done
service kill console
until cmp -s /dev/fb0 /tmp/first; do sleep 0.1; done
stty -F /dev/tty1 size
# What is drawn last has to be seen before the picture is taken.
framebuffer picture | head -n 2 | tail -n 1
sleep 0.5
