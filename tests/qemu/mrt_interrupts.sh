# Interrupt descriptors, the tick of the time-shared world, and interrupts of drivers that wait.
mrt_interrupts
