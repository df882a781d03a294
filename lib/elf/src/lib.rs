//! elf
#![no_std]
