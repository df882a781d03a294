#: system virtio_gpu
#: screen
#: functions dying
#: timeout 600
# Text on a device that shows what it is told of, while its driver dies after its k-th message: in the end the screen has what /dev/fb0 has
# (virtio_gpu_text.check), and that is what was written.
until grep -q '# ' /dev/vcs1; do sleep 0.1; done
printf '\033[H\033[2J' >/dev/tty1
line=0
write_line() {
    printf '\033[%d;1H\033[Kline %d of round %d' $((line % 40 + 1)) $line $k >/dev/tty1
    line=$((line + 1))
    sleep 0.05
}
for k in $(counts 1 2 3 4 5 8 13 40); do dies virtio_gpu $k write_line; done
printf '\033[H\033[2JThe end\n\033[41mred\033[m \033[32mgreen\033[m' >/dev/tty1
service kill virtio_gpu
settled /tmp/end
head -c 320 /dev/vcs1 | fold -w 160 | sed "s/ *$//"
echo
cat >/out/picture </dev/fb0
