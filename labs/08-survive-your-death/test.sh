#!/bin/sh
# Compiles the bank with its tests and runs them.
cd "$(dirname "$0")" || exit 2
binary=$(mktemp) && trap 'rm -f "$binary"' EXIT
rustc --edition=2024 --test -A dead_code -o "$binary" tally.rs && "$binary" --quiet
