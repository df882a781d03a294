#: system bench
# The figures that the services ping and pong have measured between each other.
until dmesg | grep -q grant_copy_1m; do sleep 0.1; done
dmesg | sed -n 's/.*bench: //p'
