# What a terminal answers to fonts' ioctls whose pointers lead nowhere, and what it and the frame buffer answer to those that Linux has had once. Nothing of it
# changes what the terminal shows.
#: package coreutils
#: screen
chvt 2
ioctls /dev/tty2
stty -F /dev/tty2 size
