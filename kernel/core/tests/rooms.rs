//! The kernel compiles without each of its rooms, without all, and with each alone.
//!
//! Each combination of features is a `cargo check` in a target folder of its own, since cargo holds the usual one while tests run.
#![forbid(unsafe_code)]

use std::process::Command;

const ROOMS: [&str; 4] = ["injection", "minix4rt", "port_ways", "tracing"];

fn check(features: &str) {
    let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/rooms");
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--package", "kernel_core", "--no-default-features"])
        .args(["--features", features, "--target-dir", target])
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "with [{features}]:\n{said}");
}

#[test]
fn every_room_can_be_left_out_alone() {
    for left_out in ROOMS {
        check(&ROOMS.into_iter().filter(|room| *room != left_out).collect::<Vec<_>>().join(","));
    }
}

#[test]
fn every_room_can_be_the_only_one() {
    check("");
    ROOMS.into_iter().for_each(check);
}
