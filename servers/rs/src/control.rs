//! The system call `linux::SERVICE`: what people ask of rs.

use crate::supervisor::Supervisor;
use crate::world::World;
use abi::rs::{Injection, ServiceRecord, service_call};
use abi::{Endpoint, Errno, Message, Name};
use alloc::vec::Vec;
use sys::{Result, copy, plain};

/// Does what the call in `request` asks. → its result. Its caller is root.
///
/// # Errors
/// `ENOENT`: no such service; `EINVAL`: no such operation, or too small a buffer; `EFAULT`; those of kill and restart.
pub fn control<W: World>(supervisor: &mut Supervisor<W>, request: &Message) -> Result<u64> {
    let [operation, low, high, address, bytes, ..] = request.words;
    let name = Name::from_words(low, high);
    match operation {
        service_call::LIST => {
            let now_ns = supervisor.world.now_ns();
            let records: Vec<ServiceRecord> = supervisor.records().iter().map(|one| one.describe(now_ns)).collect();
            give(request.source, address, bytes, &records)
        }
        service_call::STATUS => {
            let now_ns = supervisor.world.now_ns();
            let record = supervisor.records()[supervisor.named(name)?].describe(now_ns);
            give(request.source, address, bytes, &[record])
        }
        service_call::KILL => supervisor.kill(name).map(|()| 0),
        service_call::RESTART => supervisor.restart(name).map(|()| 0),
        service_call::INJECT if bytes == size_of::<Injection>() as u64 => {
            let what: Injection = copy::read_process(request.source, address)?;
            supervisor.inject(name, &what).map(|()| 0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// Writes as many whole records as the caller's buffer takes. → bytes written.
fn give(to: Endpoint, address: u64, bytes: u64, records: &[ServiceRecord]) -> Result<u64> {
    let room = (bytes / size_of::<ServiceRecord>() as u64).min(records.len() as u64) as usize;
    if room == 0 {
        return Err(Errno::EINVAL);
    }
    let written = plain::bytes_of(&records[..room]);
    copy::to_process(to, address, written)?;
    Ok(written.len() as u64)
}
