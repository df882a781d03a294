//! virtio_blk
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
mod device; mod queue;
