//! Compiles and links the image of the vDSO. It is the same whatever this package is compiled for: code of user programs, by the compiler's own
//! target, without the FPU.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The computation of the clocks, which the image shares with the kernel.
const CLOCK: &str = "../../abi/src/clock.rs";

const COMPILE: &[&str] = &[
    "--edition=2024",
    "--crate-name=vdso_image",
    "--crate-type=lib",
    "-Copt-level=3",
    "-Ccodegen-units=1",
    "-Cpanic=abort",
    "-Coverflow-checks=off",
    "-Cdebug-assertions=off",
    "-Crelocation-model=pic",
    "-Cforce-unwind-tables=yes",
    // Words that are stored together would go through the FPU.
    "-Cno-vectorize-slp",
    "-Cno-vectorize-loops",
];

const LINK: &[&str] = &[
    "-shared",
    "-soname=linux-vdso.so.1",
    "--hash-style=both",
    "--eh-frame-hdr",
    "--no-undefined",
    "--build-id=none",
    "--strip-all",
    "-zrodynamic",
    "-znorelro",
    "-zmax-page-size=4096",
];

fn main() {
    println!("cargo::rerun-if-changed=image");
    println!("cargo::rerun-if-changed={CLOCK}");
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let [object, text, image] = ["vdso.o", "vdso.s", "vdso.so"].map(|name| Path::new(&out).join(name));
    let emit = format!("--emit=obj={},asm={}", object.display(), text.display());
    run(Command::new(env::var_os("RUSTC").expect("cargo sets it")).args(COMPILE).arg(emit).arg("image/vdso.rs"));
    let text = fs::read_to_string(text).expect("the compiler has written it");
    assert!(!text.contains("xmm"), "the vDSO must not use the FPU");
    let scripts = ["-T", "image/vdso.lds", "--version-script", "image/vdso.map", "-o"];
    run(Command::new("ld.lld").args(LINK).args(scripts).args([&image, &object]));
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
