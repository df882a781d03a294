//! sys
#![no_std]
