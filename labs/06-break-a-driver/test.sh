#!/bin/sh
# Boots the guest and runs watch.sh in it.
cd "$(dirname "$0")" || exit 2
overlay=$(mktemp -d) && trap 'rm -rf "$overlay"' EXIT
mkdir -p "$overlay/root"
cp watch.sh "$overlay/root/"
# The second line is the test's own look at the driver: it must really have died, once.
out=$("${SKINK:-../../skink}" exec --overlay "$overlay" \
    'sh /root/watch.sh; service status rtc | grep "last end"' 2>"$overlay/errors") || { cat "$overlay/errors"; exit 1; }
echo "$out"
for line in "clock: works" "restarts: 1" "died in: [a-z_]*::" "last end: *killed by"; do
    echo "$out" | grep -q "^$line" || { echo "there is no line '$line'"; exit 1; }
done
