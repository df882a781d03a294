#: timeout 900
# Two users take all that they get of every table that programs share in vfs, pm and tty: each is refused with the error of that table, the
# second one got some too, root gets one meanwhile, and all of it is given back.
services() { service list | while read -r name state restarts rest; do echo $name $state $restarts; done; }
services >/tmp/before
quotas
services | diff /tmp/before - && echo no service has died
