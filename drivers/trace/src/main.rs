//! trace: gives the kernel's trace ring (`abi::trace`) to programs of root, as /dev/trace.
//!
//! read(2) shows the ring: the number of records written, the kinds of events that are recorded now, then the records. write(2) of a
//! `TraceSettings` says which events the open file wants. The kernel records what any open file wants, and nothing when there is none:
//! tracing ends with the programs that asked for it, however they end.
//!
//! A successor knows no wishes: nothing is recorded until a program repeats its own, which it does when it reads that nothing is.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod wishes;

use abi::chardev::{Close, OPENED_MINOR_SHIFT, OPENED_POSITIONS, Open, Read, ReadAt, Write, WriteAt};
use abi::trace::{RING_HEADER_BYTES, TraceSettings, event};
use abi::{Errno, info};
use driver::Client;
use driver::chardev::{Answers, CharDriver, Held};
use sys::rights;
use wishes::Wishes;
use zerocopy::IntoBytes;

sys::program!(main);

/// /dev/trace is 10,240: the first of the numbers for local use.
const MINOR: u64 = 240;
/// Bytes read at once: records are not torn.
const CHUNK_BYTES: usize = 50 * 80;

fn main(_: sys::Start) {
    let mut trace = Trace { wishes: Wishes::default() };
    if let Err(error) = trace.apply() {
        server::not_ready(error);
    }
    driver::chardev::serve(trace);
}

struct Trace {
    wishes: Wishes,
}

impl Trace {
    /// Makes the kernel record what is wanted: everything, if it sends the ring out of the machine.
    fn apply(&mut self) -> Result<(), Errno> {
        let TraceSettings { events, period_ns } = self.wishes.all();
        let [_, is_sent] = header()?;
        rights::trace(if is_sent == 0 { events } else { events | event::ALL }, period_ns)
    }
}

/// The first bytes of the ring: how many records were written, and whether the kernel sends them out of the machine, too.
fn header() -> Result<[u64; 2], Errno> {
    let mut header = [0; 2];
    sys::info::get_bytes(info::TRACE, 0, header.as_mut_bytes())?;
    Ok(header)
}

impl CharDriver for Trace {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        match request.minor {
            // What programs say to services is the business of root alone, whoever may open the device.
            MINOR if request.ids as u32 != 0 => Err(Errno::EPERM),
            MINOR => self.wishes.add().map(|minor| minor << OPENED_MINOR_SHIFT | OPENED_POSITIONS),
            _ => Err(Errno::ENXIO),
        }
    }

    fn close(&mut self, request: &Close) {
        self.wishes.remove(request.minor);
        if let Err(error) = self.apply() {
            sys::log!("tracing could not be switched off: {error}");
        }
    }

    fn read(&mut self, held: Held, _: &Read, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::ESPIPE));
    }

    fn write(&mut self, held: Held, _: &Write, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::ESPIPE));
    }

    fn read_at(&mut self, request: &ReadAt, client: Client) -> Result<u64, Errno> {
        if let Some(rest) = (RING_HEADER_BYTES as u64).checked_sub(request.position).filter(|rest| *rest > 0) {
            // What the kernel sends is not the readers' business; what is recorded for them is.
            let [written, _] = header()?;
            let header = [written, self.wishes.all().events];
            let bytes = &header.as_bytes()[request.position as usize..];
            let length = rest.min(client.bytes()) as usize;
            return client.put(0, &bytes[..length]).map(|()| length as u64);
        }
        let mut done = 0;
        while done < client.bytes() {
            let mut buffer = [0; CHUNK_BYTES];
            let wanted = (client.bytes() - done).min(CHUNK_BYTES as u64) as usize;
            let position = request.position.checked_add(done).filter(|position| *position < info::TRACE);
            let Some(position) = position else { break };
            let length = sys::info::get_bytes(info::TRACE + position, 0, &mut buffer[..wanted])?;
            if length == 0 {
                break;
            }
            client.put(done, &buffer[..length])?;
            done += length as u64;
        }
        Ok(done)
    }

    fn write_at(&mut self, request: &WriteAt, client: Client) -> Result<u64, Errno> {
        let mut settings = TraceSettings::default();
        if client.bytes() != size_of::<TraceSettings>() as u64 {
            return Err(Errno::EINVAL);
        }
        client.fetch(0, settings.as_mut_bytes())?;
        self.wishes.set(request.minor, settings)?;
        self.apply()?;
        Ok(client.bytes())
    }
}
