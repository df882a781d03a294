//! mrt, MINIX4RT's task for system calls: set-up and statistics of the real-time world, for ordinary processes of the superuser.
//!
//! It checks who asks, moves the structure between the caller and itself, and has the kernel do the rest by `RtControl`, which nobody else
//! may call. It keeps nothing but samples of idle time, so its successor goes on as if nothing had been; a call that was in hand is repeated, and a repeated allocation of
//! a named semaphore is `BADNAME`. Real-time processes never wait for it. It waits for pm.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod check;
mod idle;
mod structure;

use abi::linux::nr;
use abi::pm::WhoIs;
use abi::rt::control;
use abi::{Capability, Endpoint, Errno, Message};
use idle::Idle;
use server::{Service, SyncStep};
use structure::{Direction, structure};
use sys::rt::{self, WORDS};
use sys::{Result, copy, ipc};
use zerocopy::IntoBytes;

sys::program!(main);

fn main(_: sys::Start) {
    server::run(&mut Mrt { idle: Idle::default() })
}

struct Mrt {
    idle: Idle,
}

impl Service for Mrt {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        let result = if message.label == nr::SKINK_MRT { self.system_call(message) } else { Err(Errno::ENOSYS) };
        SyncStep::Done(message.reply(result))
    }

    fn alarm(&mut self, now_ns: u64) {
        self.idle.sample(idle_ns(), now_ns);
        set_alarm(&self.idle);
    }
}

impl Mrt {
    /// `(operation, argument, address)` by the process that has sent the message.
    fn system_call(&mut self, message: &Message) -> Result<u64> {
        let caller = message.source;
        let [operation, argument, address, ..] = message.words;
        let reply = ipc::call(Endpoint::PM, &WhoIs { process: caller }.message())?;
        let (pid, _, _, _, capabilities) = WhoIs::results(&reply)?;
        if !capabilities.has(Capability::SysNice) {
            return Err(Errno::EPERM);
        }
        let argument = match operation {
            control::RTSTART | control::RESTART => packed(argument, address),
            control::SETPATTR | control::SEMALLOC => pid,
            _ => argument,
        };
        let mut words = [0; WORDS];
        let (direction, count) = structure(operation);
        if direction == Direction::In {
            copy::from_process(caller, address, words[..count].as_mut_bytes()).map_err(bad_address)?;
        }
        check::check(operation, argument, &words)?;
        let value = rt::control(operation, caller, argument, &mut words)?;
        self.note(operation, argument, &mut words);
        if direction == Direction::Out {
            copy::to_process(caller, address, words[..count].as_bytes()).map_err(bad_address)?;
        }
        Ok(value)
    }

    /// The kernel has done this: what of it concerns idle time.
    fn note(&mut self, operation: u64, argument: u64, words: &mut [u64; WORDS]) {
        match operation {
            control::RTSTART | control::RESTART => {
                let (harmonic, refresh) = (argument & u64::from(u32::MAX), argument >> 32);
                self.idle = Idle::start(harmonic, refresh, idle_ns(), sys::time::now_ns());
                set_alarm(&self.idle);
            }
            control::RTSTOP => {
                self.idle = Idle::default();
                set_alarm(&self.idle);
            }
            control::CLRSSTAT => self.idle.most_ns = 0,
            control::GETSSTAT => (words[5], words[6]) = (self.idle.most_ns, self.idle.last_ns),
            _ => {}
        }
    }
}

fn idle_ns() -> u64 {
    sys::info::kernel().map_or(0, |kernel| kernel.idle_ns)
}

fn set_alarm(idle: &Idle) {
    sys::time::set_alarm(idle.next_ns()).expect("mrt may set its alarm");
}

/// Harmonic and refresh in one word; what does not fit is wrong anyhow.
fn packed(harmonic: u64, refresh: u64) -> u64 {
    let most = u64::from(u32::MAX);
    harmonic.min(most) | refresh.min(most) << 32
}

fn bad_address(error: Errno) -> Errno {
    if error == Errno::EFAULT { Errno::EINVAL } else { error }
}
