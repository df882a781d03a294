# Thousands of devices and files are closed at once, by the ends of their processes: more requests than vfs has tasks. None of the services dies of it.
#: timeout 600
closes 12000
closes 12000
su nobody -s /bin/sh -c 'closes 4096'
echo alive >/tmp/file && cat /tmp/file
service list | while read -r name state restarts rest; do
    case $name in vfs | ext2 | devfs | tmpfs) echo $name $state $restarts ;; esac
done | sort
