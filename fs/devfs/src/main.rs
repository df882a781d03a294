//! devfs
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
extern crate alloc;
mod nodes;
