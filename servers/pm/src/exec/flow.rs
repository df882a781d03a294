//! The steps of `execve`: copy path and arguments, let vfs find and load the image, change the memory, build the stack,
//! set the registers. Until vm has changed the memory every failure leaves the program as it was; after that it kills it.

use super::copy;
use super::stack::{self, Facts, Stack};
use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::arguments::{Arguments, Execution, PATH_BYTES};
use crate::state::containers::Kind;
use crate::state::control::ADDR_NO_RANDOMIZE;
use crate::state::credentials::{Credentials, Gain};
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::limits;
use crate::state::name::ShortName;
use crate::state::signal::{Signal, action, frame::AltStack};
use crate::state::thread::Doing;
use crate::state::wait::Ending;
use crate::system::{AT_FDCWD, FileEvent, NewMemory, ProgramName, System};
use abi::call::resume;
use abi::registers::Registers;
use abi::vfs::FileCapabilities;
use abi::{Errno, Part, Word, vfs, vm};
use alloc::rc::Rc;
use alloc::vec::Vec;
use sys::fallible;

/// execveat: do not follow a link.
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
/// execveat: an empty path means the file of the descriptor.
const AT_EMPTY_PATH: u64 = 0x1000;
/// Strings and pointers may fill a quarter of the stack, as in Linux.
const STACK_SHARE: u64 = 4;
/// Largest stack, however high its limit is.
const MAX_STACK_BYTES: u64 = 1 << 30;
/// Smallest stack, however low its limit is.
const MIN_STACK_BYTES: u64 = 128 * 1024;
/// Status of a process of pm's own that finds no program, as of a shell's.
const EXEC_FAILED: u8 = 127;
/// The program, what was executed, and for a script the interpreters with their arguments, and the script.
const TEXT_BYTES: usize = 4 * PATH_BYTES;

/// What vfs tells of a program that it has loaded.
struct ProgramText {
    /// Of its file.
    capabilities: Option<FileCapabilities>,
    executable: Rc<[u8]>,
    name: Vec<u8>,
    /// Of a script's interpreter.
    arguments: Option<Arguments>,
}

impl<S: System> Programs<S> {
    /// `execve(path, argv, envp)`.
    pub fn execve(&mut self, t: ThreadIndex, path: u64, argv: u64, envp: u64) -> Step {
        self.execveat(t, &[AT_FDCWD as u64, path, argv, envp, 0, 0, 0])
    }

    /// `execveat(directory, path, argv, envp, flags)`.
    pub fn execveat(&mut self, t: ThreadIndex, &[directory, path, argv, envp, flags, ..]: &[u64; 7]) -> Step {
        let flags = flags & 0xffff_ffff;
        let copied = self.copy_program(t, directory as i32, path, flags);
        let execution = copied.and_then(|program| self.copy_request(t, program, argv, envp));
        match execution {
            Ok(_) if flags & !(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0 => Errno::EINVAL.into(),
            Ok(execution) => self.begin_exec(t, execution),
            Err(error) => error.into(),
        }
    }

    fn copy_program(&mut self, t: ThreadIndex, directory: i32, path: u64, flags: u64) -> Result<ProgramName, Errno> {
        let path = copy::path(&mut self.system, self.table[t].endpoint(), path)?;
        if path.is_empty() && flags & AT_EMPTY_PATH == 0 {
            return Err(Errno::ENOENT);
        }
        Ok(ProgramName { directory, path, flags })
    }

    fn copy_request(
        &mut self,
        t: ThreadIndex,
        program: ProgramName,
        argv: u64,
        envp: u64,
    ) -> Result<Rc<Execution>, Errno> {
        let mut arguments = copy::arguments(&mut self.system, self.table[t].endpoint(), argv, envp)?;
        // As Linux: a program finds at least an empty argument.
        if arguments.argument_count() == 0 {
            arguments.replace_first(&[b""])?;
        }
        Ok(Rc::new(Execution { program, arguments }))
    }

    /// Asks vfs for the image. The thread waits for its event.
    pub fn begin_exec(&mut self, t: ThreadIndex, execution: Rc<Execution>) -> Step {
        match self.system.vfs_exec(self.table[t].endpoint(), &execution.program) {
            Ok(()) => {
                self.table[t].doing = Doing::Executing(execution);
                Step::Later
            }
            Err(error) => error.into(),
        }
    }

    /// A predecessor died with an `execve` in progress: vfs is asked once more. What was replaced already is replaced again.
    pub fn execute_again(&mut self, t: ThreadIndex) -> Step {
        let Doing::Executing(execution) = &self.table[t].doing else { return Step::Later };
        let execution = Rc::clone(execution);
        self.begin_exec(t, execution)
    }

    /// The path of the program, the name that was executed, and for a script the arguments of its interpreter in place of those given.
    fn program_text(&mut self, t: ThreadIndex, event: &FileEvent, given: &Arguments) -> Result<ProgramText, Errno> {
        let mut text = [0; TEXT_BYTES];
        let length = self.system.vfs_exec_text(self.table[t].endpoint(), &mut text)?;
        let text = &text[..length.min(TEXT_BYTES)];
        let (capabilities, text) = match event.values[2] & vfs::EXEC_CAPABILITIES {
            0 => (None, text),
            _ => {
                let (first, rest) = FileCapabilities::take(text).ok_or(Errno::EIO)?;
                (Some(first), rest)
            }
        };
        let mut parts = text.strip_suffix(b"\0").unwrap_or(text).split(|&byte| byte == 0);
        let executable = Rc::from(parts.next().unwrap_or(&[]));
        let name = fallible::copied(parts.next().unwrap_or(&[]))?;
        let first: Vec<&[u8]> = fallible::collect(parts)?;
        if first.is_empty() {
            return Ok(ProgramText { capabilities, executable, name, arguments: None });
        }
        let mut arguments = given.try_clone()?;
        arguments.replace_first(&first)?;
        Ok(ProgramText { capabilities, executable, name, arguments: Some(arguments) })
    }

    /// Who the process is as the program, and AT_SECURE: the C library must not trust its environment. `EPERM`.
    fn next_credentials(
        &self,
        p: ProcessIndex,
        event: &FileEvent,
        file: Option<FileCapabilities>,
    ) -> Result<(Credentials, bool), Errno> {
        let [_, _, flags, owner] = event.values;
        let is_forbidden = self.table[p].control.no_new_privileges;
        let has = |flag| flags & flag != 0 && !is_forbidden;
        let users = self.table[p].credentials.parts.of(Part::Users);
        // In a container only its own users give anything.
        let is_own =
            |kind, id: u32| users == 0 || self.table.containers.map(users, kind).is_some_and(|map| map.outside == id);
        let (user, group) = (owner as u32, (owner >> 32) as u32);
        let gain = Gain {
            user: has(vfs::EXEC_SETUID).then_some(user).filter(|user| is_own(Kind::Users, *user)),
            group: has(vfs::EXEC_SETGID).then_some(group).filter(|group| is_own(Kind::Groups, *group)),
            file: file.filter(|_| users == 0),
            superuser: self.table.superuser(p),
            is_forbidden,
            is_seen: self.is_traced_by_others(p),
        };
        self.table[p].credentials.after_exec(&gain)
    }

    /// Makes the process what the new program is.
    fn take_credentials(&mut self, p: ProcessIndex, new: Credentials) {
        let old = &self.table[p].credentials;
        let changes = (old.file_word(), old.capabilities) != (new.file_word(), new.capabilities);
        self.forget_answers_of_all(p);
        self.table[p].credentials = new;
        if changes {
            self.tell_vfs_ids(p);
        }
    }
}

impl<S: System> Pm<S> {
    /// vfs has the image of a program, or an error.
    pub fn exec_ready(&mut self, event: &FileEvent) {
        let Some(t) = self.programs.table.find(event.process).filter(|t| !self.programs.is_over(*t)) else { return };
        // What is executed stays in the table until it runs, so that a successor of pm can begin again.
        let Doing::Executing(execution) = &self.programs.table[t].doing else { return };
        let execution = Rc::clone(execution);
        let loaded = Result::from_word(event.values[0]);
        let outcome = loaded.and_then(|image| self.replace(t, &execution, event, image));
        let Err(error) = outcome else { return };
        let p = self.programs.table.process_of(t);
        if !self.programs.is_new_of_pm(p) {
            self.finish(t, Err(error));
        } else if self.programs.table.is_first(p) {
            self.programs.first_exec_failed(t, &execution.program.path, error);
        } else {
            self.exit_process(p, Ending::Exited(EXEC_FAILED));
        }
    }

    /// Replaces the program. On an error the old program continues unchanged.
    fn replace(&mut self, t: ThreadIndex, execution: &Execution, event: &FileEvent, image: u64) -> Result<(), Errno> {
        let p = self.programs.table.process_of(t);
        let text = self.programs.program_text(t, event, &execution.arguments)?;
        let arguments = text.arguments.as_ref().unwrap_or(&execution.arguments);
        let stack_bytes = self.programs.table[p].limits.soft(limits::STACK).clamp(MIN_STACK_BYTES, MAX_STACK_BYTES);
        let pointers = 8 * (arguments.argument_count() + arguments.environment().count());
        if (arguments.strings().len() + pointers) as u64 > (stack_bytes / STACK_SHARE).max(MIN_STACK_BYTES) {
            return Err(Errno::E2BIG);
        }
        let (credentials, secure) = self.programs.next_credentials(p, event, text.capabilities)?;
        let process = self.programs.table[t].endpoint();
        // Their memory is replaced next. They stay released if vm refuses the exec.
        let mut next = self.programs.table[p].main();
        while let Some(thread) = next {
            next = self.programs.table[thread].next();
            self.programs.release_robust_futexes(thread);
        }
        if self.programs.table[p].shares_memory {
            self.programs.clear_tid(t);
        }
        let request =
            vm::Exec { process, image, interpreter: event.values[1], stack_bytes, seed: self.placement_seed(p, event) };
        let memory = self.programs.system.vm_exec(request)?;

        let tid = self.programs.table[t].tid();
        self.end_other_threads(t);
        self.note_exec(t, tid);
        self.programs.system.vfs_exec_commit(process);
        self.programs.take_credentials(p, credentials);
        self.programs.table[p].shares_memory = false;
        self.programs.table.renew_memory(p);
        self.programs.table[p].memory_limits.stack = stack_bytes;
        self.programs.tell_vm_limits(p);
        self.programs.table[p].control = self.programs.table[p].control.for_program(secure);
        let facts = self.facts(p, &memory, secure);
        let built = stack::build(arguments, &text.name, &facts, memory.stack_end, stack_bytes);
        let written = built.and_then(|stack| {
            self.programs.system.write(process, stack.pointer, &stack.bytes).ok()?;
            Some(stack)
        });
        match written {
            Some(stack) => self.start_program(t, &text.name, text.executable, &stack, memory.start),
            None => self.exit_process(p, Ending::Killed(Signal::KILL)),
        }
        Ok(())
    }

    /// The thread that made the call becomes the only one, with the process's id.
    fn end_other_threads(&mut self, t: ThreadIndex) {
        let p = self.programs.table.process_of(t);
        let own = self.programs.table[t].endpoint();
        while let Some(other) = self.programs.table.first_thread_where(p, |thread| thread.endpoint() != own) {
            self.tear_down(other);
        }
        if self.programs.table.make_main(t) {
            self.programs.system.start(own, self.programs.table[t].tid());
        }
    }

    /// The random number that decides where the parts of the next program lie; 0: they lie at fixed addresses.
    fn placement_seed(&mut self, p: ProcessIndex, event: &FileEvent) -> u64 {
        let mut seed = [0; 8];
        // Nobody chooses for a program with other rights.
        let may_choose = event.values[2] & (vfs::EXEC_SETUID | vfs::EXEC_SETGID) == 0;
        let is_fixed = may_choose && self.programs.table[p].control.personality & ADDR_NO_RANDOMIZE != 0;
        if self.places_randomly && !is_fixed {
            self.random.fill(&mut seed);
        }
        u64::from_ne_bytes(seed)
    }

    fn facts(&mut self, p: ProcessIndex, memory: &NewMemory, secure: bool) -> Facts {
        let mut random = [0; 16];
        self.random.fill(&mut random);
        let credentials = &self.programs.table[p].credentials;
        let (user, group) = (credentials.user, credentials.group);
        Facts {
            phdr: memory.phdr,
            phdr_count: memory.phdr_count,
            interpreter_base: memory.interpreter_base,
            entry: memory.entry,
            vdso: memory.stack_end + abi::layout::VDSO_OFFSET,
            ids: [user.real, user.effective, group.real, group.effective].map(u64::from),
            secure,
            random,
        }
    }

    fn start_program(&mut self, t: ThreadIndex, path: &[u8], executable: Rc<[u8]>, stack: &Stack, start: u64) {
        let p = self.programs.table.process_of(t);
        let is_new_of_pm = self.programs.is_new_of_pm(p);
        let process = &mut self.programs.table[p];
        action::reset_for_exec(&mut process.actions);
        process.name = ShortName::of_path(path);
        process.executable = Some(executable);
        process.arguments = stack.arguments.clone();
        process.environment = stack.environment.clone();
        process.auxiliary = stack.auxiliary.clone();
        process.executed = true;
        let thread = &mut self.programs.table[t];
        thread.doing = Doing::Running;
        thread.stack = AltStack::NONE;
        thread.clear_tid = 0;
        thread.own_name = None;
        self.delete_posix_timers(p);
        self.end_vfork(p);

        let endpoint = self.programs.table[t].endpoint();
        let mut registers = Registers { rip: start, rsp: stack.pointer, ..Registers::ZERO };
        if is_new_of_pm {
            // The thread does not wait for pm, it has never run.
            let set = self.programs.system.set_registers(endpoint, &registers, 0);
            debug_assert!(set.is_ok(), "the thread is pm's own");
            self.programs.system.start(endpoint, self.programs.table[t].tid());
        } else if self.programs.table[p].stopped().is_some() && !self.programs.table.is_traced(t) {
            let set = self.programs.system.set_registers(endpoint, &registers, resume::READY);
            debug_assert!(set.is_ok(), "the thread waits for pm");
            self.programs.interrupt(t);
        } else {
            self.deliver(t, &mut registers, None);
        }
    }
}
