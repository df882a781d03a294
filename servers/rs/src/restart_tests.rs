//! Tests of what becomes of services that die, in a world that is played.

use crate::record::{Cause, End, State};
use crate::supervisor_tests::{crash, endpoint_of, name, running, service, state_of, system};
use abi::rs::Injection;
use abi::system::Service;
use abi::{Endpoint, Errno};
use std::vec;
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
