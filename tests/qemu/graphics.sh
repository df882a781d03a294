#: screen
#: functions dying
#: timeout 300
# The screen in /sys/class/graphics: what is told, what root may change, pictures and text that are turned, while driver and console die.
cd /sys/class/graphics/fb0
for file in *; do [ -f "$file" ] && echo "$file: $(cat "$file")"; done
ls -l rotate stride | cut -c 1-10
echo "-- changes"
change() { echo "$2" >"$1" && echo "$1 $2: $(cat "$1"), $(cat virtual_size), $(cat stride)"; }
change virtual_size 1280,1600
change pan 0,800
change pan 0,801
change pan 0
change pan 0,0
change bits_per_pixel 16
change bits_per_pixel 24
change bits_per_pixel 99
change virtual_size 1280,800
change stride 5
change rotate 4
su nobody -s /bin/sh -c 'echo 1 >rotate' 2>&1
echo "-- the picture turned"
until grep -q '# ' /dev/vcs1; do sleep 0.1; done
printf '\033[H\033[2J\033[?25lThe \033[41mred\033[m one\033[50;150HThe end' >/dev/tty1
until cat /dev/vcs1 | grep -q 'The end'; do sleep 0.1; done
settled /tmp/upright
for quarters in 1 2 3 0; do
    change rotate $quarters
    until cmp -s /dev/fb0 /tmp/upright; do sleep 0.1; done
done
echo "-- text turned"
# The first lines upside down are the last ones backwards.
head -c 163840 /tmp/upright | od -An -v -tx4 -w4 | tac >/tmp/backwards
upside_down() { until dd if=/dev/fb0 bs=5120 skip=768 count=32 2>/dev/null | od -An -v -tx4 -w4 | cmp -s - /tmp/backwards; do sleep 0.1; done; }
cd ../fbcon
echo 2 >rotate
upside_down
echo "upside down: $(cat rotate), $(stty -F /dev/tty1 size)"
service kill console
cat rotate rotate_all
upside_down
for quarters in 1 3; do
    echo $quarters >rotate_all
    until [ "$(stty -F /dev/tty1 size)" = "75 100" ]; do sleep 0.1; done
    echo "$(cat rotate): $(stty -F /dev/tty1 size)"
done
echo 4 >rotate
echo 0 >rotate
until [ "$(stty -F /dev/tty1 size)" = "50 160" ]; do sleep 0.1; done
echo "-- deaths"
ask() {
    [ "$(cat ../fb0/rotate rotate ../fb0/pan | tr '\n' ' ')" = "0 0 0,0 " ] || echo "$service after $k"
    printf '\033[H' >/dev/tty1
}
for k in $(counts 1 2 3 5 8 13); do
    for service in framebuffer console; do dies $service $k ask; done
done
echo "-- asked first while they restart"
# Who is killed often waits for its start, and the successor of procfs has not asked anybody yet.
for service in framebuffer console procfs; do service kill $service; done
cat ../fb0/name rotate
