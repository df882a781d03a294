//! server
#![no_std]
