#!/bin/sh
# The file over made-up processes, by cargo test -p procfs.
cd "$(dirname "$0")/../.." || exit 2
tests=fs/procfs/src/tree_tests.rs
grep -q 'mod services_file' $tests || cat labs/05-a-file-in-procfs/services_tests.rs >>$tests
cargo test --quiet ${LABS_TARGET:+--target-dir "$LABS_TARGET"} -p procfs services_file
