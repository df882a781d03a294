#!/bin/sh
# Boots the guest with the program; instructions are counted, so the host's load does not matter.
cd "$(dirname "$0")" || exit 2
overlay=$(mktemp -d) && trap 'rm -rf "$overlay"' EXIT
mkdir -p "$overlay/root"
gcc -O2 -static -pthread -Wall -Werror -o "$overlay/root/inversion" inversion.c || exit 1
out=$("${SKINK:-../../skink}" exec --icount --overlay "$overlay" /root/inversion 2>"$overlay/errors") || { cat "$overlay/errors"; exit 1; }
echo "high waited and medium computed, in ms: $out"
echo "$out" | awk '{ exit !($1 < 150 && $2 >= 400) }'
