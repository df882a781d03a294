//! kernel_core
#![no_std]
