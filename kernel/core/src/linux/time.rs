//! Linux calls about time that real-time programs make all the time: `clock_gettime` of the wall clock and the monotonic clocks, and
//! `clock_nanosleep` until a time of these. They are here so that they do not wait for pm, which is time shared; with
//! other clocks, and for relative sleeps, the call goes on to pm.
//!
//! A sleep is a wait for a futex that no program can name, at address 0 with no wake-up bits. Neighbours: `futex`, `alarm`, `route`.

use crate::{
    Machine, Node, futex, linux::route, memory::copy, node::futexes::Key, stop::Stop, time::alarm, time::alarm::Kind,
};

use abi::{Errno, endpoint::slot, linux::clock};

/// Flag of `clock_nanosleep`: until this time.
const ABSOLUTE: u64 = 1;
const SECOND_NS: u64 = 1_000_000_000;

/// `clock_gettime (clock, address of timespec)`.
pub fn clock_gettime<M: Machine>(node: &mut Node, m: &mut M, clock: u64, address: u64) -> Result<u64, Stop> {
    let now_ns = match clock as u32 {
        clock::REAL | clock::REAL_COARSE => alarm::now_ns(m).wrapping_add(node.real_offset_ns),
        clock::MONOTONIC | clock::MONOTONIC_RAW | clock::MONOTONIC_COARSE | clock::BOOT => alarm::now_ns(m),
        _ => return hand_to_pm(node, m),
    };
    let timespec = (now_ns / SECOND_NS) as u128 | ((now_ns % SECOND_NS) as u128) << 64;
    copy::write_own(node, m, address, &timespec.to_le_bytes())?;
    Ok(0)
}

/// `clock_nanosleep (clock, flags, address of timespec, address of rest)`.
pub fn clock_nanosleep<M: Machine>(node: &mut Node, m: &mut M, words: [u64; 3]) -> Result<u64, Stop> {
    let [clock, flags, address] = words;
    let realtime = match clock as u32 {
        clock::REAL => true,
        clock::MONOTONIC | clock::BOOT => false,
        _ => return hand_to_pm(node, m),
    };
    if flags & ABSOLUTE == 0 {
        return hand_to_pm(node, m);
    }
    let deadline_ns = futex::deadline_at(node, m, address, realtime)?.ok_or(Errno::EFAULT)?;
    if deadline_ns <= alarm::now_ns(m) {
        return Ok(0);
    }
    let slot = node.current();
    futex::wait_for_futex(node, slot, Key::UNKNOWN, 0);
    node.alarms.set_ns(&mut node.timer, m, (slot, Kind::Futex), deadline_ns);
    Err(Stop::NoResult)
}

fn hand_to_pm<M: Machine>(node: &mut Node, m: &mut M) -> Result<u64, Stop> {
    route::send_linux_call(node, m, node.current(), slot::PM)?;
    Err(Stop::NoResult)
}
