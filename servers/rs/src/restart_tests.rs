//! Tests of what becomes of services that die, in a world that is played.

use crate::record::{Cause, End, State};
use crate::supervisor::Supervisor;
use crate::supervisor_tests::{Stage, crash, endpoint_of, name, running, service, state_of, system};
use abi::rs::Injection;
use abi::system::Service;
use abi::{Endpoint, Errno, Name};
use std::vec;
use std::vec::Vec;
use sys::StartKind;

#[test]
fn what_dies_again_and_again_has_to_wait_longer_and_longer() {
    let mut supervisor = running(vec![Service { restarts: 5, backoff_ms: 10, ..service("uart", 20) }]);
    supervisor.kill(name("uart")).expect("runs");
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 2));
    supervisor.ready(Endpoint::new(20, 2), 0).expect("is restarting");
    supervisor.kill(name("uart")).expect("runs");
    // Nobody is there for 10 ms, and nothing of the dead is kept meanwhile.
    assert_eq!((state_of(&supervisor, "uart"), endpoint_of(&supervisor, "uart")), (State::Restarting, Endpoint::NONE));
    assert_eq!(supervisor.world.cleared, [Endpoint::new(20, 2)]);
    assert_eq!(supervisor.kill(name("uart")), Err(Errno::ESRCH));
    assert_eq!(supervisor.records()[2].describe(4_000_000).retry_ms, 6);
    assert_eq!(supervisor.deadline_ns(), Some(10_000_000));
    supervisor.world.now_ns = 9_999_999;
    supervisor.tick();
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::NONE);
    supervisor.world.now_ns = 10_000_000;
    supervisor.tick();
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 3));
}

#[test]
fn a_first_incarnation_that_dies_before_it_is_ready_gets_no_successor() {
    let mut supervisor = system(vec![service("uart", 20), service("rtc", 21)]);
    supervisor.ended(Endpoint::new(20, 1), Cause::Exited(101)).expect("runs");
    assert_eq!(state_of(&supervisor, "uart"), State::GivenUp);
    assert_eq!(supervisor.world.starts, [("uart".into(), StartKind::Fresh), ("rtc".into(), StartKind::Fresh)]);
}

#[test]
fn a_successor_that_cannot_initialise_itself_is_tried_again_within_the_budget() {
    let mut supervisor = running(vec![service("uart", 20)]);
    supervisor.kill(name("uart")).expect("runs");
    supervisor.ready(Endpoint::new(20, 2), -i64::from(Errno::EIO.0)).expect("is restarting");
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 3));
    supervisor.ready(Endpoint::new(20, 3), -i64::from(Errno::EIO.0)).expect("is restarting");
    assert_eq!(state_of(&supervisor, "uart"), State::GivenUp);
}

#[test]
fn what_is_essential_is_never_given_up() {
    let mut supervisor = running(vec![Service { restarts: 1, essential: true, ..service("vfs", 8) }]);
    supervisor.kill(name("vfs")).expect("runs");
    supervisor.kill(name("vfs")).expect("runs");
    assert_eq!(state_of(&supervisor, "vfs"), State::Restarting);
    supervisor.world.now_ns = supervisor.deadline_ns().expect("it is tried again").max(10_000_000_000);
    supervisor.tick();
    assert_eq!(endpoint_of(&supervisor, "vfs"), Endpoint::new(8, 3));
}

#[test]
fn dependants_get_a_successor_when_the_service_they_depend_on_has_one() {
    let pm = Service { dependants: vec![21], ..service("pm", 20) };
    let mut supervisor = running(vec![pm, service("procfs", 21), service("rtc", 22)]);
    supervisor.kill(name("pm")).expect("runs");
    assert_eq!(endpoint_of(&supervisor, "procfs"), Endpoint::new(21, 1));
    supervisor.ready(Endpoint::new(20, 2), 0).expect("is restarting");
    assert_eq!(endpoint_of(&supervisor, "procfs"), Endpoint::new(21, 2));
    assert_eq!(endpoint_of(&supervisor, "rtc"), Endpoint::new(22, 1));
    assert_eq!(supervisor.records()[3].last_end, Some((End::Dependant, 0)));
}

#[test]
fn only_what_runs_can_be_disturbed() {
    let mut supervisor = running(vec![Service { restarts: 0, ..service("uart", 20) }]);
    let silence = Injection { kind: abi::call::inject::SILENCE, ..Injection::default() };
    supervisor.inject(name("uart"), &silence).expect("runs");
    assert_eq!(supervisor.world.injected, [(Endpoint::new(20, 1), abi::call::inject::SILENCE)]);
    supervisor.kill(name("uart")).expect("runs");
    assert_eq!(supervisor.inject(name("uart"), &silence), Err(Errno::ESRCH));
    assert_eq!(supervisor.inject(name("none"), &silence), Err(Errno::ENOENT));
}

#[test]
fn an_unexpected_end_is_examined_before_and_reported_after_the_successor_is_started() {
    let mut supervisor = running(vec![service("uart", 20)]);
    supervisor.ended(Endpoint::new(20, 1), crash(6)).expect("runs");
    assert_eq!(
        (&supervisor.world.examined, &supervisor.world.reported),
        (&vec![Endpoint::new(20, 1)], &vec![Endpoint::new(20, 1)])
    );
    supervisor.kill(name("uart")).expect("is restarting");
    assert_eq!(supervisor.world.reported.len(), 1);
}

#[test]
fn a_silent_vm_is_started_again_by_the_kernel_and_keeps_its_endpoint() {
    let mut supervisor = running(vec![]);
    for _ in 0..3 {
        supervisor.world.now_ns += 10_000_000;
        supervisor.tick();
        supervisor.alive(Endpoint::new(4, 1));
    }
    assert_eq!((endpoint_of(&supervisor, "vm"), state_of(&supervisor, "vm")), (Endpoint::new(5, 1), State::Up));
    assert_eq!((supervisor.records()[1].restarts, supervisor.world.starts.len()), (1, 0));
}

#[test]
fn deaths_whose_wait_has_decayed_cost_nothing_of_the_budget() {
    let mut supervisor = running(vec![Service { backoff_ms: 10, restart_window_ms: 60_000, ..service("disk", 20) }]);
    for generation in 1..=20 {
        supervisor.ended(Endpoint::new(20, generation), Cause::Exited(1)).expect("runs");
        supervisor.ready(Endpoint::new(20, generation + 1), 0).expect("is started again at once");
        supervisor.world.now_ns += 500_000_000;
    }
    assert_eq!(state_of(&supervisor, "disk"), State::Up);
}

/// What ds has not been told yet.
fn news(supervisor: &mut Supervisor<Stage>) -> Vec<(Name, Endpoint, bool)> {
    core::iter::from_fn(|| supervisor.changes.next()).map(|one| (one.name, one.endpoint, one.up)).collect()
}

#[test]
fn ds_is_told_of_every_step_of_a_restart() {
    let mut supervisor = running(vec![Service { restarts: 5, backoff_ms: 10, ..service("uart", 20) }]);
    let uart = name("uart");
    assert_eq!(news(&mut supervisor).len(), 3);
    let expected = (uart, Endpoint::current(20), false);
    supervisor.kill(uart).expect("runs");
    assert_eq!(news(&mut supervisor), [expected]);
    supervisor.ready(Endpoint::new(20, 2), 0).expect("is restarting");
    assert_eq!(news(&mut supervisor), [(uart, Endpoint::new(20, 2), true)]);
    supervisor.kill(uart).expect("runs");
    assert_eq!(news(&mut supervisor), [expected], "it comes later");
    assert!(supervisor.world.said.iter().any(|line| line == "uart is restarted in 10 ms"));
    supervisor.world.failures.insert("uart".into(), vec![Errno::ENODEV]);
    supervisor.world.now_ns = 10_000_000;
    supervisor.tick();
    assert_eq!(news(&mut supervisor), [(uart, Endpoint::NONE, false)]);
}

#[test]
fn the_successor_of_ds_is_notified_although_its_predecessor_was() {
    let mut supervisor = running(vec![service("ds", abi::endpoint::slot::DS as u32)]);
    assert!(supervisor.changes.begin_fetching());
    supervisor.kill(name("ds")).expect("runs");
    assert!(supervisor.changes.begin_fetching());
}

#[test]
fn memory_that_is_retained_waits_for_the_successor() {
    let mut supervisor = running(vec![Service { backoff_ms: 10, retained: true, ..service("pm", 7) }]);
    for generation in 1..=2 {
        supervisor.ended(Endpoint::new(7, generation), Cause::Exited(1)).expect("runs");
    }
    assert_eq!((endpoint_of(&supervisor, "pm"), supervisor.world.cleared.len()), (Endpoint::NONE, 0));
}

#[test]
fn a_restart_with_another_service_costs_no_budget_and_concerns_who_is_up() {
    let pm = Service { restarts: 9, dependants: vec![20, 21, 99], ..service("pm", 22) };
    let gone = Service { restarts: 0, ..service("gone", 20) };
    let mut supervisor = running(vec![gone, service("procfs", 21), pm]);
    assert_eq!(endpoint_of(&supervisor, "procfs"), Endpoint::new(21, 1), "the first pm restarts nobody");
    supervisor.ended(Endpoint::new(20, 1), Cause::Exited(1)).expect("runs");
    for generation in 2..=4 {
        supervisor.kill(name("pm")).expect("runs");
        supervisor.ready(Endpoint::new(22, generation), 0).expect("is restarting");
        assert_eq!(supervisor.records()[3].restarts, generation - 1);
        assert_eq!(endpoint_of(&supervisor, "procfs"), Endpoint::new(21, generation));
        supervisor.ready(Endpoint::new(21, generation), 0).expect("is restarting");
    }
    assert_eq!((state_of(&supervisor, "gone"), state_of(&supervisor, "procfs")), (State::GivenUp, State::Up));
    assert!(supervisor.world.said.iter().any(|line| line == "procfs (1) is restarted with a service it depends on"));
}

#[test]
fn one_restart_is_one_restart() {
    let mut supervisor = running(vec![Service { restarts: 1, ..service("uart", 20) }]);
    supervisor.ended(Endpoint::new(20, 1), Cause::Exited(1)).expect("runs");
    assert_eq!((state_of(&supervisor, "uart"), supervisor.records()[2].restarts), (State::Restarting, 1));
    supervisor.ended(Endpoint::new(20, 2), Cause::Exited(1)).expect("runs");
    assert_eq!((state_of(&supervisor, "uart"), supervisor.records()[2].restarts), (State::GivenUp, 1));
}
