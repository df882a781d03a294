//! procfs
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
extern crate alloc;
mod process_text; mod source; mod system_text; mod tree;
