//! Tests of live update in a world that is played.

use crate::device::Device;
use crate::record::{Cause, End, State};
use crate::supervisor::{Event, Supervisor};
use crate::supervisor_tests::{Stage, crash, endpoint_of, events, name, running, running_disk, service, state_of};
use crate::update::{Phase, Program};
use abi::system::Service;
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

/// Whether this was said.
fn has_said(supervisor: &Supervisor<Stage>, text: &str) -> bool {
    supervisor.world.said.iter().any(|line| line == text)
}

#[test]
fn people_learn_how_an_update_goes() {
    let mut accepted = on_trial();
    pass(&mut accepted, 50);
    assert!(has_said(&accepted, "uart is updated"));
    let mut slow = updating();
    slow.world.now_ns += 1000 * MS;
    slow.tick();
    assert!(has_said(&slow, "uart (1) takes too long to prepare its update"));
    let mut late = updating();
    late.prepared(2);
    late.world.now_ns += 50 * MS;
    late.tick();
    assert!(has_said(&late, "uart (2) has not become ready within its trial, or is silent"));
    assert!(has_said(&late, "the new program of uart has failed; the old one runs again"));
}

#[test]
fn a_roll_back_counts_as_one_restart_and_an_accepted_program_as_none() {
    let mut accepted = on_trial();
    pass(&mut accepted, 50);
    assert_eq!((accepted.records()[2].restarts, accepted.records()[2].last_end), (0, None));
    let mut failed = on_trial();
    failed.ended(Endpoint::new(20, 2), crash(6)).expect("runs");
    assert_eq!((failed.records()[2].restarts, failed.records()[2].last_end), (1, Some((End::Exception, 6))));
}

#[test]
fn preparation_has_a_deadline_and_so_has_the_trial() {
    let mut supervisor = Supervisor::new(Stage::default(), vec![Service { heartbeat_ms: 0, ..service("uart", 20) }]);
    supervisor.go_on();
    supervisor.world.now_ns = 7;
    supervisor.ready(Endpoint::new(20, 1), 0).expect("is starting");
    assert_eq!(supervisor.deadline_ns(), None);
    supervisor.update(name("uart"), program(0)).expect("is up");
    assert_eq!(supervisor.deadline_ns(), Some(1000 * MS + 7));
    supervisor.world.now_ns = 1000 * MS + 6;
    supervisor.tick();
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 1));
    supervisor.prepared(0);
    assert_eq!(supervisor.deadline_ns(), Some(1050 * MS + 6));
    supervisor.ready(Endpoint::new(20, 2), 0).expect("is restarting");
    supervisor.world.now_ns = 1050 * MS + 6;
    supervisor.tick();
    assert_eq!((supervisor.deadline_ns(), supervisor.phase(0)), (None, None));
}

#[test]
fn hearts_beat_as_usual_when_the_trial_is_over() {
    let mut supervisor = on_trial();
    pass(&mut supervisor, 50);
    let beat_ns = supervisor.records()[2].heart.deadline_ns();
    assert_eq!(beat_ns, Some(60 * MS));
}

#[test]
fn a_new_program_that_is_silent_at_the_end_of_its_trial_is_rolled_back() {
    let mut supervisor = on_trial();
    pass(&mut supervisor, 35);
    for _ in 35..50 {
        assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 2));
        supervisor.world.now_ns += MS;
        supervisor.tick();
        for slot in [4, 5] {
            supervisor.alive(Endpoint::new(slot, 1));
        }
    }
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Restarted)));
    assert!(has_said(&supervisor, "uart (2) has not become ready within its trial, or is silent"));
}

#[test]
fn an_answer_that_comes_after_the_replacement_changes_nothing() {
    let mut supervisor = on_trial();
    supervisor.prepared(2);
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 2));
    pass(&mut supervisor, 50);
    supervisor.prepared(2);
    assert_eq!((endpoint_of(&supervisor, "uart"), state_of(&supervisor, "uart")), (Endpoint::new(20, 2), State::Up));
}

#[test]
fn an_update_that_fails_brings_the_last_accepted_program_back() {
    let mut supervisor = on_trial();
    pass(&mut supervisor, 50);
    supervisor.update(name("uart"), program(2)).expect("is up");
    supervisor.prepared(2);
    supervisor.ended(Endpoint::new(20, 3), Cause::Exited(101)).expect("runs");
    assert_eq!(supervisor.world.programs, [4097, 4098, 4097]);
}

#[test]
fn a_kill_replaces_the_old_program_and_rolls_back_the_new_one() {
    let mut supervisor = updating();
    supervisor.kill(name("uart")).expect("runs");
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Updated)));
    supervisor.kill(name("uart")).expect("runs");
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Restarted)));
    assert_eq!(supervisor.records()[2].last_end, Some((End::Killed, 0)));
    assert_eq!(events(&mut supervisor), [Event::Gone(2), Event::Gone(2), Event::UpdateOver(2, Err(Errno::ECANCELED))]);
}

#[test]
fn a_dependant_that_is_being_updated_gets_its_new_program() {
    let pm = Service { dependants: vec![21], ..service("pm", 20) };
    let mut supervisor = running(vec![pm, service("procfs", 21)]);
    supervisor.update(name("procfs"), program(1)).expect("is up");
    supervisor.kill(name("pm")).expect("runs");
    supervisor.ready(Endpoint::new(20, 2), 0).expect("is restarting");
    assert_eq!(supervisor.world.starts.last(), Some(&("procfs".into(), StartKind::Updated)));
    let procfs = &supervisor.records()[3];
    assert_eq!(
        (procfs.endpoint, procfs.restarts, procfs.last_end),
        (Endpoint::new(21, 2), 0, Some((End::Dependant, 0)))
    );
}

#[test]
fn a_driver_whose_device_is_not_found_during_its_trial_gets_its_old_program_back() {
    let mut supervisor = running_disk();
    supervisor.kill(name("pci")).expect("runs");
    supervisor.update(name("disk"), program(1)).expect("is up");
    supervisor.prepared(3);
    assert_eq!(endpoint_of(&supervisor, "disk"), Endpoint::NONE);
    events(&mut supervisor);
    supervisor.world.now_ns += 50 * MS;
    supervisor.tick();
    assert_eq!(events(&mut supervisor), [Event::UpdateOver(3, Err(Errno::ECANCELED))]);
    assert_eq!((supervisor.phase(3), supervisor.records()[3].last_end), (None, Some((End::Silent, 0))));
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is restarting");
    supervisor.device_found(3, Ok(Device::default()));
    assert_eq!(supervisor.world.starts.last(), Some(&("disk".into(), StartKind::Restarted)));
    assert_eq!(supervisor.world.programs, [] as [usize; 0]);
}

#[test]
fn only_what_is_up_and_may_be_replaced_is_updated() {
    let retained = Service { retained: true, ..service("pm", 7) };
    let mut supervisor = running(vec![retained, service("uart", 20), Service { restarts: 1, ..service("rtc", 21) }]);
    assert_eq!(supervisor.update(name("rs"), program(0)), Err(Errno::EPERM));
    assert_eq!(supervisor.update(name("pm"), program(0)), Err(Errno::EOPNOTSUPP));
    supervisor.kill(name("uart")).expect("runs");
    events(&mut supervisor);
    assert_eq!(supervisor.update(name("uart"), program(0)), Err(Errno::ESRCH));
    assert_eq!(supervisor.update(name("rtc"), program(0)), Ok(4));
    assert_eq!(events(&mut supervisor), [Event::Prepare(4)]);
}

#[test]
fn a_program_that_writes_its_code_is_no_service() {
    let mut file = program(0).bytes().to_vec();
    file[68] |= 2;
    assert_eq!(Program::new(file.clone()), Err(Errno::ENOEXEC));
    file[68] &= !1;
    assert!(Program::new(file).is_ok(), "data alone may be written");
}

#[test]
fn every_program_of_a_service_takes_room() {
    const ALL: u64 = 1 << 20;
    let one = program(0).bytes().len() as u64;
    let mut supervisor = running(vec![service("uart", 20)]);
    let room = |supervisor: &Supervisor<Stage>| {
        let free =
            (0..=3).map(|used| ALL - used * one).find(|&free| supervisor.room_for(free).is_ok()).expect("is some");
        assert_eq!(supervisor.room_for(free).map(|room| room.len() as u64), Ok(free));
        assert_eq!(supervisor.room_for(free + 1).err(), Some(Errno::EFBIG));
        (ALL - free) / one
    };
    assert_eq!(room(&supervisor), 0);
    assert_eq!(supervisor.room_for(u64::MAX).err(), Some(Errno::EFBIG));
    for (generation, while_preparing) in [(2, 1), (3, 2)] {
        supervisor.update(name("uart"), program(0)).expect("is up");
        assert_eq!(room(&supervisor), while_preparing);
        supervisor.prepared(2);
        supervisor.ready(Endpoint::new(20, generation), 0).expect("is restarting");
        assert_eq!(room(&supervisor), while_preparing);
        pass(&mut supervisor, 50);
        assert_eq!(room(&supervisor), 1, "the old one is gone");
    }
}
