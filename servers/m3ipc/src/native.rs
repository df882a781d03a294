//! The kernel and pm themselves.

use crate::system::{Identity, Native as State, System};
use abi::info::state;
use abi::pm::{Enroll, Signal};
use abi::{Endpoint, Errno, GrantId, Message, Name};
use m3ipc::error::Error;
use sys::{copy, info, ipc, thread, time};

/// The real world.
pub struct Native;

fn fault(_: Errno) -> Error {
    Error::Fault
}

impl System for Native {
    fn read(&mut self, thread: Endpoint, address: u64, into: &mut [u8]) -> Result<(), Error> {
        copy::from_process(thread, address, into).map_err(fault)
    }

    fn write(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<(), Error> {
        copy::to_process(thread, address, bytes).map_err(fault)
    }

    fn copy(&mut self, from: (Endpoint, u64), to: (Endpoint, u64), bytes: u64) -> Result<(), Error> {
        copy::between(from.0, from.1, to.0, to.1, bytes).map_err(fault)
    }

    fn reply(&mut self, thread: Endpoint, result: i64) -> bool {
        let reply = Message::new(abi::message::REPLY).reply(Ok(result as u64));
        ipc::send_nonblocking(thread, &reply).is_ok()
    }

    fn join(&mut self, thread: Endpoint, row: usize) {
        // It fails for a thread that has ended.
        let _ = thread::join(thread, row, Endpoint::NONE, Errno::EDEADSRCDST);
    }

    fn fail(&mut self, thread: Endpoint, row: usize, peer: Endpoint, error: Error) {
        // As above.
        let _ = thread::join(thread, row, peer, Errno(error as i32));
    }

    fn notify(&mut self, thread: Endpoint) {
        // As above.
        let _ = ipc::notify(thread);
    }

    fn state(&mut self, thread: Endpoint) -> Option<State> {
        let (state, peer) = info::wait(thread).ok()?;
        Some(match state {
            _ if !(peer.is_application() || peer == Endpoint::ANY) => State::Elsewhere,
            state::SENDING => State::Sending(peer),
            state::RECEIVING => State::Receiving(peer),
            state::ANSWERING => State::Answering(peer),
            _ => State::Elsewhere,
        })
    }

    fn is_calling(&mut self, thread: Endpoint) -> bool {
        recover::retained::waits_for(thread, sys::endpoint().slot())
    }

    fn enroll(&mut self, process: Endpoint, pid: i32) -> Result<Identity, Error> {
        let request = Enroll { process, pid: pid as u64 };
        let reply = ipc::call_repeating(Endpoint::PM, &request.message()).map_err(|_| Error::BadPid)?;
        let (thread, pid, ids, capabilities, name_low, name_high) =
            Enroll::results(&reply).map_err(|_| Error::BadPid)?;
        let (user, group) = (ids as u32, (ids >> 32) as u32);
        let name = Name::from_words(name_low, name_high).0;
        Ok(Identity { thread: Endpoint(thread as u32), pid: pid as i32, user, group, capabilities, name })
    }

    fn signal(&mut self, pid: i32, signal: u64) {
        // A process that has ended meanwhile needs none.
        let _ = ipc::call_repeating(Endpoint::PM, &Signal { pid: pid as u64, signal }.message());
    }

    fn write_grant(&mut self, to: Endpoint, grant: GrantId, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        copy::to_grant(to, grant, offset, bytes)
    }

    fn now_ns(&mut self) -> u64 {
        time::now_ns()
    }

    fn set_alarm(&mut self, deadline_ns: u64) {
        time::set_alarm(deadline_ns).expect("m3ipc may set its alarm");
    }

    fn log(&mut self, line: core::fmt::Arguments) {
        sys::log!("{line}");
    }
}
