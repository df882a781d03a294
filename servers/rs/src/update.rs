//! Live update: a service gets a new program while it is in use, and its old one back when the new one fails.
//!
//! The old incarnation is asked to prepare (`rs::PrepareUpdate`): it finishes its requests and leaves its state for the successor.
//! Then, or when that takes too long or it dies, the new program starts with start kind `Updated` and is on trial: if it crashes, is not ready
//! or does not answer heartbeats within the service's `trial_ms`, the old program is started with start kind `Restarted`. Requests to the
//! service wait meanwhile, as in any restart. A reboot forgets new programs: they are in rs's memory only.

use crate::policy::Heart;
use crate::record::{Cause, Record, State};
use crate::supervisor::{Event, Supervisor};
use crate::world::World;
use abi::{Endpoint, Errno, Name};
use alloc::vec::Vec;
use elf::{HEAD_BYTES, Program as Elf};
use sys::{Result, StartKind, fallible};

/// How long the old incarnation may take to prepare.
const PREPARE_WITHIN_NS: u64 = 1_000_000_000;
/// All new programs together; the rest of rs's heap is for what rs needs itself.
const MAX_BYTES: usize = 1 << 20;
const NS_PER_MS: u64 = 1_000_000;

/// A program that came by an update: an ELF file that vm accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    bytes: Vec<u8>,
}

impl Program {
    /// Checks what people have handed in.
    ///
    /// # Errors
    /// `ENOEXEC`: it is no static program for a service.
    pub fn new(bytes: Vec<u8>) -> Result<Program> {
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        let program = Elf::parse(head, bytes.len() as u64).map_err(|_| Errno::ENOEXEC)?;
        if program.is_service() { Ok(Program { bytes }) } else { Err(Errno::ENOEXEC) }
    }

    /// The ELF file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// How far an update has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The old incarnation prepares; it is replaced then at the latest.
    Preparing(u64),
    /// The new program is on trial until then.
    Trial(u64),
}

impl Phase {
    /// When the phase ends.
    pub fn deadline_ns(self) -> u64 {
        match self {
            Phase::Preparing(ns) | Phase::Trial(ns) => ns,
        }
    }
}

/// An update in progress.
#[derive(Debug)]
pub struct Update {
    /// How far it has come.
    pub phase: Phase,
    /// The program that is not running: the new one while the old one prepares, then the old one. `None`: the boot archive's.
    other: Option<Program>,
}

/// What the programs of a service take of rs's heap.
fn program_bytes(record: &Record) -> usize {
    let other = record.update.as_ref().and_then(|update| update.other.as_ref());
    [record.program.as_ref(), other].into_iter().flatten().map(|program| program.bytes.len()).sum()
}

impl<W: World> Supervisor<W> {
    /// Room for the program of one more update.
    ///
    /// # Errors
    /// `EFBIG`: there is none.
    pub fn room_for(&self, bytes: u64) -> Result<Vec<u8>> {
        let used: usize = self.records.iter().map(program_bytes).sum();
        let wanted = usize::try_from(bytes).map_err(|_| Errno::EFBIG)?;
        if wanted > MAX_BYTES - used.min(MAX_BYTES) {
            return Err(Errno::EFBIG);
        }
        fallible::filled(0, wanted)
    }

    /// Begins to replace the program of a service. Returns its index; `Event::UpdateOver` has the result.
    ///
    /// # Errors
    /// `ENOENT`: no such service; `EPERM`: rs and vm; `EOPNOTSUPP`: it may not be restarted, or only in its own memory; `ESRCH`: it is not up; `EBUSY`: an update is
    /// under way.
    pub fn update(&mut self, name: Name, program: Program) -> Result<usize> {
        let at = self.named(name)?;
        let by_ns = self.world.now_ns() + PREPARE_WITHIN_NS;
        let record = &mut self.records[at];
        if record.is_critical() {
            return Err(Errno::EPERM);
        }
        if record.service.restarts == 0 || record.service.retained {
            return Err(Errno::EOPNOTSUPP);
        }
        if record.update.is_some() {
            return Err(Errno::EBUSY);
        }
        if record.state != State::Up {
            return Err(Errno::ESRCH);
        }
        record.update = Some(Update { phase: Phase::Preparing(by_ns), other: Some(program) });
        self.happened(Event::Prepare(at));
        Ok(at)
    }

    /// The old incarnation is prepared.
    pub fn prepared(&mut self, at: usize) {
        if matches!(self.phase(at), Some(Phase::Preparing(_))) {
            self.take_down(at, true);
            self.replace(at);
        }
    }

    /// Starts the new program; the old incarnation is down.
    fn replace(&mut self, at: usize) {
        let now_ns = self.world.now_ns();
        let record = &mut self.records[at];
        let Some(update) = &mut record.update else { return };
        update.phase = Phase::Trial(now_ns + u64::from(record.service.trial_ms) * NS_PER_MS);
        core::mem::swap(&mut update.other, &mut record.program);
        self.start(at, StartKind::Updated, State::Restarting);
    }

    /// A service dies while it is updated. False: it is not being updated.
    pub(crate) fn end_during_update(&mut self, at: usize, cause: Cause) -> bool {
        let Some(phase) = self.phase(at) else { return false };
        self.take_down(at, true);
        self.records[at].last_end = Some((cause.end(), cause.status()));
        match phase {
            // It need not prepare any more.
            Phase::Preparing(_) => self.replace(at),
            Phase::Trial(_) => self.roll_back(at),
        }
        true
    }

    /// The new program has failed and is down: the old one comes back.
    fn roll_back(&mut self, at: usize) {
        let record = &mut self.records[at];
        let Some(update) = record.update.take() else { return };
        record.program = update.other;
        record.restarts += 1;
        self.world.say(format_args!("the new program of {} has failed; the old one runs again", record.name));
        self.happened(Event::UpdateOver(at, Err(Errno::ECANCELED)));
        self.start(at, StartKind::Restarted, State::Restarting);
    }

    /// Looks at the deadline of an update. True: that was all there is to do about the service now.
    pub(crate) fn look_after_update(&mut self, at: usize, now_ns: u64) -> bool {
        let Some(phase) = self.phase(at).filter(|phase| now_ns >= phase.deadline_ns()) else { return false };
        match phase {
            Phase::Preparing(_) => {
                self.say_of(at, "takes too long to prepare its update");
                self.prepared(at);
            }
            Phase::Trial(_) if self.records[at].state == State::Up && self.records[at].heart.missed == 0 => {
                self.accept(at, now_ns);
            }
            Phase::Trial(_) if self.records[at].endpoint == Endpoint::NONE => {
                self.end_during_update(at, Cause::Silent);
            }
            Phase::Trial(_) => {
                self.say_of(at, "has not become ready within its trial, or is silent");
                self.end(at, Cause::Silent);
            }
        }
        true
    }

    /// The trial is over, and the new program is the service's program from now on.
    fn accept(&mut self, at: usize, now_ns: u64) {
        let record = &mut self.records[at];
        record.update = None;
        record.heart = Heart::of(&record.service, now_ns);
        self.world.say(format_args!("{} is updated", record.name));
        self.happened(Event::UpdateOver(at, Ok(())));
    }
}
