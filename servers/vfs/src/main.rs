//! vfs
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
extern crate alloc;
mod buffer;
mod descriptors;
mod event;
mod locks;
mod names;
mod path;
mod permission;
mod pipe;
mod poll;
mod ring;
mod stat;
