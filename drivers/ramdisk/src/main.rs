//! ramdisk
#![cfg_attr(not(test), no_std, no_main)]
