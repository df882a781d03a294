# ffmpeg plays a film of its own on the frame buffer.
#: package ffmpeg,coreutils
#: screen
#: timeout 600
#: memory 1024
# Of two packages that have a library the alternative is chosen by scripts of the packages, which have not run.
export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/lapack
chvt 2
printf '\033[?25l' >/dev/tty2
picture hold 1
ffmpeg -hide_banner -loglevel error -f lavfi -i testsrc2=size=1280x800:rate=5:duration=2 -pix_fmt bgra -f fbdev /dev/fb0 </dev/null || exit
picture hold 100
picture take >/out/picture
md5sum </out/picture
