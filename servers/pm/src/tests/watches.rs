//! Watched places of traced threads: steps that nobody sees, and the one that a tracer does, whatever pm dies of meanwhile.

use super::MEMORY;
use super::deaths::{BUFFER, Mortal, at_every_step};
use abi::call::resume;
use abi::linux::nr;
use abi::registers::Registers;
use abi::{Endpoint, kernel};

const CONT: u64 = 7;
const ATTACH: u64 = 16;
/// CLONE_VM, CLONE_SIGHAND and CLONE_THREAD.
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;
const POKEUSER: u64 = 6;
const PEEKUSER: u64 = 3;
const SIGSTOP: u64 = 19;
const SIGTRAP: u64 = 5;
const WALL_NOHANG: u64 = 0x4000_0001;
/// Offset of DR0 in `struct user`.
const DEBUG: u64 = 848;
/// The first place, of eight bytes, is watched for stores.
const STORES: u64 = 0x9_0001;
/// The second one is watched for execution.
const EXECUTION: u64 = 0x4;
const PLACE: u64 = MEMORY.start + 0x1000;
const CODE: u64 = MEMORY.start + 0x2000;
const STACK: u64 = MEMORY.end - 64;
const TRAP_FLAG: u64 = 0x100;
const DEBUG_EXCEPTION: u64 = 1;

/// What a wait of the first process finds: `None`: nothing has happened.
fn status(m: &mut Mortal, pid: u64) -> Option<u32> {
    let init = m.world.init;
    let found = m.call(init, nr::WAIT4, &[pid, BUFFER, WALL_NOHANG, 0]).expect("answered").expect("a child");
    (found == pid).then(|| m.world.read(init, BUFFER) as u32)
}

fn request(m: &mut Mortal, number: u64, pid: u64, address: u64, data: u64) {
    let init = m.world.init;
    assert_eq!(m.call(init, nr::PTRACE, &[number, pid, address, data]), Some(Ok(0)));
}

fn debug_register(m: &mut Mortal, pid: u64, n: u64) -> u64 {
    request(m, PEEKUSER, pid, DEBUG + 8 * n, BUFFER);
    m.world.read(m.world.init, BUFFER)
}

/// A child of the first process that runs, watched as `control` says.
fn watched_child(m: &mut Mortal, control: u64) -> (u64, Endpoint) {
    let (pid, child) = m.fork(m.world.init);
    assert_eq!(m.call(child, nr::PTRACE, &[0, 0, 0, 0]), Some(Ok(0)));
    assert_eq!(m.call(child, nr::KILL, &[pid, SIGSTOP]), Some(Ok(0)));
    watch(m, pid, child, control);
    (pid, child)
}

/// Another thread of a child, which runs watched as the child is.
fn watched_thread(m: &mut Mortal, child: Endpoint) -> (u64, Endpoint) {
    let init = m.world.init;
    let tid = m.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).expect("answered").expect("cloned");
    let thread = m.world.newest();
    assert_eq!(m.call(init, nr::PTRACE, &[ATTACH, tid, 0, 0]), Some(Ok(0)));
    watch(m, tid, thread, STORES);
    (tid, thread)
}

/// A traced thread that is about to stop by SIGSTOP runs on, watched as `control` says.
fn watch(m: &mut Mortal, id: u64, thread: Endpoint, control: u64) {
    m.report_interrupted(thread);
    assert_eq!(status(m, id), Some((SIGSTOP << 8 | 0x7f) as u32));
    m.thread(thread).registers = Registers { rip: CODE, rsp: STACK, ..Registers::ZERO };
    request(m, POKEUSER, id, DEBUG, PLACE);
    request(m, POKEUSER, id, DEBUG + 8, CODE + 3);
    request(m, POKEUSER, id, DEBUG + 56, control);
    request(m, CONT, id, 0, 0);
}

/// The thread runs an instruction, and the processor tells of the step.
fn step(m: &mut Mortal, thread: Endpoint, run: impl Fn(&mut Mortal, &mut Registers)) {
    assert_eq!(m.thread(thread).resumed, resume::READY | resume::REPORT_CALLS);
    let mut registers = m.thread(thread).registers;
    assert_ne!(registers.rflags & TRAP_FLAG, 0);
    registers.rip += 1;
    run(m, &mut registers);
    let entry = m.thread(thread);
    (entry.registers, entry.resumed) = (registers, 0);
    let step = kernel::Exception { vector: DEBUG_EXCEPTION, error: 0, ip: registers.rip, address: 0 };
    m.report(thread, step.message());
}

fn is_trapped(m: &mut Mortal, pid: u64) -> bool {
    status(m, pid) == Some((SIGTRAP << 8 | 0x7f) as u32)
}

#[test]
fn a_tracer_sees_the_step_that_changed_a_place_and_no_other() {
    at_every_step(|m| {
        let (pid, child) = watched_child(m, STORES);
        for value in [1, 2] {
            for _ in 0..3 {
                step(m, child, |_, _| {});
                assert_eq!(status(m, pid), None);
            }
            step(m, child, |m, _| m.world.write(child, PLACE, &[value]));
            assert!(is_trapped(m, pid));
            assert_eq!(m.thread(child).registers.rflags & TRAP_FLAG, 0);
            assert_eq!(debug_register(m, pid, 6), 0xffff_0ff1);
            assert_eq!(status(m, pid), None, "it stops once");
            request(m, CONT, pid, 0, 0);
        }
    });
}

#[test]
fn a_store_is_that_of_the_thread_whose_step_ends_first_and_of_no_other() {
    at_every_step(|m| {
        let (pid, child) = watched_child(m, STORES);
        let (tid, second) = watched_thread(m, child);
        for value in [1, 2] {
            step(m, child, |_, _| {});
            step(m, second, |m, _| m.world.write(second, PLACE, &[value]));
            step(m, child, |_, _| {});
            assert_eq!((status(m, pid), is_trapped(m, tid)), (None, true));
            request(m, CONT, tid, 0, 0);
        }
        step(m, child, |m, _| m.world.write(child, PLACE, &[3]));
        step(m, second, |_, _| {});
        assert_eq!((is_trapped(m, pid), status(m, tid)), (true, None));
    });
}

#[test]
fn an_instruction_that_is_watched_stops_before_it_runs_and_once() {
    at_every_step(|m| {
        let (pid, child) = watched_child(m, EXECUTION);
        for _ in 0..2 {
            step(m, child, |_, _| {});
        }
        assert_eq!(status(m, pid), None);
        step(m, child, |_, _| {});
        assert!(is_trapped(m, pid));
        assert_eq!((m.thread(child).registers.rip, debug_register(m, pid, 6)), (CODE + 3, 0xffff_0ff2));
        request(m, CONT, pid, 0, 0);
        step(m, child, |_, _| {});
        assert_eq!(status(m, pid), None);
    });
}

#[test]
fn what_a_call_stores_is_no_store_of_the_program_and_the_call_does_not_see_the_steps() {
    at_every_step(|m| {
        let (pid, child) = watched_child(m, STORES);
        step(m, child, |_, _| {});
        let entry = m.thread(child);
        entry.registers.r11 = entry.registers.rflags;
        m.report(child, kernel::LinuxCall { number: nr::READ.into() }.message());
        let entry = m.thread(child);
        assert_eq!(entry.resumed, resume::READY | resume::REPORT_CALLS | resume::CALL);
        assert_eq!((entry.registers.rflags & TRAP_FLAG, entry.registers.r11 & TRAP_FLAG), (0, 0));
        m.world.write(child, PLACE, &[1]);
        m.thread(child).registers.linux_call = nr::READ.into();
        m.report_interrupted(child);
        assert_eq!(status(m, pid), None);
        step(m, child, |_, _| {});
        assert_eq!(status(m, pid), None);
        step(m, child, |m, _| m.world.write(child, PLACE, &[2]));
        assert!(is_trapped(m, pid));
    });
}

#[test]
fn flags_that_are_pushed_do_not_show_the_steps() {
    const PUSHF: u8 = 0x9c;
    at_every_step(|m| {
        let (pid, child) = watched_child(m, STORES);
        m.world.write_bytes(child, CODE, &[PUSHF]);
        step(m, child, |m, registers| {
            registers.rsp -= 8;
            m.world.write(child, registers.rsp, &[0x302]);
        });
        assert_eq!((status(m, pid), m.world.read(child, STACK - 8)), (None, 0x202));
    });
}
