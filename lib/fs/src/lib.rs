//! fs
#![no_std]
