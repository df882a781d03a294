#: system virtio_gpu
#: screen
#: functions dying
#: traced virtio_gpu_features
#: traced virtio_gpu_update_cursor
# The cursor of a virtual machine's GPU (FBIO_CURSOR): each time where the program wants it, also on turned and panned pictures, back after deaths of the
# driver while it moves, and gone when text is drawn. virtio_gpu_cursor.check sees what the device was told.
chvt 2
framebuffer cursor
echo "-- a death"
service kill virtio_gpu
# Waits for the successor.
framebuffer information | sed -n 's/^picture: //p'
echo "-- deaths"
framebuffer pointer &
pointer=$!
until [ -e /tmp/moving ]; do sleep 0.05; done
for k in $(counts 1 2 3 5 9 33 200); do dies virtio_gpu $k true; done
touch /tmp/stop
wait $pointer
restarts virtio_gpu >/out/deaths
echo "-- text"
# The terminal shows text again: the program's cursor goes.
cp /dev/fb0 /tmp/before
echo text >/dev/tty2
framebuffer text
while cmp -s /dev/fb0 /tmp/before; do sleep 0.1; done
settled /tmp/after
