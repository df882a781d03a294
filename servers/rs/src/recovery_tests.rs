//! Tests of a supervisor that goes on after a death of rs, in a world that is played.

use crate::record::{Cause, State};
use crate::supervisor::{Event, Supervisor};
use crate::supervisor_tests::{Stage, endpoint_of, events, name, running, running_disk, service, state_of, system};
use abi::system::Service;
use abi::{Endpoint, Errno};
use std::vec;
use std::vec::Vec;
use sys::StartKind;

/// rs dies, and its successor finds these in the slots.
fn rs_dies(supervisor: &mut Supervisor<Stage>) {
    let alive = supervisor.world.alive.clone();
    supervisor.recover(|slot| alive.iter().copied().find(|endpoint| endpoint.slot() == slot));
}

#[test]
fn whoever_runs_runs_on() {
    let mut supervisor = running(vec![service("uart", 20), service("rtc", 21)]);
    let before = supervisor.world.starts.clone();
    rs_dies(&mut supervisor);
    assert_eq!(supervisor.world.starts, before);
    assert!(supervisor.records().iter().all(|record| record.state == State::Up));
    let restarts: Vec<u32> = supervisor.records().iter().map(|record| record.restarts).collect();
    assert_eq!(restarts, [1, 0, 0, 0], "rs counts its own");
}

#[test]
fn a_restart_that_was_begun_is_finished() {
    for made in [false, true] {
        let mut supervisor = running(vec![service("uart", 20), service("rtc", 21)]);
        let old = endpoint_of(&supervisor, "uart");
        // The old one is destroyed already, and perhaps a new one made; the records do not know.
        supervisor.world.alive.remove(&old);
        let half_made = Endpoint::new(old.slot(), 9);
        if made {
            supervisor.world.alive.insert(half_made);
        }
        rs_dies(&mut supervisor);
        let new = endpoint_of(&supervisor, "uart");
        assert!(new != old && new != half_made);
        assert_eq!(supervisor.world.cleared, if made { vec![half_made] } else { vec![] });
        assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Restarted)));
        assert_eq!(supervisor.ready(new, 0), Ok(()));
    }
}

#[test]
fn a_first_start_that_was_begun_is_a_first_start_again() {
    let mut supervisor = system(vec![service("uart", 20), service("rtc", 21)]);
    supervisor.world.alive.remove(&Endpoint::new(20, 1));
    rs_dies(&mut supervisor);
    let uart = ("uart".into(), StartKind::Fresh);
    assert_eq!(supervisor.world.starts, [uart.clone(), uart]);
    assert_eq!((state_of(&supervisor, "uart"), state_of(&supervisor, "rtc")), (State::Starting, State::Down));
}

#[test]
fn memory_that_is_retained_passes_on_with_the_slot() {
    let mut supervisor = running(vec![Service { retained: true, ..service("pm", 7) }]);
    supervisor.world.alive.remove(&Endpoint::new(7, 1));
    supervisor.world.alive.insert(Endpoint::new(7, 9));
    rs_dies(&mut supervisor);
    assert_eq!((supervisor.world.cleared.len(), supervisor.world.alive.contains(&Endpoint::new(7, 9))), (0, false));
    assert_eq!(state_of(&supervisor, "pm"), State::Restarting);
}

#[test]
fn a_service_that_waits_for_its_restart_waits_on() {
    let mut supervisor = running(vec![Service { restarts: 5, backoff_ms: 10, ..service("uart", 20) }]);
    for generation in 1..=2 {
        supervisor.ended(Endpoint::new(20, generation), Cause::Exited(1)).expect("runs");
    }
    rs_dies(&mut supervisor);
    assert_eq!((supervisor.world.starts.len(), endpoint_of(&supervisor, "uart")), (2, Endpoint::NONE));
    // Its time comes while there is no rs.
    supervisor.world.now_ns = 10_000_000;
    rs_dies(&mut supervisor);
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 3));
}

#[test]
fn a_driver_that_waits_for_pci_waits_on() {
    let mut supervisor = running_disk();
    supervisor.kill(name("pci")).expect("runs");
    supervisor.kill(name("disk")).expect("runs");
    rs_dies(&mut supervisor);
    assert_eq!(endpoint_of(&supervisor, "disk"), Endpoint::NONE);
    events(&mut supervisor);
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is restarting");
    assert_eq!(events(&mut supervisor), [Event::Up(2), Event::FindDevice(3)]);
}

#[test]
fn what_is_down_stays_down_and_its_slot_is_cleared() {
    let given_up = Service { restarts: 0, ..service("uart", 20) };
    let mut supervisor = running(vec![given_up, Service { optional: true, ..service("rtc", 21) }]);
    supervisor.ended(Endpoint::new(20, 1), Cause::Exited(1)).expect("runs");
    let starts = supervisor.world.starts.clone();
    supervisor.world.alive.insert(Endpoint::new(20, 9));
    rs_dies(&mut supervisor);
    assert_eq!((state_of(&supervisor, "uart"), supervisor.world.starts.clone()), (State::GivenUp, starts));
    assert!(!supervisor.world.alive.contains(&Endpoint::new(20, 9)));
    assert_eq!(supervisor.world.cleared, [Endpoint::new(20, 1), Endpoint::new(20, 9)]);
}

#[test]
fn the_memory_of_one_that_was_being_ended_is_freed_when_no_successor_can_be_started() {
    let mut supervisor = running(vec![service("uart", 20)]);
    supervisor.world.alive.remove(&Endpoint::new(20, 1));
    supervisor.world.failures.insert("uart".into(), vec![Errno::ENOMEM; 5]);
    rs_dies(&mut supervisor);
    assert_eq!(state_of(&supervisor, "uart"), State::GivenUp);
    assert_eq!(supervisor.world.cleared, [Endpoint::new(20, 1)]);
}

#[test]
fn ds_is_notified_and_told_of_every_service() {
    let mut supervisor = running(vec![service("uart", 20), Service { restarts: 0, ..service("rtc", 21) }]);
    supervisor.ended(Endpoint::new(21, 1), Cause::Exited(1)).expect("runs");
    assert!(supervisor.changes.begin_fetching());
    while supervisor.changes.next().is_some() {}
    supervisor.changes.add(supervisor.records()[2].change());
    assert!(supervisor.changes.begin_fetching());
    rs_dies(&mut supervisor);
    assert!(supervisor.changes.begin_fetching(), "the notification may have been lost");
    let told: Vec<_> = core::iter::from_fn(|| supervisor.changes.next()).map(|one| (one.endpoint, one.up)).collect();
    let up = |slot| (Endpoint::new(slot, 1), true);
    assert_eq!(told, [up(4), up(5), up(20), (Endpoint::NONE, false)]);
}

#[test]
fn the_kernel_looks_after_vm_and_rs() {
    let mut supervisor = running(vec![]);
    supervisor.recover(|_| None);
    assert_eq!(
        (endpoint_of(&supervisor, "rs"), endpoint_of(&supervisor, "vm")),
        (Endpoint::new(4, 1), Endpoint::new(5, 1))
    );
    assert_eq!(supervisor.world.starts, []);
}
