# M3-IPC without its library: the kernel's primitives by registers and by vector 33, between two members of a container.
native_messages
