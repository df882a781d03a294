#!/bin/sh
# Runs count.sh on both traces and compares.
cd "$(dirname "$0")" || exit 2
expect() {
    got=$(sh ./count.sh <"$1")
    [ "$got" = "$2" ] || { printf '%s: expected\n%s\nbut count.sh prints\n%s\n' "$1" "$2" "$got"; exit 1; }
}
expect fork.trace "messages 8
kernel calls 9
switches 7"
expect second.trace "messages 10
kernel calls 11
switches 9"
