# Virtual terminals: VT_SETMODE with its signals, VT_OPENQRY, graphics mode, and a process that is killed while it has a terminal for itself.
#: screen
vt keys
