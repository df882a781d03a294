//! Tracing left out: it is never on.

use crate::{Machine, Node, stop::Stop};
use abi::Message;

/// Nothing.
#[derive(Debug)]
pub struct Tracing;

impl Tracing {
    pub const NEW: Tracing = Tracing;

    pub fn is_on(&self) -> bool {
        false
    }

    pub fn set(&mut self, _: bool) {}
}

pub fn trace_message<M: Machine>(_: &mut Node, _: &mut M, _: u32, _: &Message, _: usize) {}

pub fn trace_switch<M: Machine>(_: &mut Node, _: &mut M, _: usize) {}

pub fn trace_call<M: Machine>(_: &mut Node, _: &mut M, _: u64, _: Result<u64, Stop>) {}

pub fn trace_port<M: Machine>(_: &mut Node, _: &mut M, _: u32, _: [u64; 3], _: Result<u64, Stop>) {}

pub fn trace_exception<M: Machine>(_: &mut Node, _: &mut M, _: usize, _: u64, _: u64) {}

pub fn trace_interrupt<M: Machine>(_: &mut Node, _: &mut M, _: usize, _: usize) {}

pub fn trace_name<M: Machine>(_: &mut Node, _: &mut M, _: usize) {}
