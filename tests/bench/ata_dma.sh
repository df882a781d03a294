#: system ata
# A sector of an IDE disk by the controller's bus master.
sector_read /dev/hda sector_dma_hal
