//! io_submit: requests are carried out one after the other, each to its end, as Linux does it with files whose data goes through caches.
//!
//! What a request changes, its completion and the count of requests that are done change in one turn: so a call that comes again goes on
//! where its predecessor has stopped. What a predecessor has noted of the call concerns the first request that is not done. Errors of a
//! request that Linux finds before it begins are those of the call, unless another one has been submitted before; all others are results of
//! the request.

use super::{
    super::{
        call::Call,
        data::{check_flags, read_with, sync_file, write_with},
        poll::no_restart,
    },
    IOCB_KEY, KEY, PAUSE_NS, context_of,
};
use crate::{
    aio::{Context, Reservation},
    base::{Base, Flow},
    keep::records::{CompletionRecord, Note},
    memory as user,
    memory::buffer::UserBuffer,
    objects::{
        OpenFile, Operation, directory::Directory, epoll::EpollFile, eventfd::EventCounter, inotify::InotifyFile,
        pidfd::PidFd, queue::MessageQueue, socket::SocketFile,
    },
    processes::Process,
};
use abi::{Capability, Errno, Word, layout::USER_END};
use alloc::rc::Rc;

/// Bytes of a pointer to a request.
const POINTER_BYTES: u64 = 8;
/// Requests, and bytes that they move, after which other requests of vfs get in between.
const REQUESTS_IN_A_ROW: u64 = 64;
const BYTES_IN_A_ROW: u64 = 4 << 20;

/// `aio_flags`; others are ignored.
const IOCB_FLAG_RESFD: u32 = 1;
const IOCB_FLAG_IOPRIO: u32 = 2;

/// Where `aio_reqprio` has its class, and the classes.
const IOPRIO_CLASS_SHIFT: u32 = 13;
const IOPRIO_CLASS_NONE: u16 = 0;
const IOPRIO_CLASS_RT: u16 = 1;
const IOPRIO_CLASS_BE: u16 = 2;
const IOPRIO_CLASS_IDLE: u16 = 3;

/// What a request is to do (`aio_lio_opcode`).
#[derive(Clone, Copy)]
enum Work {
    Read { vector: bool },
    Write { vector: bool },
    Sync,
}

impl Work {
    /// `EINVAL`: not one of ours.
    fn of(opcode: u16) -> Result<Work, Errno> {
        match opcode {
            0 => Ok(Work::Read { vector: false }),
            1 => Ok(Work::Write { vector: false }),
            2 | 3 => Ok(Work::Sync),
            7 => Ok(Work::Read { vector: true }),
            8 => Ok(Work::Write { vector: true }),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// `struct iocb`.
struct Request {
    /// Where the program has it.
    iocb: u64,
    data: u64,
    rw_flags: u32,
    opcode: u16,
    priority: u16,
    descriptor: i32,
    address: u64,
    bytes: u64,
    position: u64,
    flags: u32,
    signalled: i32,
}

impl Request {
    /// That of a program. `EFAULT`; `EINVAL`: a negative length, or a field that nobody may use.
    fn fetch(process: &Process, iocb: u64) -> Result<Request, Errno> {
        let [data, key, operation, address, bytes, position, reserved, flags] =
            user::fetch_words(process.caller.endpoint, iocb)?;
        if reserved != 0 || bytes as i64 <= -1 {
            return Err(Errno::EINVAL);
        }
        Ok(Request {
            iocb,
            data,
            rw_flags: (key >> 32) as u32,
            opcode: operation as u16,
            priority: (operation >> 16) as u16,
            descriptor: (operation >> 32) as i32,
            address,
            bytes,
            position,
            flags: flags as u32,
            signalled: (flags >> 32) as i32,
        })
    }

    /// The eventfd that is signalled when the request has completed. `EBADF`, `EINVAL`.
    fn signalled(&self, process: &Process) -> Result<Option<Rc<OpenFile>>, Errno> {
        if self.flags & IOCB_FLAG_RESFD == 0 {
            return Ok(None);
        }
        let file = process.file(self.signalled)?;
        file.usable()?;
        file.object::<EventCounter>().ok_or(Errno::EINVAL)?;
        Ok(Some(file))
    }

    /// `EINVAL`: no such priority; `EPERM`: the caller may not have it. It has no effect.
    fn check_priority(&self, process: &Process) -> Result<(), Errno> {
        if self.flags & IOCB_FLAG_IOPRIO == 0 {
            return Ok(());
        }
        match self.priority >> IOPRIO_CLASS_SHIFT {
            IOPRIO_CLASS_NONE if self.priority == 0 => Ok(()),
            IOPRIO_CLASS_RT => {
                let who = process.caller.credentials();
                let may = who.has(Capability::SysNice) || who.has(Capability::SysAdmin);
                if may { Ok(()) } else { Err(Errno::EPERM) }
            }
            IOPRIO_CLASS_BE | IOPRIO_CLASS_IDLE => Ok(()),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The memory of a read or write. `EFAULT`, `EINVAL`.
    fn buffer(&self, process: &Process, vector: bool) -> Result<UserBuffer, Errno> {
        let who = process.caller.endpoint;
        if vector {
            return user::vector(who, self.address, self.bytes);
        }
        let is_possible = self.address.checked_add(self.bytes).is_some_and(|end| end <= USER_END);
        if is_possible { user::buffer(who, self.address, self.bytes) } else { Err(Errno::EFAULT) }
    }

    /// Where a file is read or written; what has no positions does not look at it.
    fn position_in(&self, file: &OpenFile) -> Option<u64> {
        file.any().has_positions().then_some(self.position)
    }

    /// Begins a read or write. Errors are those of io_submit.
    fn begin_transfer(&self, on: &Operation, process: &Process, vector: bool, writes: bool) -> Result<Flow, Errno> {
        self.check_priority(process)?;
        check_flags(self.rw_flags, on.file)?;
        if writes { on.file.writable() } else { on.file.readable() }?;
        if is_never_asynchronous(on.file) {
            return Err(Errno::EINVAL);
        }
        let mut buffer = self.buffer(process, vector)?;
        if self.position as i64 <= -1 {
            return Err(Errno::EINVAL);
        }
        if self.position > 0 && on.file.object::<SocketFile>().is_some() {
            return Ok(Flow::Done(Err(Errno::ESPIPE)));
        }
        let (at, flags) = (self.position_in(on.file), self.rw_flags);
        let begun = match writes {
            true => write_with(on, &mut buffer, at, flags),
            false => read_with(on, &mut buffer, at, flags),
        };
        Ok(begun.unwrap_or_else(|error| Flow::Done(Err(error))))
    }

    /// Begins fsync or fdatasync. `EINVAL`: nothing that could be written back, or a field that has no meaning.
    fn begin_sync(&self, base: &'static Base, file: Rc<OpenFile>) -> Result<Flow, Errno> {
        if self.address != 0 || self.position != 0 || self.bytes != 0 || self.rw_flags != 0 {
            return Err(Errno::EINVAL);
        }
        sync_file(base, file)
    }
}

/// Whether Linux has no such reads and writes of a file, though it has others.
fn is_never_asynchronous(file: &OpenFile) -> bool {
    file.object::<Directory>().is_some()
        || file.object::<EpollFile>().is_some()
        || file.object::<InotifyFile>().is_some()
        || file.object::<MessageQueue>().is_some()
        || file.object::<PidFd>().is_some()
}

/// A request that has begun.
struct Begun {
    flow: Flow,
    /// Open until it has completed.
    file: Rc<OpenFile>,
    signalled: Option<Rc<OpenFile>>,
    reservation: Reservation,
}

/// Whether further requests are carried out.
#[derive(PartialEq)]
enum Next {
    GoOn,
    /// A signal has ended this one.
    Stop,
}

/// What was carried out since others were let in.
#[derive(Default)]
struct Row {
    requests: u64,
    bytes: u64,
}

/// An io_submit in progress.
pub(super) struct Submission {
    base: &'static Base,
    process: Rc<Process>,
    context: Rc<Context>,
    /// Where the program has the pointers to its requests, and how many.
    pointers: u64,
    count: u64,
    /// Number of the call.
    call: u64,
}

impl Submission {
    /// As the arguments of a call say. `EINVAL`: no such context, or a negative count.
    pub(super) fn new(call: &Call) -> Result<Submission, Errno> {
        let (context, count) = (context_of(call)?, call.words[1]);
        if count as i64 <= -1 {
            return Err(Errno::EINVAL);
        }
        let (base, process) = (call.base(), call.process());
        let number = process.caller.call_number();
        Ok(Submission { base, process, context, pointers: call.words[2], count, call: number })
    }

    fn slot(&self) -> usize {
        self.process.caller.endpoint.slot()
    }

    /// Carries the requests out. Returns how many were submitted.
    pub(super) async fn run(self) -> Result<u64, Errno> {
        let mut done = self.base.store().submitted(self.slot(), self.call);
        let mut in_a_row = Row::default();
        let result = loop {
            if done >= self.count {
                break Ok(done);
            }
            match self.submit(done).await {
                Ok((next, moved)) => {
                    done += 1;
                    self.note_done(done);
                    if next == Next::Stop || self.process.caller.is_gone() {
                        break Ok(done);
                    }
                    self.pause(&mut in_a_row, moved).await;
                }
                Err(_) if done > 0 => break Ok(done),
                Err(error) => break Err(error),
            }
        };
        self.process.caller.part().set_number(0);
        result
    }

    /// So many requests are done: what is noted of the call does not concern the next one.
    fn note_done(&self, done: u64) {
        let caller = &self.process.caller;
        caller.begin_call(None);
        if caller.is_gone() {
            return;
        }
        caller.note(Note::Moved(0));
        self.base.store().set_submitted(self.slot(), self.call, done);
    }

    /// Carries out the request with this number. Returns how many bytes it has moved, too. Errors are those of a request that is not submitted.
    async fn submit(&self, number: u64) -> Result<(Next, u64), Errno> {
        let caller = &self.process.caller;
        let pointer = self.pointers.wrapping_add(number.wrapping_mul(POINTER_BYTES));
        let [iocb] = user::fetch_words(caller.endpoint, pointer)?;
        let request = Request::fetch(&self.process, iocb)?;
        caller.part().set_number(number as u32);
        let Begun { flow, file, signalled, reservation } = self.begin(&request)?;
        let result = self.base.end_of_part(caller, flow).await;
        drop(file);
        let next = if matches!(result, Err(Errno::ERESTARTSYS | Errno::EINTR)) { Next::Stop } else { Next::GoOn };
        let moved = result.unwrap_or(0);
        let result = Word::to_word(result.map_err(no_restart));
        reservation.complete(&CompletionRecord { data: request.data, object: request.iocb, result });
        if let Some(file) = &signalled
            && let Some(counter) = file.object::<EventCounter>()
        {
            counter.signal(file);
        }
        Ok((next, moved))
    }

    /// Lets other requests of vfs in, when many of this call were carried out in a row, or long ones, or the turn has changed so much that it has to
    /// end.
    async fn pause(&self, in_a_row: &mut Row, moved: u64) {
        in_a_row.requests += 1;
        in_a_row.bytes = in_a_row.bytes.saturating_add(moved);
        let is_long = in_a_row.requests >= REQUESTS_IN_A_ROW || in_a_row.bytes >= BYTES_IN_A_ROW;
        if is_long || self.base.store().is_turn_long() {
            *in_a_row = Row::default();
            self.base.runtime().sleep_ns(PAUSE_NS).await;
        }
    }

    /// Begins a request. Errors are those of io_submit.
    fn begin(&self, request: &Request) -> Result<Begun, Errno> {
        let (base, process) = (self.base, &*self.process);
        let reservation = self.context.reserve()?;
        let file = process.file(request.descriptor)?;
        file.usable()?;
        let signalled = request.signalled(process)?;
        user::store(process.caller.endpoint, request.iocb.wrapping_add(KEY), &IOCB_KEY.to_le_bytes())?;
        let on = Operation { base, caller: &process.caller, file: &file };
        let flow = match Work::of(request.opcode)? {
            Work::Read { vector } => request.begin_transfer(&on, process, vector, false),
            Work::Write { vector } => request.begin_transfer(&on, process, vector, true),
            Work::Sync => request.begin_sync(base, file.clone()),
        }?;
        Ok(Begun { flow, file, signalled, reservation })
    }
}
