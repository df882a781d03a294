#: system bench
# The figures that the services port_systask, port_hal, port_emulate and port_direct have measured of a port, and ping and pong
# between each other.
until dmesg | grep -q grant_copy_1m; do sleep 0.1; done
dmesg | sed -n 's/.*bench: //p'
