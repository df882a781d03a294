#!/bin/sh
# Batched accesses over a played device, by cargo test -p driver.
cd "$(dirname "$0")/../.." || exit 2
cp labs/10-a-fifth-path-to-a-port/batch_tests.rs lib/driver/src/
grep -q 'mod batch_tests' lib/driver/src/lib.rs || printf '\n#[cfg(test)]\nmod batch_tests;\n' >>lib/driver/src/lib.rs
cargo test --quiet ${LABS_TARGET:+--target-dir "$LABS_TARGET"} -p driver batch
