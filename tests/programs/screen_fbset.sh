# fbset tells of the screen and fbcat takes a picture of it, which is what is in the frame buffer.
#: package fbset,fbcat,coreutils
#: screen
fbset
fbset -i | grep -v -e '^ *Name' -e '^ *Size'
fbset -xres 99999 2>&1
fbset -i | grep geometry
chvt 2
printf '\033[?25l' >/dev/tty2
picture hold 1
picture draw
picture hold 100
picture take >/out/picture
md5sum </out/picture
fbcat >/tmp/caught.ppm
head -n 3 /tmp/caught.ppm | head -c 16
md5sum </tmp/caught.ppm
fbcat /dev/fb0 | cmp - /tmp/caught.ppm && echo "the same picture"
