//! MINIX4RT left out: its calls are unknown, and no thread ever is a real-time process of it.

use crate::{Machine, rooms::Kernel, stop::Stop};
use abi::Errno;
use zerocopy::FromZeros;

/// Nothing.
#[derive(Debug, FromZeros)]
pub struct Minix4rt;

impl Minix4rt {
    pub fn is_active(&self) -> bool {
        false
    }
}

pub fn real_time_call<M: Machine>(kernel: &mut Kernel, _: &mut M, _: u64) -> bool {
    kernel.node.threads.running_mut().frame.set_result(Err(Errno::EBADCALL));
    false
}

pub fn call_in_wrong_mode<M: Machine>(_: &mut Kernel, _: &mut M) {}

pub fn real_time_control<M: Machine>(_: &mut Kernel, _: &mut M, _: [u64; 4]) -> Result<u64, Stop> {
    Err(Errno::EBADCALL.into())
}

pub fn first_stage<M: Machine>(_: &mut Kernel, _: &mut M, _: usize) {}

pub fn expire_timers<M: Machine>(_: &mut Kernel, _: &mut M, _: u64) {}

/// Nothing real-time is ever deferred.
pub fn do_real_time_work<M: Machine>(kernel: &mut Kernel, _: &mut M, priority: u8) {
    kernel.node.threads.end_deferred(priority);
}

pub fn end_process<M: Machine>(_: &mut Kernel, _: &mut M, _: usize) {}

pub fn end_runaway<M: Machine>(_: &mut Kernel, _: &mut M, _: usize) {}

pub fn leave_real_time<M: Machine>(_: &mut Kernel, _: &mut M, _: usize) {}
