# Capabilities that are kept and lost, by children who check what they have after setuid, capset and exec; then while vfs and pm are killed
# after their k-th message. What each call does is in linux/capabilities.
#: timeout 600
cd /tmp
capabilities 4
for k in 1 2 3 4 5 7 9 13 20 31 61 119; do
    service inject vfs kill-after $k
    capabilities 6
    service inject pm kill-after $k
    capabilities 6
done
capabilities 200 &
sleep 0.1
service kill vfs
sleep 0.1
service kill pm
wait
