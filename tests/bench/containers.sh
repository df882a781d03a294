#: system ramdisk
# What a container costs, and what a neighbour keeps beside one whose processes are hogs: see the program, which runs the hogs of contained.
neighbours
