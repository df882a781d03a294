//! Injection left out: its kernel call is unknown, and nobody is ever marked to die.

use crate::{Machine, Node};
use abi::Errno;

/// Nothing.
#[derive(Debug)]
pub struct Injection;

impl Injection {
    pub const NEW: Injection = Injection;

    pub fn is_armed(&self) -> bool {
        false
    }
}

pub fn inject<M: Machine>(_: &mut Node, _: &mut M, _: usize, _: [u64; 4]) -> Result<u64, Errno> {
    Err(Errno::EBADCALL)
}

pub fn die_after(_: &mut Node, _: usize, _: u64) {}

pub fn count_down<M: Machine>(_: &mut Node, _: &mut M, _: usize) {}

pub fn marked_waiter(_: &Node) -> Option<usize> {
    None
}
