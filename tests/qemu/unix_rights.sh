#: timeout 1200
# Open files and ids that go with messages of sockets: what a program of ours sees is what it sees on Linux, whose output the expected one
# is. Then vfs is killed after its k-th message while two processes pass descriptors to each other, none of which is lost or comes twice.
mkdir /tmp/rights
unix_rights /tmp/rights
for k in 1 2 3 5 8 13 21 34 55 89 144; do
    service inject vfs kill-after $k
    unix_rights /tmp/rights pass
done
