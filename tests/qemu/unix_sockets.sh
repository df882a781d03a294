#: timeout 1200
# Stream sockets with names: what a program of ours sees is what it sees on Linux, whose output the expected one is. Then vfs is killed
# after its k-th message while a server and two clients talk, and they notice nothing.
mkdir /tmp/sockets
unix_sockets /tmp/sockets
for k in 1 2 3 5 8 13 21 34 55 89 144; do
    service inject vfs kill-after $k
    unix_sockets /tmp/sockets talk
done
