# A static program in Rust: threads, channels, locks, children, files, local sockets, time, panics.
#: package coreutils
rust 2>/dev/null
echo "status $?"
