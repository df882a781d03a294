//! The first process, which no other has forked, and its program.

use crate::pm::Step;
use crate::programs::Programs;
use crate::state::arguments::{Arguments, Execution, List};
use crate::state::index::ThreadIndex;
use crate::system::{Identity, ProgramName, System};
use abi::{Endpoint, Errno, Parts};
use alloc::rc::Rc;
use sys::fallible;

type Result<T> = core::result::Result<T, Errno>;

/// Programs that may become the first one, in order of preference.
const FIRST_PROGRAMS: [&str; 2] = ["/sbin/init", "/bin/sh"];
const FIRST_ENVIRONMENT: [&str; 2] = ["HOME=/", "TERM=linux"];
/// Its process id.
const FIRST_PID: u32 = 1;

impl<S: System> Programs<S> {
    /// Makes the first process and lets it exec. `EEXIST`: there is one.
    pub fn boot(&mut self) -> Result<u64> {
        if self.table.first().is_some() {
            return Err(Errno::EEXIST);
        }
        let endpoint = self.system.fork(Endpoint::NONE)?;
        let t = ThreadIndex::of(endpoint).ok_or(Errno::EAGAIN)?;
        let identity = Identity { pid: FIRST_PID, generation: 0 };
        self.system.vm_fork(Endpoint::NONE, endpoint, false, FIRST_PID)?;
        self.system.vfs_fork(Endpoint::NONE, endpoint, identity, 0, Parts::SYSTEM)?;
        let p = self.table.allocate_process()?;
        let started_ns = self.system.time_ns().0;
        self.table.enter_first_process(p, FIRST_PID, started_ns);
        self.table.add_thread(t, endpoint, p, FIRST_PID);
        self.table[t].ready = true;
        self.exec_first(t, 0);
        Ok(0)
    }

    /// Tries the first programs from `index` on.
    fn exec_first(&mut self, t: ThreadIndex, index: usize) {
        let Some(path) = FIRST_PROGRAMS.get(index) else {
            return self.system.log(format_args!("there is no first program; put one at /sbin/init"));
        };
        let mut arguments = Arguments::default();
        let strings =
            [(List::Argument, *path)].into_iter().chain(FIRST_ENVIRONMENT.map(|text| (List::Environment, text)));
        for (list, text) in strings {
            if arguments.push(list, text.as_bytes(), true).is_err() {
                return self.system.log(format_args!("no memory for the first program"));
            }
        }
        let Ok(path) = fallible::copied(path.as_bytes()) else {
            return self.system.log(format_args!("no memory for the first program"));
        };
        let execution = Rc::new(Execution { program: ProgramName::at(path), arguments });
        if let Step::Done(Err(error)) = self.begin_exec(t, execution) {
            self.first_program_failed(t, index, error);
        }
    }

    /// vfs could not give the first program.
    pub fn first_exec_failed(&mut self, t: ThreadIndex, path: &[u8], error: Errno) {
        let index = FIRST_PROGRAMS.iter().position(|known| known.as_bytes() == path).unwrap_or(FIRST_PROGRAMS.len());
        self.first_program_failed(t, index, error);
    }

    fn first_program_failed(&mut self, t: ThreadIndex, index: usize, error: Errno) {
        let name = FIRST_PROGRAMS.get(index).unwrap_or(&"the first program");
        self.system.log(format_args!("cannot start {name}: {error}"));
        self.exec_first(t, index + 1);
    }
}
