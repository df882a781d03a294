//! Tests of the supervisor in a world that is played.

use crate::device::Device;
use crate::policy::Activity;
use crate::record::{Cause, Death, End, State};
use crate::supervisor::{Event, Supervisor};
use crate::world::{Plan, World};
use abi::endpoint::slot;
use abi::kernel::Exception;
use abi::rs::Injection;
use abi::system::Service;
use abi::{Endpoint, Errno, Name};
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::string::String;
use std::vec;
use std::vec::Vec;
use sys::{Result, StartKind};

/// A service of the system file with a budget of two restarts in 100 ms and a heartbeat of 10 ms, silent after 2.
pub fn service(name: &str, slot: u32) -> Service {
    Service {
        name: name.into(),
        slot,
        binary: name.into(),
        arguments: String::new(),
        queue: 3,
        quantum_us: 0,
        heap_bytes: 0,
        keep_bytes: 0,
        dma_bytes: 0,
        inspects_memory: false,
        kernel_calls: 0,
        destinations: vec![],
        applications: false,
        flags: 0,
        io_way: 0,
        ports: vec![],
        virtual_ports: vec![],
        irqs: vec![],
        memory: vec![],
        module: None,
        pci: vec![],
        heartbeat_ms: 10,
        heartbeat_misses: 2,
        restarts: 2,
        restart_window_ms: 100,
        backoff_ms: 0,
        trial_ms: 50,
        dependants: vec![],
        essential: false,
        retained: false,
        optional: false,
        framebuffer: false,
    }
}

#[derive(Default)]
pub struct Stage {
    pub now_ns: u64,
    generations: BTreeMap<u32, u32>,
    pub alive: BTreeSet<Endpoint>,
    pub starts: Vec<(String, StartKind)>,
    /// Programs that were started out of updates.
    pub programs: Vec<usize>,
    /// Those who died unexpectedly, and of what a report was made.
    pub examined: Vec<Endpoint>,
    pub reported: Vec<Endpoint>,
    /// Slots in which nobody is expected, and the dead whose memory was freed.
    pub hopeless: Vec<usize>,
    pub cleared: Vec<Endpoint>,
    pub lost: Vec<usize>,
    pub framebuffer: Option<(u64, u64)>,
    pub injected: Vec<(Endpoint, u64)>,
    pub asked: Vec<Endpoint>,
    /// Errors of the next launches of a service.
    pub failures: BTreeMap<String, Vec<Errno>>,
    waits: bool,
    pub said: Vec<String>,
}

impl World for Stage {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
    fn launch(&mut self, plan: &Plan) -> Result<Endpoint> {
        let service = plan.service;
        if let Some(error) = self.failures.get_mut(&service.name).and_then(Vec::pop) {
            return Err(error);
        }
        let generation = self.generations.entry(service.slot).or_default();
        *generation += 1;
        let endpoint = Endpoint::new(service.slot as usize, *generation);
        assert!(self.alive.iter().all(|other| other.slot() != endpoint.slot()), "two in one slot");
        self.alive.insert(endpoint);
        self.starts.push((service.name.clone(), plan.kind));
        self.programs.extend(plan.program.map(|program| program.bytes().len()));
        Ok(endpoint)
    }
    fn examine(&mut self, death: &Death) {
        assert!(self.alive.contains(&death.endpoint), "examined after it was destroyed");
        self.examined.push(death.endpoint);
    }
    fn report(&mut self, death: &Death) {
        self.reported.push(death.endpoint);
    }
    fn adopt(&mut self, endpoint: Endpoint, _: &Service) {
        self.alive.insert(endpoint);
    }
    fn destroy(&mut self, endpoint: Endpoint, _: bool) {
        // rs and vm are started again by the kernel.
        assert!(endpoint.slot() < 6 || self.alive.remove(&endpoint), "destroyed twice");
    }
    fn expect_nobody(&mut self, slot: usize) {
        self.hopeless.push(slot);
    }
    fn free_memory(&mut self, endpoint: Endpoint) {
        self.cleared.push(endpoint);
    }
    fn boot_framebuffer(&self) -> Option<(u64, u64)> {
        self.framebuffer
    }
    fn lose_device(&mut self, slot: usize) {
        self.lost.push(slot);
    }
    fn inject(&mut self, endpoint: Endpoint, request: &Injection) -> Result<()> {
        self.injected.push((endpoint, request.kind));
        Ok(())
    }
    fn notify(&mut self, endpoint: Endpoint) {
        self.asked.push(endpoint);
    }
    fn activity(&mut self, _: Endpoint) -> Activity {
        Activity { waits_for_service: self.waits, messages: 0 }
    }
    fn end_system(&mut self, lost: &Service) {
        self.said.push(std::format!("the end without {}", lost.name));
    }
    fn say(&mut self, text: fmt::Arguments) {
        self.said.push(std::format!("{text}"));
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text).expect("is a name")
}

/// rs, vm and pci in their slots, then these in slots from 20 on. rs and vm are adopted, and the first of the others is started.
pub fn system(others: Vec<Service>) -> Supervisor<Stage> {
    let mut services = vec![service("rs", 4), service("vm", 5)];
    services.extend(others);
    let mut supervisor = Supervisor::new(Stage::default(), services);
    supervisor.adopt(Endpoint::new(4, 1));
    supervisor.adopt(Endpoint::new(5, 1));
    supervisor.go_on();
    supervisor
}

pub fn crash(vector: u64) -> Cause {
    Cause::Exception(Exception { vector, error: 0, ip: 0x40_1000, address: 0 })
}

/// All events so far.
pub fn events(supervisor: &mut Supervisor<Stage>) -> Vec<Event> {
    core::iter::from_fn(|| supervisor.next_event()).collect()
}

pub fn running(others: Vec<Service>) -> Supervisor<Stage> {
    let mut supervisor = system(others);
    for at in 2..supervisor.records().len() {
        let endpoint = supervisor.records()[at].endpoint;
        supervisor.ready(endpoint, 0).expect("is starting");
    }
    events(&mut supervisor);
    supervisor
}

pub fn state_of(supervisor: &Supervisor<Stage>, text: &str) -> State {
    supervisor.records()[supervisor.named(name(text)).expect("is a service")].state
}

pub fn endpoint_of(supervisor: &Supervisor<Stage>, text: &str) -> Endpoint {
    supervisor.records()[supervisor.named(name(text)).expect("is a service")].endpoint
}

#[test]
fn each_service_is_started_when_the_one_before_is_ready() {
    let mut supervisor = system(vec![service("uart", 20), service("rtc", 21)]);
    assert_eq!(supervisor.world.starts, [("uart".into(), StartKind::Fresh)]);
    supervisor.ready(endpoint_of(&supervisor, "uart"), 0).expect("is starting");
    assert_eq!(supervisor.world.starts.len(), 2);
    assert!(!events(&mut supervisor).contains(&Event::Booted));
    supervisor.ready(endpoint_of(&supervisor, "rtc"), 0).expect("is starting");
    assert_eq!(events(&mut supervisor), [Event::Up(3), Event::Booted]);
}

#[test]
fn a_crashed_service_comes_again_in_its_slot_with_the_next_generation() {
    let mut supervisor = running(vec![service("uart", 20)]);
    supervisor.ended(Endpoint::new(20, 1), crash(14)).expect("runs");
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 2));
    assert_eq!(state_of(&supervisor, "uart"), State::Restarting);
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Restarted)));
    supervisor.ready(Endpoint::new(20, 2), 0).expect("is restarting");
    assert_eq!(events(&mut supervisor), [Event::Gone(2), Event::Up(2)]);
    assert_eq!(supervisor.records()[2].describe(0).last_status, 14);
}

#[test]
fn a_service_that_dies_too_often_is_given_up_and_its_callers_are_told() {
    let mut supervisor = running(vec![service("uart", 20)]);
    for generation in 1..=3 {
        supervisor.ended(Endpoint::new(20, generation), Cause::Exited(101)).expect("runs");
    }
    assert_eq!(state_of(&supervisor, "uart"), State::GivenUp);
    assert_eq!(supervisor.world.hopeless, [20]);
    assert_eq!(supervisor.world.cleared, [Endpoint::new(20, 3)]);
    assert!(supervisor.world.said.iter().any(|line| line == "uart is given up"));
    let last = supervisor.all_changes().last().expect("there are services");
    assert_eq!((last.endpoint, last.up), (Endpoint::NONE, false));
}

#[test]
fn deaths_far_apart_do_not_use_the_budget_up() {
    let mut supervisor = running(vec![service("uart", 20)]);
    for generation in 1..10 {
        supervisor.world.now_ns += 60_000_000;
        supervisor.ended(Endpoint::new(20, generation), Cause::Exited(1)).expect("runs");
    }
    assert_eq!(state_of(&supervisor, "uart"), State::Restarting);
}

#[test]
fn the_dead_are_not_heard() {
    let mut supervisor = running(vec![service("uart", 20)]);
    supervisor.kill(name("uart")).expect("runs");
    assert_eq!(supervisor.ended(Endpoint::new(20, 1), Cause::Exited(0)), Err(Errno::ESRCH));
    assert_eq!(supervisor.ready(Endpoint::new(20, 1), 0), Err(Errno::ESRCH));
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 2));
}

#[test]
fn a_silent_service_is_replaced_and_one_that_answers_is_not() {
    let mut supervisor = running(vec![service("uart", 20), service("rtc", 21)]);
    for _ in 0..4 {
        supervisor.world.now_ns += 10_000_000;
        supervisor.tick();
        supervisor.alive(Endpoint::new(21, 1));
        for slot in [4, 5] {
            supervisor.alive(Endpoint::new(slot, 1));
        }
    }
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 2));
    assert_eq!(endpoint_of(&supervisor, "rtc"), Endpoint::new(21, 1));
    assert_eq!(supervisor.records()[2].last_end, Some((End::Silent, 0)));
}

#[test]
fn vfs_alone_reports_what_answers_no_request() {
    let mut supervisor = running(vec![service("ext2", 20), service("uart", 21)]);
    let (vfs, ext2) = (Endpoint::new(slot::VFS, 1), Endpoint::new(20, 1));
    assert_eq!(supervisor.stalled(Endpoint::new(21, 1), ext2), Err(Errno::EPERM));
    assert_eq!(supervisor.stalled(vfs, vfs), Err(Errno::EPERM));
    assert_eq!(supervisor.stalled(vfs, Endpoint::new(20, 2)), Err(Errno::ESRCH));
    assert_eq!(supervisor.stalled(vfs, ext2), Ok(()));
    assert_eq!(endpoint_of(&supervisor, "ext2"), Endpoint::new(20, 2));
    assert_eq!(supervisor.records()[2].last_end, Some((End::Silent, 0)));
}

#[test]
fn a_service_that_waits_for_another_is_not_taken_for_hung() {
    let mut supervisor = running(vec![service("ext2", 20)]);
    supervisor.world.waits = true;
    for _ in 0..10 {
        supervisor.world.now_ns += 10_000_000;
        supervisor.tick();
    }
    assert_eq!(endpoint_of(&supervisor, "ext2"), Endpoint::new(20, 1));
}

#[test]
fn a_service_that_never_becomes_ready_does_not_hold_up_the_boot_for_ever() {
    let mut supervisor = system(vec![Service { restarts: 0, ..service("uart", 20) }, service("rtc", 21)]);
    let deadline = supervisor.deadline_ns().expect("uart is awaited");
    supervisor.world.now_ns = deadline.max(30_000_000_000);
    supervisor.tick();
    assert_eq!(state_of(&supervisor, "uart"), State::GivenUp);
    assert_eq!(state_of(&supervisor, "rtc"), State::Starting);
}

#[test]
fn a_missing_device_of_an_optional_service_is_no_news() {
    let optional = Service { optional: true, ..service("rtc", 20) };
    let mut supervisor = system(vec![optional, service("uart", 21)]);
    supervisor.ready(Endpoint::new(20, 1), -i64::from(Errno::ENXIO.0)).expect("is starting");
    assert_eq!(state_of(&supervisor, "rtc"), State::Down);
    assert!(supervisor.world.said.is_empty());
    assert_eq!(state_of(&supervisor, "uart"), State::Starting);
}

#[test]
fn a_failed_initialisation_is_said_and_not_repeated() {
    let mut supervisor = system(vec![service("uart", 20)]);
    supervisor.ready(Endpoint::new(20, 1), -i64::from(Errno::EIO.0)).expect("is starting");
    assert_eq!(state_of(&supervisor, "uart"), State::GivenUp);
    assert_eq!(supervisor.world.starts.len(), 1);
    assert_eq!(supervisor.world.said, ["uart cannot run: EIO"]);
}

#[test]
fn a_launch_that_fails_is_tried_again_within_the_budget() {
    let mut supervisor = running(vec![service("uart", 20)]);
    supervisor.world.failures.insert("uart".into(), vec![Errno::ENOMEM]);
    supervisor.kill(name("uart")).expect("runs");
    assert_eq!(state_of(&supervisor, "uart"), State::Restarting);
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 2));
}

pub fn pci() -> Service {
    service("pci", abi::endpoint::slot::PCI as u32)
}

pub fn disk() -> Service {
    Service { pci: vec![(0x1af4, 0x1042)], ..service("disk", 20) }
}

/// A system with pci and a disk whose device has been found.
pub fn running_disk() -> Supervisor<Stage> {
    let mut supervisor = system(vec![pci(), disk()]);
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is starting");
    assert!(events(&mut supervisor).contains(&Event::FindDevice(3)));
    assert_eq!(endpoint_of(&supervisor, "disk"), Endpoint::NONE);
    supervisor.device_found(3, Ok(Device::default()));
    supervisor.ready(Endpoint::new(20, 1), 0).expect("is starting");
    events(&mut supervisor);
    supervisor
}

#[test]
fn a_service_that_was_given_up_can_be_started_afresh() {
    let mut supervisor = running(vec![Service { restarts: 0, ..service("uart", 20) }]);
    supervisor.ended(Endpoint::new(20, 1), Cause::Exited(1)).expect("runs");
    assert_eq!(supervisor.kill(name("uart")), Err(Errno::ESRCH));
    supervisor.restart(name("uart")).expect("may be restarted");
    supervisor.ready(Endpoint::new(20, 2), 0).expect("is restarting");
    assert_eq!(supervisor.world.starts.last(), Some(&("uart".into(), StartKind::Fresh)));
    assert_eq!((state_of(&supervisor, "uart"), supervisor.records()[2].restarts), (State::Up, 0));
}

#[test]
fn a_fresh_start_forgets_earlier_deaths() {
    let mut supervisor = running(vec![Service { restarts: 1, backoff_ms: 10, ..service("uart", 20) }]);
    supervisor.ended(Endpoint::new(20, 1), Cause::Exited(1)).expect("runs");
    supervisor.ended(Endpoint::new(20, 2), Cause::Exited(1)).expect("runs");
    assert_eq!(supervisor.records()[2].restarts, 2);
    supervisor.restart(name("uart")).expect("may be restarted");
    assert_eq!(supervisor.records()[2].restarts, 0);
    supervisor.ready(Endpoint::new(20, 3), 0).expect("is restarting");
    supervisor.ended(Endpoint::new(20, 3), Cause::Exited(1)).expect("runs");
    assert_eq!(endpoint_of(&supervisor, "uart"), Endpoint::new(20, 4), "it has not to wait");
}

#[test]
fn people_are_told_where_a_service_stands() {
    use abi::rs::state;
    let mut supervisor = system(vec![service("uart", 20), service("rtc", 21)]);
    let told = |supervisor: &Supervisor<Stage>| [2, 3].map(|at| supervisor.records()[at].describe(0).state);
    assert_eq!(told(&supervisor), [state::STARTING, state::DOWN]);
    supervisor.ready(Endpoint::new(20, 1), 0).expect("is starting");
    supervisor.ready(Endpoint::new(21, 1), 0).expect("is starting");
    assert_eq!(told(&supervisor), [state::UP, state::UP]);
    supervisor.kill(name("uart")).expect("runs");
    assert_eq!(told(&supervisor), [state::RESTARTING, state::UP]);
    for generation in 1..=3 {
        supervisor.ended(Endpoint::new(21, generation), Cause::Exited(1)).expect("runs");
    }
    assert_eq!(told(&supervisor), [state::RESTARTING, state::GIVEN_UP]);
}

#[test]
fn the_window_of_restarts_is_in_milliseconds() {
    let mut supervisor = running(vec![service("uart", 20)]);
    for generation in 1..=3 {
        assert_ne!(state_of(&supervisor, "uart"), State::GivenUp);
        supervisor.ended(Endpoint::new(20, generation), Cause::Exited(1)).expect("runs");
        supervisor.world.now_ns += 49_000_000;
    }
    assert_eq!(state_of(&supervisor, "uart"), State::GivenUp, "three in 98 ms");
}

#[test]
fn a_service_that_was_never_started_has_no_past() {
    let mut supervisor = Supervisor::new(Stage::default(), vec![service("uart", 20), service("rtc", 21)]);
    let told = supervisor.records()[1].describe(5);
    assert_eq!((told.endpoint, told.restarts, told.missed, told.retry_ms), (Endpoint::NONE, 0, 0, 0));
    assert_eq!((told.started_ns, told.ended_ns, told.ready_ns), (0, 0, 0));
    assert_eq!((told.reason, told.last_status), (0, 0));
    supervisor.go_on();
    assert_eq!(supervisor.world.starts, [("uart".into(), StartKind::Fresh)]);
}

#[test]
fn people_are_told_when_a_service_was_started_and_became_ready() {
    let mut supervisor = Supervisor::new(Stage::default(), vec![service("vm", 5), service("uart", 20)]);
    supervisor.world.now_ns = 3;
    supervisor.adopt(Endpoint::new(5, 1));
    supervisor.world.now_ns = 5;
    supervisor.go_on();
    supervisor.world.now_ns = 8;
    supervisor.ready(Endpoint::new(20, 1), 0).expect("is starting");
    let times =
        |at: usize| (supervisor.records()[at].describe(9).started_ns, supervisor.records()[at].describe(9).ready_ns);
    assert_eq!([0, 1].map(times), [(3, 3), (5, 8)]);
}

#[test]
fn a_report_of_readiness_that_comes_twice_counts_once() {
    let mut supervisor = system(vec![service("uart", 20)]);
    events(&mut supervisor);
    for expected in [vec![Event::Up(2), Event::Booted], vec![]] {
        assert_eq!(supervisor.ready(Endpoint::new(20, 1), 0), Ok(()));
        assert_eq!(events(&mut supervisor), expected);
    }
    assert_eq!(supervisor.ready(Endpoint::new(20, 1), -5), Ok(()));
    assert_eq!(state_of(&supervisor, "uart"), State::Up);
}

#[test]
fn an_error_of_a_service_is_one_that_exists() {
    for (status, expected) in [(-1, -1), (-4095, -4095), (-4096, -4095), (i64::MIN, -4095)] {
        let mut supervisor = system(vec![service("uart", 20)]);
        supervisor.ready(Endpoint::new(20, 1), status).expect("is starting");
        assert_eq!(supervisor.records()[2].last_end, Some((End::Exited, expected)));
    }
}

#[test]
fn a_service_has_30_s_to_become_ready() {
    const LIMIT_NS: u64 = 30_000_000_000;
    let mut supervisor = Supervisor::new(Stage::default(), vec![service("uart", 20)]);
    supervisor.world.now_ns = 7;
    supervisor.go_on();
    assert_eq!(supervisor.deadline_ns(), Some(LIMIT_NS + 7));
    for (now_ns, state) in [(LIMIT_NS + 6, State::Starting), (LIMIT_NS + 7, State::GivenUp)] {
        supervisor.world.now_ns = now_ns;
        supervisor.tick();
        assert_eq!(state_of(&supervisor, "uart"), state);
    }
    assert_eq!(supervisor.world.said, ["uart (1) has not become ready in time", "uart is given up"]);
    assert_eq!((supervisor.deadline_ns(), supervisor.records()[0].last_end), (None, Some((End::Silent, 0))));
}

#[test]
fn only_who_is_up_is_asked_things() {
    let mut supervisor = system(vec![service("uart", 20)]);
    assert_eq!((supervisor.up(5), supervisor.up(20), supervisor.up(21)), (Some(Endpoint::new(5, 1)), None, None));
    supervisor.ready(Endpoint::new(20, 1), 0).expect("is starting");
    assert_eq!(supervisor.up(20), Some(Endpoint::new(20, 1)));
    supervisor.kill(name("uart")).expect("runs");
    assert_eq!(supervisor.up(20), None);
    assert_eq!(supervisor.world.said, ["uart (1) is killed"]);
}

#[test]
fn what_everything_stands_on_is_not_replaced_but_started_again_by_the_kernel() {
    let mut supervisor = running(vec![]);
    assert_eq!(supervisor.restart(name("rs")), Err(Errno::EPERM));
    assert_eq!(supervisor.restart(name("vm")), Err(Errno::EPERM));
    supervisor.kill(name("vm")).expect("runs");
    assert_eq!(supervisor.world.injected, [(Endpoint::new(5, 1), abi::call::inject::KILL_AFTER_MESSAGES)]);
    assert_eq!(supervisor.kill(name("nobody")), Err(Errno::ENOENT));
}

#[test]
fn what_starts_again_in_its_own_memory_is_killed_between_two_messages() {
    let pm = Service { retained: true, ..service("pm", abi::endpoint::slot::PM as u32) };
    let mut supervisor = running(vec![pm]);
    let endpoint = supervisor.records()[2].endpoint;
    supervisor.kill(name("pm")).expect("runs");
    assert_eq!(supervisor.world.injected, [(endpoint, abi::call::inject::KILL_AFTER_MESSAGES)]);
    assert_eq!(supervisor.world.asked, [endpoint]);
    assert!(supervisor.world.alive.contains(&endpoint));
}

#[test]
fn the_system_ends_with_what_it_cannot_do_without() {
    let vfs = Service { restarts: 0, essential: true, ..service("vfs", abi::endpoint::slot::VFS as u32) };
    let mut supervisor = running(vec![vfs, Service { restarts: 0, ..service("ext2", 20) }]);
    supervisor.kill(name("ext2")).expect("runs");
    assert!(!supervisor.world.said.iter().any(|line| line.starts_with("the end")));
    supervisor.kill(name("vfs")).expect("runs");
    assert!(supervisor.world.said.iter().any(|line| line == "the end without vfs"));
}
