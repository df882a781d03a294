//! The tmpfs process; everything is in the library, where the host's tests reach it.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

sys::program!(tmpfs::process::main);

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("tmpfs is a service of Skink; on the host only its tests run");
}
