//! The system call `linux::SERVICE`: what people ask of rs.

use crate::launch::Launcher;
use crate::record::Record;
use crate::reports::Report;
use crate::supervisor::Supervisor;
use crate::update::Program;
use abi::message::REPEATED;
use abi::rs::{Injection, ServiceRecord, service_call};
use abi::{Endpoint, Errno, Message, Name};
use sys::{Result, copy, fallible};
use zerocopy::IntoBytes;

/// When the answer to a call comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Now.
    Now(u64),
    /// When the update of the service with this index is over.
    AfterUpdate(usize),
    /// When there is a crash report.
    WithReport,
}

/// Does what the call in `request` asks. Its caller is root.
///
/// # Errors
/// `ENOENT`: no such service; `EINVAL`: no such operation, or a wrong buffer; `EFAULT`; those of `abi::rs::service_call` and the supervisor.
pub fn control(supervisor: &mut Supervisor<Launcher>, request: &Message) -> Result<Answer> {
    let [operation, low, high, address, bytes, value, tag] = request.words;
    let name = Name::from_words(low, high);
    match operation {
        service_call::LIST => {
            let now_ns = sys::time::now_ns();
            let records = fallible::collect(supervisor.records().iter().map(|one| describe(one, now_ns)))?;
            give_records(request.source, address, bytes, &records)
        }
        service_call::STATUS => {
            let record = describe(&supervisor.records()[supervisor.named(name)?], sys::time::now_ns());
            give_records(request.source, address, bytes, &[record])
        }
        service_call::KILL => match supervisor.kill(name) {
            // rs died after it had killed the service, and before it could say so.
            Err(Errno::ESRCH) if tag & REPEATED != 0 => Ok(Answer::Now(0)),
            result => result.map(|()| Answer::Now(0)),
        },
        service_call::RESTART => supervisor.restart(name).map(|()| Answer::Now(0)),
        service_call::UPDATE => {
            let mut program = supervisor.room_for(bytes)?;
            copy::from_process(request.source, address, &mut program)?;
            supervisor.update(name, Program::new(program)?).map(Answer::AfterUpdate)
        }
        service_call::LOG => {
            supervisor.named(name)?;
            let text = supervisor.world.reports.newest_of(name).ok_or(Errno::ENODATA)?.text();
            let length = text.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
            copy::to_process(request.source, address, &text.as_bytes()[..length])?;
            Ok(Answer::Now(length as u64))
        }
        service_call::FUNCTION => {
            let record = &supervisor.records()[supervisor.named(name)?];
            let is_known = record.program.is_none();
            let found = is_known.then(|| supervisor.world.function(name.as_str(), value)).flatten();
            let text = found.ok_or(Errno::ENODATA)?.as_bytes();
            let length = text.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
            copy::to_process(request.source, address, &text[..length])?;
            Ok(Answer::Now(length as u64))
        }
        // rs died over this call, so it has injected the fault into itself: not twice.
        service_call::INJECT if tag & REPEATED != 0 => Ok(Answer::Now(0)),
        service_call::INJECT if bytes == size_of::<Injection>() as u64 => {
            let what: Injection = copy::read_process(request.source, address)?;
            supervisor.inject(name, &what).map(|()| Answer::Now(0))
        }
        service_call::REPORT => Ok(match give_report(supervisor, request)? {
            Some(written) => Answer::Now(written),
            None => Answer::WithReport,
        }),
        _ => Err(Errno::EINVAL),
    }
}

/// What rs knows of a service, and the kernel of its incarnation.
fn describe(record: &Record, now_ns: u64) -> ServiceRecord {
    let known = record.describe(now_ns);
    let thread = sys::info::thread(known.endpoint.slot()).ok().filter(|thread| thread.endpoint == known.endpoint);
    ServiceRecord { denials: thread.map_or(0, |thread| thread.denials), ..known }
}

/// Writes the report that a `REPORT` call asks for. `None`: there is none yet.
///
/// # Errors
/// `EINVAL`: too small a buffer; `EFAULT`.
pub fn give_report(supervisor: &Supervisor<Launcher>, request: &Message) -> Result<Option<u64>> {
    let [_, _, _, address, bytes, number, _] = request.words;
    supervisor.world.reports.from(number).map(|report| write_report(request.source, address, bytes, report)).transpose()
}

fn write_report(to: Endpoint, address: u64, bytes: u64, report: &Report) -> Result<u64> {
    let head = report.head();
    let head_bytes = size_of_val(&head) as u64;
    if bytes < head_bytes + head.bytes {
        return Err(Errno::EINVAL);
    }
    copy::write_process(to, address, &head)?;
    copy::to_process(to, address + head_bytes, report.text().as_bytes())?;
    Ok(head_bytes + head.bytes)
}

/// Writes as many whole records as the caller's buffer takes.
fn give_records(to: Endpoint, address: u64, bytes: u64, records: &[ServiceRecord]) -> Result<Answer> {
    let room = (bytes / size_of::<ServiceRecord>() as u64).min(records.len() as u64) as usize;
    if room == 0 {
        return Err(Errno::EINVAL);
    }
    let written = records[..room].as_bytes();
    copy::to_process(to, address, written)?;
    Ok(Answer::Now(written.len() as u64))
}
