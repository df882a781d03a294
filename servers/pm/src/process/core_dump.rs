//! Core dumps (core(5)): a process that a signal is to kill with a dump stays, stopped, until a process that pm makes for it has written
//! the file. That one executes `WRITER` with the ids, the directories and the memory share of an ordinary process of the same user, so a
//! dump costs pm a few short calls, and whatever dies meanwhile is survived as by any program (ADR 61).

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::arguments::{Arguments, Execution, List};
use crate::state::core_dump::{CoreDump, leaves_core};
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::limits;
use crate::state::signal::{SigInfo, Signal};
use crate::state::wait::Ending;
use crate::system::{Identity, ProgramName, System};
use abi::core_dump::{self, CoreHead, MAX_COPY};
use abi::registers::Registers;
use abi::{Endpoint, Errno, layout};
use alloc::rc::Rc;
use sys::fallible;
use zerocopy::IntoBytes;

type Result<T> = core::result::Result<T, Errno>;

/// The program that writes.
const WRITER: &str = "/bin/coredump";

impl<S: System> Programs<S> {
    /// Whether pm has made the process, and it has executed nothing yet: its thread has never run.
    pub fn is_new_of_pm(&self, p: ProcessIndex) -> bool {
        !self.table[p].executed && (self.table.is_first(p) || self.table[p].core_dump.is_writing())
    }

    fn leaves_core(&self, p: ProcessIndex, signal: Signal) -> bool {
        let process = &self.table[p];
        let may = process.control.dumpable && process.core_dump == CoreDump::None && !self.table.is_first(p);
        may && leaves_core(signal) && process.limits.soft(limits::CORE) >= layout::PAGE_BYTES
    }

    /// The process that the caller is to write the dump of.
    fn dumped_by(&self, t: ThreadIndex) -> Result<ProcessIndex> {
        let CoreDump::Writing { of } = self.table[self.table.process_of(t)].core_dump else {
            return Err(Errno::ENOSYS);
        };
        self.table.process_by_pid(of).filter(|p| self.table[*p].core_dump.is_dumped()).ok_or(Errno::ESRCH)
    }

    /// `skink_core_dump(what, which, buffer, bytes)`: what a writer must know of the process that it dumps.
    pub fn core_dump(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let p = self.dumped_by(t)?;
        let [what, which, buffer, bytes, ..] = *a;
        match what {
            core_dump::HEAD => {
                let head = self.core_head(p)?;
                self.write_bytes(t, buffer, head.as_bytes()).map(|()| 0)
            }
            core_dump::THREAD => {
                let next = self.table.threads_of(p).filter(|t| u64::from(self.table[*t].tid()) >= which);
                let Some(thread) = next.min_by_key(|t| self.table[*t].tid()) else { return Ok(0) };
                let mut registers = Registers::ZERO;
                self.system.registers(self.table[thread].endpoint(), &mut registers)?;
                self.write_bytes(t, buffer, registers.as_bytes())?;
                Ok(self.table[thread].tid().into())
            }
            core_dump::MEMORY => {
                let main = self.table[p].main().ok_or(Errno::ESRCH)?;
                let mut piece = fallible::filled(0, bytes.min(MAX_COPY) as usize)?;
                self.system.read(self.table[main].endpoint(), which, &mut piece)?;
                self.write_bytes(t, buffer, &piece).map(|()| piece.len() as u64)
            }
            core_dump::PRESENT => {
                let main = self.table[p].main().ok_or(Errno::ESRCH)?;
                let found = self.system.vm_present(self.table[main].endpoint(), which, bytes);
                let (start, end) = found.unwrap_or((bytes, bytes));
                self.write_words(t, buffer, [start, end]).map(|()| 0)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn core_head(&self, p: ProcessIndex) -> Result<CoreHead> {
        let process = &self.table[p];
        let CoreDump::Dumped { info, thread, .. } = process.core_dump else { return Err(Errno::ESRCH) };
        Ok(CoreHead {
            pid: process.pid(),
            parent: process.parent().map_or(0, |parent| self.table[parent].pid()),
            group: process.group(),
            session: process.session(),
            user: process.credentials.user.real,
            user_group: process.credentials.group.real,
            signal: info.signal.number().into(),
            thread,
            limit: process.limits.soft(limits::CORE),
            arguments: [process.arguments.start, process.arguments.end],
            auxiliary: [process.auxiliary.start, process.auxiliary.end],
            name: process.name.bytes(),
            info: info.to_bytes(),
        })
    }
}

impl<S: System> Pm<S> {
    /// A signal ends the process of a thread: at once, or after a core dump.
    pub fn end_by_signal(&mut self, t: ThreadIndex, info: SigInfo) {
        let p = self.programs.table.process_of(t);
        if self.programs.table[p].core_dump.is_dumped() {
            return;
        }
        if !self.programs.leaves_core(p, info.signal) || self.begin_dump(t, info).is_err() {
            self.end_process(p, Ending::Killed(info.signal));
        }
    }

    /// Stops the process for good, ends what its threads wait for, and lets the writer begin.
    fn begin_dump(&mut self, t: ThreadIndex, info: SigInfo) -> Result<()> {
        let p = self.programs.table.process_of(t);
        let thread = self.programs.table[t].tid();
        self.programs.table[p].core_dump = CoreDump::Dumped { info, thread, writer: 0 };
        let mut next = self.programs.table[p].main();
        while let Some(other) = next {
            next = self.programs.table[other].next();
            self.programs.system.stop(self.programs.table[other].endpoint());
            if other != t {
                self.poke(other);
            }
        }
        let writer = self.make_writer(t)?;
        self.programs.table[p].core_dump = CoreDump::Dumped { info, thread, writer };
        Ok(())
    }

    /// Makes the process that writes the dump, a child of the one that is dumped. Returns its pid.
    fn make_writer(&mut self, t: ThreadIndex) -> Result<u32> {
        let dumped = self.programs.table.process_of(t);
        let of = self.programs.table[dumped].pid();
        let mut arguments = Arguments::default();
        arguments.push(List::Argument, WRITER.as_bytes(), true)?;
        let execution =
            Rc::new(Execution { program: ProgramName::at(fallible::copied(WRITER.as_bytes())?), arguments });

        let endpoint = self.programs.system.fork(Endpoint::NONE)?;
        let writer = self.enter_child(t, endpoint)?;
        let p = self.programs.table.process_of(writer);
        let process = &mut self.programs.table[p];
        process.core_dump = CoreDump::Writing { of };
        process.exit_signal = None;
        process.control.dumpable = false;
        let identity = process.identity();
        let pid = identity.pid;
        let made = self.equip_writer(t, endpoint, identity).and_then(|()| {
            self.programs.table[writer].ready = true;
            match self.programs.begin_exec(writer, execution) {
                Step::Done(Err(error)) => Err(error),
                _ => Ok(pid),
            }
        });
        made.inspect_err(|_| {
            self.tear_down(writer);
            self.programs.table.release(p);
        })
    }

    fn equip_writer(&mut self, t: ThreadIndex, endpoint: Endpoint, identity: Identity) -> Result<()> {
        let dumped = self.programs.table[t].endpoint();
        self.programs.system.vm_fork(Endpoint::NONE, endpoint, false, identity.pid)?;
        let parts = self.programs.table[self.programs.table.process_of(t)].credentials.parts;
        self.programs.system.vfs_fork(dumped, endpoint, identity, 0, parts)
    }

    /// A process has ended: what follows for a dump that it had a part in.
    pub fn end_dump(&mut self, pid: u32, part: CoreDump, ending: Ending) {
        let other = match part {
            CoreDump::None => return,
            CoreDump::Dumped { writer, .. } => writer,
            CoreDump::Writing { of } => of,
        };
        let Some(p) = self.programs.table.process_by_pid(other) else { return };
        match self.programs.table[p].core_dump {
            CoreDump::Writing { of } if of == pid => self.exit_process(p, Ending::Killed(Signal::KILL)),
            CoreDump::Dumped { info, writer, .. } if writer == pid => {
                let is_written = ending == Ending::Exited(0);
                let signal = info.signal;
                self.exit_process(p, if is_written { Ending::Dumped(signal) } else { Ending::Killed(signal) });
            }
            _ => {}
        }
    }

    /// After a death of pm: ends the processes whose dump nobody writes.
    pub fn end_dumps_without_writer(&mut self, p: ProcessIndex) {
        let CoreDump::Dumped { info, writer, .. } = self.programs.table[p].core_dump else { return };
        let by = self.programs.table.process_by_pid(writer).filter(|_| writer != 0);
        let is_written =
            by.is_some_and(|by| self.programs.table[by].is_alive() && self.programs.table[by].core_dump.is_writing());
        if !is_written {
            self.exit_process(p, Ending::Killed(info.signal));
        }
    }
}
