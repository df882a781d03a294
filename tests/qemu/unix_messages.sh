#: timeout 1200
# Sockets for packets and datagrams: what a program of ours sees is what it sees on Linux, whose output the expected one is. Then vfs is
# killed after its k-th message while two processes pass messages to each other, none of which is lost or comes twice.
mkdir /tmp/messages
unix_messages /tmp/messages
for k in 1 2 3 5 8 13 21 34 55 89; do
    service inject vfs kill-after $k
    unix_messages /tmp/messages talk
done
