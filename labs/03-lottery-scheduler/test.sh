#!/bin/sh
# Boots the guest with the program, and compares how far the processes have counted.
cd "$(dirname "$0")" || exit 2
overlay=$(mktemp -d) && trap 'rm -rf "$overlay"' EXIT
mkdir -p "$overlay/root"
gcc -O2 -static -Wall -Werror -o "$overlay/root/lottery" lottery.c || exit 1
out=$("${SKINK:-../../skink}" exec --icount --overlay "$overlay" \
    'for i in "30 10" "10 10" "10 0"; do /root/lottery $i; done' 2>"$overlay/errors") || { cat "$overlay/errors"; exit 1; }
echo "$out"
echo "$out" | awk '
    { ratio = $1 / ($2 + 1) }
    NR == 1 && (ratio < 2 || ratio > 4.5) { print "30:10 tickets gave " ratio; failed = 1 }
    NR == 2 && (ratio < 0.6 || ratio > 1.7) { print "10:10 tickets gave " ratio; failed = 1 }
    NR == 3 && ratio < 8 { print "a process without tickets has counted to " $2; failed = 1 }
    END { exit failed || NR != 3 }
'
