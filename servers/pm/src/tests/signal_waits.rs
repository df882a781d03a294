//! `pause`, `rt_sigsuspend` and `rt_sigtimedwait`, and what happens to a thread that waits when a signal is to end its process.

use super::fake::Told;
use super::{Answer, DONE, MEMORY, SECOND, World, failed};
use abi::endpoint::slot;
use abi::linux::nr;
use abi::{Endpoint, Errno, vfs};

const BUFFER: u64 = MEMORY.start + 0x100;
const INFO: u64 = BUFFER + 0x100;
const USR1: u64 = 10;
const USR2: u64 = 12;
const TERM: u64 = 15;
const CHLD: u64 = 17;
const CONT: u64 = 18;
const STOP: u64 = 19;
const TSTP: u64 = 20;
const UNSTOPPABLE: u64 = bit(9) | bit(19);
const HANDLER: u64 = 0xaaaa;
const EINTR: u64 = -4i64 as u64;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;

const fn bit(signal: u64) -> u64 {
    1 << (signal - 1)
}

/// A shell in a session of its own, and a child of it in a group of its own, which blocks some signals.
struct Scene {
    world: World,
    shell: Endpoint,
    pid: u64,
    child: Endpoint,
}

fn scene(blocked: u64) -> Scene {
    let mut world = World::new();
    let (_, shell) = world.fork(world.init);
    world.call(shell, nr::SETSID, &[]).unwrap().unwrap();
    let (pid, child) = world.fork(shell);
    assert_eq!(world.call(shell, nr::SETPGID, &[pid, pid]), DONE);
    world.write(child, BUFFER, &[blocked]);
    assert_eq!(world.call(child, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]), DONE);
    Scene { world, shell, pid, child }
}

impl Scene {
    fn kill(&mut self, signal: u64) {
        assert_eq!(self.world.call(self.shell, nr::KILL, &[self.pid, signal]), DONE);
    }

    fn tkill(&mut self, signal: u64) {
        assert_eq!(self.world.call(self.shell, nr::TKILL, &[self.pid, signal]), DONE);
    }

    fn set_action(&mut self, signal: u64, handler: u64) {
        self.world.write(self.child, BUFFER, &[handler, 0x0400_0000, 0xbbbb, 0]);
        assert_eq!(self.world.call(self.child, nr::RT_SIGACTION, &[signal, BUFFER, 0, 8]), DONE);
        self.world.thread(self.child).registers.rsp = MEMORY.end - 64;
    }

    fn suspend(&mut self, mask: u64) -> Answer {
        self.world.write(self.child, BUFFER, &[mask]);
        self.world.call(self.child, nr::RT_SIGSUSPEND, &[BUFFER, 8])
    }

    /// Waits for signals of a set, for at most this time.
    fn wait_for(&mut self, set: u64, limit: Option<[u64; 2]>) -> Answer {
        let [seconds, nanoseconds] = limit.unwrap_or_default();
        self.world.write(self.child, BUFFER, &[set, seconds, nanoseconds]);
        let limit = if limit.is_some() { BUFFER + 8 } else { 0 };
        self.world.call(self.child, nr::RT_SIGTIMEDWAIT, &[BUFFER, INFO, limit, 8])
    }

    fn mask(&mut self) -> u64 {
        assert_eq!(self.world.call(self.child, nr::RT_SIGPROCMASK, &[0, 0, BUFFER, 8]), DONE);
        self.world.read(self.child, BUFFER)
    }

    fn pending(&mut self) -> u64 {
        assert_eq!(self.world.call(self.child, nr::RT_SIGPENDING, &[BUFFER, 8]), DONE);
        self.world.read(self.child, BUFFER)
    }

    fn runs_handler_of(&mut self, signal: u64) -> bool {
        let registers = self.world.thread(self.child).registers;
        registers.rip == HANDLER && registers.rdi == signal
    }

    /// Returns from a handler. Returns the result of the call that it interrupted.
    fn sigreturn(&mut self) -> u64 {
        self.world.thread(self.child).registers.rsp += 8;
        self.world.call(self.child, nr::RT_SIGRETURN, &[]);
        self.world.thread(self.child).registers.rax
    }

    fn is_stopped(&mut self) -> bool {
        self.world.call(self.shell, nr::WAITID, &[1, self.pid, 0, 2 | 1 | 0x0100_0000, 0]).unwrap().unwrap();
        self.world.call(self.shell, nr::WAIT4, &[self.pid, 0, 2 | 1, 0]) == Some(Ok(self.pid))
    }
}

#[test]
fn pause_ends_with_eintr_behind_a_handler() {
    let mut s = scene(0);
    s.set_action(USR1, HANDLER);
    assert_eq!(s.world.call(s.child, nr::PAUSE, &[]), None);
    s.kill(CHLD);
    assert!(s.world.thread(s.child).waits, "an ignored signal ends nothing");
    s.kill(USR1);
    assert!(s.runs_handler_of(USR1));
    assert_eq!(s.sigreturn(), EINTR);
}

#[test]
fn pause_does_not_begin_while_a_handler_is_to_run() {
    let mut s = scene(0);
    s.set_action(USR1, HANDLER);
    s.kill(USR1);
    assert_eq!(s.world.call(s.child, nr::PAUSE, &[]), None);
    assert!(s.runs_handler_of(USR1));
    assert_eq!(s.sigreturn(), EINTR);
}

#[test]
fn sigsuspend_waits_with_another_mask() {
    let mut s = scene(bit(USR1));
    s.set_action(USR1, HANDLER);
    s.set_action(USR2, HANDLER);
    assert_eq!(s.suspend(bit(USR2) | UNSTOPPABLE), None);
    s.kill(USR2);
    assert!(s.world.thread(s.child).waits, "blocked meanwhile");
    s.kill(USR1);
    assert!(s.runs_handler_of(USR1));
    assert_eq!(s.mask(), bit(USR2) | bit(USR1), "and in the handler");
    s.world.thread(s.child).registers.rsp += 8;
    s.world.call(s.child, nr::RT_SIGRETURN, &[]);
    assert!(s.runs_handler_of(USR2), "it is open again");
    assert_eq!(s.sigreturn(), EINTR);
    assert_eq!(s.mask(), bit(USR1));
    for (mask, bytes, error) in [(BUFFER, 7, Errno::EINVAL), (BUFFER, 16, Errno::EINVAL), (8, 8, Errno::EFAULT)] {
        assert_eq!(s.world.call(s.child, nr::RT_SIGSUSPEND, &[mask, bytes]), failed(error));
    }
}

#[test]
fn the_mask_of_sigsuspend_is_over_when_its_handler_runs() {
    let mut s = scene(bit(USR1) | bit(TERM));
    s.set_action(USR1, HANDLER);
    s.set_action(USR2, HANDLER);
    assert_eq!(s.suspend(0), None);
    s.kill(USR1);
    assert_eq!(s.mask(), bit(USR1));
    s.kill(USR2);
    s.world.report_interrupted(s.child, None);
    assert!(s.runs_handler_of(USR2));
    s.sigreturn();
    assert_eq!(s.mask(), bit(USR1), "that of the first handler");
    s.sigreturn();
    assert_eq!(s.mask(), bit(USR1) | bit(TERM));
}

#[test]
fn kill_and_stop_reach_a_thread_that_has_suspended_itself() {
    let mut s = scene(0);
    assert_eq!(s.suspend(u64::MAX), None);
    s.kill(STOP);
    assert!(s.is_stopped());
    s.kill(CONT);
    assert!(s.world.thread(s.child).waits, "it waits on");
    s.kill(9);
    assert!(!s.world.is_there(s.child));
}

#[test]
fn an_ignored_signal_that_was_blocked_vanishes_in_sigsuspend() {
    for to_thread in [false, true] {
        let mut s = scene(bit(USR1) | bit(USR2));
        s.set_action(USR1, 1);
        s.set_action(USR2, HANDLER);
        if to_thread {
            s.tkill(USR1)
        } else {
            s.kill(USR1)
        }
        assert_eq!(s.pending(), bit(USR1), "it is kept while it is blocked");
        assert_eq!(s.suspend(bit(USR2)), None);
        assert!(s.world.thread(s.child).waits);
        s.kill(USR2);
        assert_eq!(s.suspend(0), None);
        assert!(s.runs_handler_of(USR2));
        assert_eq!(s.pending(), 0);
    }
}

#[test]
fn a_fatal_signal_that_was_blocked_ends_a_process_in_sigsuspend() {
    for to_thread in [false, true] {
        let mut s = scene(bit(TERM));
        if to_thread {
            s.tkill(TERM)
        } else {
            s.kill(TERM)
        }
        assert_eq!(s.suspend(0), Some(Err(Errno::EINTR)));
        s.world.report_interrupted(s.child, None);
        assert!(!s.world.is_there(s.child));
    }
}

#[test]
fn a_stop_that_was_blocked_stops_a_process_in_sigsuspend() {
    let mut s = scene(bit(TSTP));
    s.set_action(USR1, HANDLER);
    s.kill(TSTP);
    assert_eq!(s.suspend(0), None);
    assert!(s.is_stopped());
    s.kill(USR1);
    assert!(!s.runs_handler_of(USR1));
    s.kill(CONT);
    assert!(s.runs_handler_of(USR1));
    assert_eq!(s.sigreturn(), EINTR);
    assert_eq!(s.mask(), bit(TSTP));
}

#[test]
fn a_stop_that_was_blocked_stops_the_process_when_it_is_let_in() {
    let mut s = scene(bit(TSTP));
    s.kill(TSTP);
    s.world.write(s.child, BUFFER, &[0]);
    assert_eq!(s.world.call(s.child, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]), None);
    assert!(s.is_stopped());
    s.kill(CONT);
    assert_eq!(s.world.answer(s.child), DONE, "the result of the call comes then");
}

#[test]
fn an_orphan_is_not_stopped_by_what_it_lets_in() {
    let mut s = scene(bit(TSTP));
    s.set_action(USR1, HANDLER);
    s.kill(TSTP);
    s.world.call(s.shell, nr::EXIT_GROUP, &[0]);
    s.world.write(s.child, BUFFER, &[0]);
    assert_eq!(s.world.call(s.child, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]), None);
    assert!(!s.world.thread(s.child).waits, "it runs on");
    assert_eq!(s.world.thread(s.child).registers.rax, 0);
    s.world.call(s.world.init, nr::KILL, &[s.pid, USR1]);
    assert!(s.world.thread(s.child).interrupted);
}

#[test]
fn a_wait_for_signals_takes_one_of_its_set_with_its_siginfo() {
    let mut s = scene(bit(USR1) | bit(USR2) | bit(CHLD));
    s.world.write(s.child, INFO, &[9; 17]);
    let sender = s.world.call(s.shell, nr::GETPID, &[]).unwrap().unwrap();
    s.kill(USR1);
    s.tkill(USR2);
    assert_eq!(s.wait_for(bit(USR2) | bit(CHLD), None), Some(Ok(USR2)));
    let tkill = -6i32 as u32 as u64;
    let words: [u64; 17] = s.world.words(s.child, INFO);
    assert_eq!(words[..3], [USR2, tkill, sender]);
    assert_eq!((&words[3..16], words[16]), (&[0; 13][..], 9), "128 bytes are written");
    assert_eq!(s.pending(), bit(USR1));
    assert_eq!(s.wait_for(bit(CHLD), None), None);
    s.kill(CHLD);
    assert_eq!(s.world.answer(s.child), Some(Ok(CHLD)), "even one that is ignored");
    assert_eq!(s.pending(), bit(USR1));
}

#[test]
fn the_threads_own_signal_is_taken_before_that_of_the_process() {
    let mut s = scene(u64::MAX);
    s.kill(USR1);
    s.tkill(USR2);
    for wanted in [USR2, USR1] {
        assert_eq!(s.wait_for(bit(USR1) | bit(USR2), None), Some(Ok(wanted)));
    }
}

#[test]
fn a_signal_goes_to_the_thread_that_waits_for_it() {
    let mut s = scene(bit(USR1));
    let tid = s.world.call(s.child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = s.world.newest();
    s.world.write(second, BUFFER, &[bit(USR1)]);
    let wait = [BUFFER, 0, 0, 8];
    assert_eq!(s.world.call(second, nr::RT_SIGTIMEDWAIT, &wait), None);
    s.tkill(USR1);
    assert_eq!(s.world.answer(second), None, "it was for the other one");
    s.kill(USR1);
    assert_eq!(s.world.answer(second), Some(Ok(USR1)));
    assert_eq!(s.world.call(second, nr::RT_SIGTIMEDWAIT, &wait), None);
    s.world.call(s.shell, nr::TKILL, &[tid, USR1]);
    assert_eq!(s.world.answer(second), Some(Ok(USR1)));
    assert_eq!(s.pending(), bit(USR1));
}

#[test]
fn a_timed_wait_for_signals_leaves_no_timer() {
    let mut s = scene(u64::MAX);
    s.world.set_time(5 * SECOND);
    assert_eq!(s.wait_for(bit(USR1), Some([2, 7])), None);
    assert_eq!(s.world.pm.programs.system.alarm, Some(7 * SECOND + 7));
    s.kill(USR1);
    assert_eq!(s.world.answer(s.child), Some(Ok(USR1)));
    assert_eq!(s.world.pm.programs.system.alarm, None);
    s.kill(USR1);
    assert_eq!(s.wait_for(bit(USR1), Some([2, 0])), Some(Ok(USR1)), "at once");
    assert_eq!(s.world.pm.programs.system.alarm, None);
    assert_eq!(s.wait_for(bit(USR1), Some([0, 0])), None);
    assert_eq!(s.world.pm.programs.system.alarm, Some(5 * SECOND));
    s.world.set_time(5 * SECOND);
    assert_eq!(s.world.answer(s.child), failed(Errno::EAGAIN));
}

#[test]
fn a_handler_for_another_signal_ends_the_wait() {
    let mut s = scene(bit(USR1));
    s.set_action(USR2, HANDLER);
    assert_eq!(s.wait_for(bit(USR1), Some([2, 0])), None);
    s.kill(USR2);
    assert!(s.runs_handler_of(USR2));
    assert_eq!(s.world.pm.programs.system.alarm, None);
    assert_eq!(s.sigreturn(), EINTR);
    s.kill(USR2);
    assert_eq!(s.wait_for(bit(USR1), Some([2, 0])), None);
    assert!(s.runs_handler_of(USR2), "or keeps it from beginning");
    assert_eq!(s.world.pm.programs.system.alarm, None);
    assert_eq!(s.sigreturn(), EINTR);
}

#[test]
fn a_wait_for_signals_checks_its_arguments() {
    let mut s = scene(u64::MAX);
    s.kill(USR1);
    let call = |s: &mut Scene, arguments: [u64; 4]| s.world.call(s.child, nr::RT_SIGTIMEDWAIT, &arguments);
    s.world.write(s.child, BUFFER, &[bit(USR1) | UNSTOPPABLE, 1, SECOND]);
    assert_eq!(call(&mut s, [BUFFER, 0, 0, 7]), failed(Errno::EINVAL));
    assert_eq!(call(&mut s, [8, 0, 0, 8]), failed(Errno::EFAULT));
    assert_eq!(call(&mut s, [BUFFER, 0, 8, 8]), failed(Errno::EFAULT));
    assert_eq!(call(&mut s, [BUFFER, 0, BUFFER + 8, 8]), failed(Errno::EINVAL));
    assert_eq!(call(&mut s, [BUFFER, 8, 0, 8]), failed(Errno::EFAULT), "of the siginfo");
    assert_eq!(s.pending(), 0);
}

#[test]
fn who_waits_when_a_fatal_signal_comes_wakes_to_die() {
    for call in [nr::WAIT4, nr::PAUSE, nr::NANOSLEEP, nr::RT_SIGTIMEDWAIT, nr::SEMOP] {
        let mut s = scene(0);
        s.world.write(s.child, BUFFER, &[bit(USR1), 3, 0]);
        s.world.write_bytes(s.child, BUFFER + 64, &[0, 0, 0xff, 0xff, 0, 0]);
        let set = s.world.call(s.child, nr::SEMGET, &[0, 1, 0o600]).unwrap().unwrap();
        if call == nr::WAIT4 {
            s.world.fork(s.child);
        }
        let arguments = match call {
            nr::WAIT4 => [u64::MAX, 0, 0, 0],
            nr::NANOSLEEP => [BUFFER + 8, 0, 0, 0],
            nr::RT_SIGTIMEDWAIT => [BUFFER, 0, BUFFER + 8, 8],
            _ => [set, BUFFER + 64, 1, 0],
        };
        assert_eq!(s.world.call(s.child, call, &arguments), None, "call {call}");
        s.kill(TERM);
        assert_eq!(s.world.answer(s.child), failed(Errno::EINTR), "call {call}");
        assert_eq!(s.world.pm.programs.system.alarm, None);
        s.world.report_interrupted(s.child, None);
        assert!(!s.world.is_there(s.child));
    }
}

#[test]
fn who_cannot_wake_dies_at_once() {
    let mut s = scene(0);
    assert_eq!(s.world.call(s.child, nr::VFORK, &[]), None);
    s.kill(TERM);
    assert!(!s.world.is_there(s.child));
    let mut s = scene(0);
    s.world.write_bytes(s.child, BUFFER, b"/x\0");
    assert_eq!(s.world.call(s.child, nr::EXECVE, &[BUFFER, 0, 0]), None);
    s.kill(TERM);
    assert!(!s.world.is_there(s.child));
}

impl Scene {
    fn masked_wait(&mut self, mask: u64) {
        self.world.thread(self.child).blocked_on = Endpoint::current(slot::VFS);
        self.world.file_event(vfs::EVENT_MASK, self.child, [mask, 0, 0, 0]);
    }

    fn masked_wait_ends(&mut self) -> bool {
        self.world.file_event(vfs::EVENT_MASK_END, self.child, [0; 4]);
        self.world.pm.programs.system.told.last() == Some(&Told::Unmasked(self.child))
    }

    fn is_cancelled(&mut self) -> bool {
        self.world.pm.programs.system.cancelled.contains(&(self.child, Errno::ERESTARTSYS))
    }
}

#[test]
fn a_signal_that_the_mask_of_a_wait_in_vfs_lets_through_ends_it() {
    for pending_before in [true, false] {
        let mut s = scene(bit(CHLD));
        s.set_action(CHLD, HANDLER);
        if pending_before {
            s.kill(CHLD);
        }
        s.masked_wait(0);
        if !pending_before {
            assert!(!s.is_cancelled());
            s.kill(CHLD);
        }
        assert!(s.is_cancelled());
        assert!(s.masked_wait_ends());
        s.world.report_interrupted(s.child, Some((nr::PSELECT6, Err(Errno::EINTR))));
        assert!(s.runs_handler_of(CHLD));
        assert_eq!(s.sigreturn(), EINTR);
        assert_eq!(s.mask(), bit(CHLD), "its own mask is back");
    }
}

#[test]
fn a_wait_in_vfs_without_signal_leaves_the_mask_as_it_was() {
    let mut s = scene(bit(USR1));
    s.masked_wait(bit(USR2) | UNSTOPPABLE);
    assert_eq!(s.mask(), bit(USR2));
    s.masked_wait(bit(USR2));
    assert!(s.masked_wait_ends() && !s.is_cancelled());
    assert_eq!(s.mask(), bit(USR1));
    assert!(s.masked_wait_ends(), "an end that comes twice");
    assert_eq!(s.mask(), bit(USR1));
}

#[test]
fn an_ignored_signal_does_not_end_a_wait_in_vfs() {
    let mut s = scene(bit(CHLD));
    s.kill(CHLD);
    s.masked_wait(0);
    assert!(!s.is_cancelled());
    assert_eq!(s.pending(), 0);
}
