//! mrt, MINIX4RT's task for system calls: set-up and statistics of the real-time world, for ordinary processes of the superuser.
//!
//! It checks who asks, moves the structure between the caller and itself, and has the kernel do the rest by `RtControl`, which nobody else
//! may call. It keeps nothing, so its successor goes on as if nothing had been; a call that was in hand is repeated, and a repeated allocation of
//! a named semaphore is `BADNAME`. Real-time processes never wait for it. It waits for pm.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

mod structure;

use abi::linux::nr;
use abi::pm::WhoIs;
use abi::rt::control;
use abi::{Endpoint, Errno, Message};
use server::Service;
use structure::{Direction, WORDS, structure};
use sys::{Result, copy, ipc, rt};

sys::program!(main);

fn main(_: sys::Start) {
    server::run(&mut Mrt)
}

struct Mrt;

impl Service for Mrt {
    fn request(&mut self, message: &Message) -> Option<Message> {
        let result = if message.label == nr::SKINK_MRT { system_call(message) } else { Err(Errno::ENOSYS) };
        Some(message.reply(result))
    }
}

/// `(operation, argument, address)` by the process that has sent the message.
fn system_call(message: &Message) -> Result<u64> {
    let caller = message.source;
    let [operation, argument, address, ..] = message.words;
    let reply = ipc::call(Endpoint::PM, &WhoIs { process: caller }.message())?;
    let (pid, ids, _, _) = WhoIs::results(&reply)?;
    if ids as u32 != 0 {
        return Err(Errno::EPERM);
    }
    let argument = match operation {
        control::RTSTART | control::RESTART => packed(argument, address),
        control::SETPATTR | control::SEMALLOC => pid,
        _ => argument,
    };
    let mut words = [0u64; WORDS];
    let (direction, count) = structure(operation);
    let bytes = sys::plain::bytes_of_mut(&mut words[..count]);
    if direction == Direction::In {
        copy::from_process(caller, address, bytes).map_err(bad_address)?;
    }
    let value = rt::control(operation, caller, argument, bytes)?;
    if direction == Direction::Out {
        copy::to_process(caller, address, bytes).map_err(bad_address)?;
    }
    Ok(value)
}

/// Harmonic and refresh in one word; what does not fit is wrong anyhow.
fn packed(harmonic: u64, refresh: u64) -> u64 {
    let most = u64::from(u32::MAX);
    harmonic.min(most) | refresh.min(most) << 32
}

fn bad_address(error: Errno) -> Errno {
    if error == Errno::EFAULT { Errno::EINVAL } else { error }
}
