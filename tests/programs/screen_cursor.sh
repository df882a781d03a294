# Shapes of the cursor (console_codes(4), `ESC [ ? N c`), of which some are seen by how much of the cell they take, and when it is hidden.
#: package coreutils
#: screen
echo 0 2>/dev/null >/sys/class/graphics/fbcon/cursor_blink
chvt 2
column() {
    last=
    until now=$(picture column); [ "$now" = "$last" ]; do last=$now; sleep 0.3; done
    echo "$1 $now"
}
for shape in 1 2 3 4 5 6 7 0; do
    printf "\033[?${shape}c" >/dev/tty2
    column "$shape"
done
printf '\033[?25l' >/dev/tty2
column hidden
printf '\033[?25h' >/dev/tty2
column shown
printf '\033[?6c\033c' >/dev/tty2
column reset
