#: system ramdisk
#: icount
# As files, on the ramdisk, where /out is a disk of its own: files go in by the overlay and out by /out, with their modes, times and links.
cp -a /in /out/copy
