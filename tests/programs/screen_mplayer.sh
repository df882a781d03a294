# mplayer plays a film of three pictures on the frame buffer, and holds the last one.
#: package mplayer,coreutils
#: screen
#: timeout 600
#: memory 1024
# Of two packages that have a library the alternative is chosen by scripts of the packages, which have not run.
export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/lapack
for number in 1 2 3; do picture make /tmp/$number.png 1280 800 $number; done
for number in 1 1 1 2 2 2 $(seq 300 | sed 's/.*/3/'); do echo /tmp/$number.png; done >/tmp/film
chvt 2
printf '\033[?25l' >/dev/tty2
# mplayer's driver fbdev asks for eight bits of transparency, which Linux's DRM refuses (EINVAL) and fbdev of older devices grants; there the picture
# of the other driver, which takes the mode as it is, is the one to compare with.
driver=fbdev
[ ! -e /sys/module/drm ] || driver=fbdev2
HOME=/tmp TERM=linux setsid -c mplayer -noconfig all -really-quiet -nolirc -nosound -vo $driver -mf fps=5:type=png mf://@/tmp/film </dev/tty2 >/dev/tty2 2>/tmp/errors &
picture hold 1000
picture take >/out/picture
md5sum </out/picture
