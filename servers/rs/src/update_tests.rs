//! Tests of live update in a world that is played.

use crate::record::{Cause, State};
use crate::supervisor::{Event, Supervisor};
use crate::supervisor_tests::{Stage, endpoint_of, events, name, running, service, state_of};
use crate::update::{Phase, Program};
use abi::{Endpoint, Errno};
use sys::StartKind;

const MS: u64 = 1_000_000;

/// An ELF file that vm would accept: one executable segment. `extra` bytes make it distinguishable.
pub fn program(extra: usize) -> Program {
    let mut file = vec![0; 4096 + extra];
    file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    // e_type, e_machine, e_version, e_entry, e_phoff, e_ehsize, e_phentsize, e_phnum.
    put(16, &2u16.to_le_bytes());
    put(18, &62u16.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(24, &0x40_0000u64.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &64u16.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &1u16.to_le_bytes());
    // PT_LOAD, read and execute, address, sizes, alignment.
    put(64, &1u32.to_le_bytes());
    put(68, &5u32.to_le_bytes());
    put(64 + 16, &0x40_0000u64.to_le_bytes());
    put(64 + 32, &4096u64.to_le_bytes());
    put(64 + 40, &4096u64.to_le_bytes());
    put(64 + 48, &4096u64.to_le_bytes());
    Program::new(file).expect("is a program for a service")
}

fn updating() -> Supervisor<Stage> {
    let mut supervisor = running(vec![service("uart", 20)]);
    assert_eq!(supervisor.update(name("uart"), program(1)), Ok(2));
    assert_eq!(events(&mut supervisor), [Event::Prepare(2)]);
    supervisor
}

/// The new program has been started and is ready.
fn on_trial() -> Supervisor<Stage> {
    let mut supervisor = updating();
    supervisor.prepared(2);
    supervisor.ready(Endpoint::new(20, 2), 0).expect("is restarting");
    assert_eq!(events(&mut supervisor), [Event::Gone(2), Event::Up(2)]);
    supervisor
}

/// Lets time pass in steps of a millisecond; uart answers its heartbeats.
fn pass(supervisor: &mut Supervisor<Stage>, ms: u64) {
    for _ in 0..ms {
        supervisor.world.now_ns += MS;
        supervisor.tick();
        for service in ["rs", "vm", "uart"] {
            let endpoint = endpoint_of(supervisor, service);
            supervisor.alive(endpoint);
        }
    }
}

#[test]
fn only_programs_for_services_are_taken() {
    assert_eq!(Program::new(vec![]), Err(Errno::ENOEXEC));
    assert_eq!(Program::new(b"#!/bin/sh".to_vec()), Err(Errno::ENOEXEC));
    let mut moved = program(0).bytes().to_vec();
    moved[64 + 16] = 1;
    assert_eq!(Program::new(moved), Err(Errno::ENOEXEC));
}

#[test]
fn a_new_program_that_stands_its_trial_is_kept() {
    let mut supervisor = on_trial();
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Updated)));
    assert!(matches!(supervisor.phase(2), Some(Phase::Trial(_))));
    pass(&mut supervisor, 50);
    assert_eq!(supervisor.phase(2), None);
    assert_eq!(events(&mut supervisor), [Event::UpdateOver(2, Ok(()))]);
    // Also in every restart from now on.
    supervisor.restart(name("uart")).expect("may be restarted");
    assert_eq!(supervisor.world.programs, [4097, 4097]);
}

#[test]
fn a_new_program_that_crashes_on_trial_is_rolled_back_at_nobodys_cost() {
    let mut supervisor = on_trial();
    supervisor.ended(Endpoint::new(20, 2), Cause::Exited(101)).expect("runs");
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Restarted)));
    assert_eq!(supervisor.world.programs, [4097]);
    assert!(supervisor.world.said.iter().any(|line| line.contains("the old one runs again")));
    assert_eq!(events(&mut supervisor), [Event::Gone(2), Event::UpdateOver(2, Err(Errno::ECANCELED))]);
    // The whole budget of two is left.
    for generation in 3..=4 {
        supervisor.ended(Endpoint::new(20, generation), Cause::Exited(1)).expect("runs");
    }
    assert_eq!(state_of(&supervisor, "uart"), State::Restarting);
}

#[test]
fn a_new_program_that_cannot_initialise_itself_is_rolled_back() {
    for error in [Errno::EIO, Errno::ENODEV] {
        let mut supervisor = updating();
        supervisor.prepared(2);
        supervisor.ready(Endpoint::new(20, 2), -i64::from(error.0)).expect("is restarting");
        assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Restarted)));
    }
}

#[test]
fn a_new_program_that_never_becomes_ready_is_rolled_back_when_the_trial_is_over() {
    let mut supervisor = updating();
    supervisor.prepared(2);
    supervisor.world.now_ns += 49 * MS;
    supervisor.tick();
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 2));
    supervisor.world.now_ns += MS;
    supervisor.tick();
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Restarted)));
}

#[test]
fn a_new_program_that_does_not_answer_is_rolled_back() {
    let mut supervisor = on_trial();
    for _ in 0..49 {
        supervisor.world.now_ns += MS;
        supervisor.tick();
        for slot in [4, 5] {
            supervisor.alive(Endpoint::new(slot, 1));
        }
    }
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Restarted)));
}

#[test]
fn a_new_program_that_cannot_be_started_is_rolled_back() {
    let mut supervisor = updating();
    supervisor.world.failures.insert("uart".into(), vec![Errno::ENOMEM]);
    supervisor.prepared(2);
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Restarted)));
    assert_eq!(supervisor.world.programs, []);
}

#[test]
fn one_that_takes_too_long_to_prepare_or_dies_meanwhile_is_replaced_all_the_same() {
    let mut slow = updating();
    slow.world.now_ns += 1000 * MS;
    slow.tick();
    let mut dying = updating();
    dying.ended(Endpoint::new(20, 1), Cause::Exited(101)).expect("runs");
    for supervisor in [slow, dying] {
        assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Updated)));
    }
}

#[test]
fn what_cannot_be_updated_is_refused() {
    let mut supervisor = running(vec![service("uart", 20), abi::system::Service { restarts: 0, ..service("rtc", 21) }]);
    assert_eq!(supervisor.update(name("vm"), program(0)), Err(Errno::EPERM));
    assert_eq!(supervisor.update(name("none"), program(0)), Err(Errno::ENOENT));
    assert_eq!(supervisor.update(name("rtc"), program(0)), Err(Errno::EOPNOTSUPP));
    supervisor.update(name("uart"), program(0)).expect("is up");
    assert_eq!(supervisor.update(name("uart"), program(0)), Err(Errno::EBUSY));
    assert_eq!(supervisor.restart(name("uart")), Err(Errno::EBUSY));
}

#[test]
fn programs_have_limited_room() {
    let mut supervisor = running(vec![service("uart", 20), service("rtc", 21)]);
    assert_eq!(supervisor.room_for((1 << 20) + 1).err(), Some(Errno::EFBIG));
    supervisor.update(name("uart"), program(1 << 19)).expect("is up");
    assert_eq!(supervisor.room_for(1 << 19).err(), Some(Errno::EFBIG));
    supervisor.room_for(1 << 18).expect("there is room");
}
