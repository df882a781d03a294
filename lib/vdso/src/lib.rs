//! The vDSO (vdso(7)): an ELF image with which programs read the clocks without entering the kernel. vm maps it into every program, behind the
//! page that it computes from (`abi::clock`); pm tells programs where, in their auxiliary vector.
//!
//! `image` holds the code, the linker's script and the versions of the symbols; `build.rs` makes the image of them.
#![no_std]
#![forbid(unsafe_code)]

/// The image: less than a page, to be mapped read-only and executable right behind the page of the clocks.
pub static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vdso.so"));
