#: system ata_direct
# A sector of an IDE disk by programmed I/O: seven registers written, one interrupt, 256 words read by a string instruction.
sector_read /dev/hda sector_pio_direct
