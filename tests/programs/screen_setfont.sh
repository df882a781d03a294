# setfont loads fonts of several sizes. The terminal has as many rows and columns as fit, and the screen the pixels that it has on Linux. What setfont
# has saved is the font.
#: package kbd,console-setup-linux,coreutils
#: screen
#: timeout 600
chvt 2
printf '\033[?25l' >/dev/tty2
show() {
    printf '\033[H\033[2J\033[31mThe\033[m quick \033[7mbrown\033[m fox äöüß ─┐█ €' >/dev/tty2
    picture hold 2 2>/dev/null
    picture take | md5sum
}
for font in Lat15-Terminus16 Lat15-Terminus32x16 Lat15-VGA14 Lat15-Terminus24x12; do
    setfont -C /dev/tty2 $font
    status=$? shown=$(show)
    echo "$font: $status, $(stty -F /dev/tty2 size)"
    echo "$shown"
done
setfont -C /dev/tty2 -O /tmp/saved.psf && setfont -C /dev/tty2 Lat15-Terminus16 && setfont -C /dev/tty2 /tmp/saved.psf
status=$? shown=$(show)
echo "saved: $status, $(stty -F /dev/tty2 size)"
echo "$shown"
# On Linux nobody is there to be killed.
service kill console 2>/dev/null
show
setfont -C /dev/tty2 /etc/passwd 2>&1
picture take >/out/picture
