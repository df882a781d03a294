//! Tests of drivers and pci, and of services that are left out, in a world that is played.

use crate::device::{Device, Knowledge};
use crate::record::{Cause, End, State};
use crate::supervisor::{Event, Supervisor};
use crate::supervisor_tests::{
    Stage, disk, endpoint_of, events, name, pci, running, running_disk, service, state_of, system,
};
use abi::system::Service;
use abi::{Endpoint, Errno};
use std::vec;
use sys::StartKind;

/// pci is up, and has been asked for the device of a disk, behind which rtc is to start.
fn asked_for(disk: Service) -> Supervisor<Stage> {
    let mut supervisor = system(vec![pci(), disk, service("rtc", 21)]);
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is starting");
    assert_eq!(state_of(&supervisor, "disk"), State::Starting);
    supervisor
}

#[test]
fn a_driver_without_device_is_left_out_and_the_next_service_starts() {
    for (optional, error, state, said) in [
        (false, Errno::ENODEV, State::GivenUp, vec!["disk cannot run: ENODEV"]),
        (true, Errno::ENODEV, State::Down, vec![]),
        (true, Errno::ENXIO, State::Down, vec![]),
        (true, Errno::EIO, State::GivenUp, vec!["disk cannot run: EIO"]),
    ] {
        let mut supervisor = asked_for(Service { optional, ..disk() });
        supervisor.device_found(3, Err(error));
        assert_eq!(
            (state_of(&supervisor, "disk"), supervisor.world.said.clone()),
            (state, said.iter().map(|line| (*line).into()).collect())
        );
        assert_eq!(supervisor.records()[3].last_end, Some((End::Exited, -i64::from(error.0))));
        assert_eq!((supervisor.world.hopeless.clone(), state_of(&supervisor, "rtc")), (vec![20], State::Starting));
    }
}

#[test]
fn an_essential_service_that_is_left_out_ends_the_system_unless_its_absence_is_expected() {
    for (optional, ends) in [(false, true), (true, false)] {
        let mut supervisor = asked_for(Service { optional, essential: true, ..disk() });
        supervisor.device_found(3, Err(Errno::ENODEV));
        assert_eq!(supervisor.world.said.iter().any(|line| line == "the end without disk"), ends);
    }
}

#[test]
fn a_driver_that_runs_goes_on_when_its_device_is_not_found_again() {
    let mut supervisor = running_disk();
    supervisor.kill(name("pci")).expect("runs");
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is restarting");
    events(&mut supervisor);
    supervisor.device_found(3, Err(Errno::EIO));
    assert_eq!(
        supervisor.world.said.last().map(|line| &line[..]),
        Some("pci does not find the device of disk again: EIO")
    );
    assert_eq!((state_of(&supervisor, "disk"), endpoint_of(&supervisor, "disk")), (State::Up, Endpoint::new(20, 1)));
    supervisor.kill(name("disk")).expect("runs");
    assert_eq!(events(&mut supervisor), [Event::Gone(3), Event::FindDevice(3)], "its successor needs it");
}

#[test]
fn pci_is_asked_once_for_a_driver_that_dies_meanwhile() {
    let mut supervisor = running_disk();
    supervisor.kill(name("pci")).expect("runs");
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is restarting");
    events(&mut supervisor);
    supervisor.kill(name("disk")).expect("runs");
    assert_eq!((events(&mut supervisor), endpoint_of(&supervisor, "disk")), (vec![Event::Gone(3)], Endpoint::NONE));
    supervisor.device_found(3, Ok(Device::default()));
    assert_eq!(
        (endpoint_of(&supervisor, "disk"), state_of(&supervisor, "disk")),
        (Endpoint::new(20, 2), State::Restarting)
    );
    assert_eq!(supervisor.world.starts.last(), Some(&("disk".into(), StartKind::Restarted)));
}

/// pci dies until it is given up.
fn give_pci_up(supervisor: &mut Supervisor<Stage>) {
    while state_of(supervisor, "pci") != State::GivenUp {
        supervisor.ended(endpoint_of(supervisor, "pci"), Cause::Exited(1)).expect("runs");
    }
}

#[test]
fn drivers_that_run_go_on_without_pci() {
    let mut supervisor = running_disk();
    give_pci_up(&mut supervisor);
    assert_eq!((state_of(&supervisor, "disk"), endpoint_of(&supervisor, "disk")), (State::Up, Endpoint::new(20, 1)));
    supervisor.kill(name("disk")).expect("runs");
    assert_eq!(supervisor.records()[3].last_end, Some((End::Exited, -i64::from(Errno::ENXIO.0))));
    assert_eq!(supervisor.world.cleared.last(), Some(&Endpoint::new(20, 1)));
}

#[test]
fn a_driver_before_pci_in_the_system_file_is_left_out_like_any_other() {
    let mut supervisor = Supervisor::new(Stage::default(), vec![disk(), pci()]);
    supervisor.go_on();
    assert_eq!(state_of(&supervisor, "disk"), State::GivenUp, "pci is not started yet");
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is starting");
    supervisor.restart(name("disk")).expect("may be restarted");
    supervisor.device_found(0, Ok(Device::default()));
    supervisor.ready(endpoint_of(&supervisor, "disk"), 0).expect("is restarting");
    supervisor.kill(name("pci")).expect("runs");
    supervisor.kill(name("disk")).expect("runs");
    assert_eq!(state_of(&supervisor, "disk"), State::Restarting);
    give_pci_up(&mut supervisor);
    assert_eq!(state_of(&supervisor, "disk"), State::GivenUp);
}

#[test]
fn a_successor_of_pci_is_not_asked_for_devices_that_nobody_needs() {
    let mut supervisor = asked_for(disk());
    supervisor.device_found(3, Err(Errno::ENODEV));
    supervisor.ready(endpoint_of(&supervisor, "rtc"), 0).expect("is starting");
    supervisor.kill(name("pci")).expect("runs");
    events(&mut supervisor);
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is restarting");
    assert_eq!(events(&mut supervisor), [Event::Up(2)]);
}

#[test]
fn a_start_that_fails_for_lack_of_memory_is_tried_again_until_the_budget_is_spent() {
    let mut supervisor = running(vec![service("uart", 20)]);
    supervisor.world.failures.insert("uart".into(), vec![Errno::ENOMEM; 5]);
    supervisor.kill(name("uart")).expect("runs");
    assert_eq!(state_of(&supervisor, "uart"), State::GivenUp);
    let uart = &supervisor.records()[2];
    assert_eq!((uart.last_end, uart.restarts), (Some((End::Exited, -i64::from(Errno::ENOMEM.0))), 2));
    assert_eq!(supervisor.world.failures["uart"].len(), 3);
    assert_eq!(supervisor.world.said[1..3], ["uart cannot be started: ENOMEM"; 2]);
    assert_eq!(supervisor.world.cleared, [Endpoint::new(20, 1)]);
}

#[test]
fn a_successor_without_its_module_is_left_out() {
    for (error, optional, state) in [(Errno::ENXIO, true, State::Down), (Errno::ENODEV, false, State::GivenUp)] {
        let mut supervisor = running(vec![Service { optional, ..service("uart", 20) }]);
        supervisor.world.failures.insert("uart".into(), vec![error]);
        supervisor.kill(name("uart")).expect("runs");
        assert_eq!((state_of(&supervisor, "uart"), &supervisor.world.hopeless[..]), (state, &[20][..]));
    }
}

#[test]
fn a_driver_is_restarted_without_pci() {
    let mut supervisor = running_disk();
    supervisor.kill(name("disk")).expect("runs");
    assert_eq!(endpoint_of(&supervisor, "disk"), Endpoint::new(20, 2));
    assert_eq!(events(&mut supervisor), [Event::Gone(3)]);
}

#[test]
fn a_driver_that_dies_while_pci_is_away_waits_until_pci_is_back() {
    let mut supervisor = running_disk();
    supervisor.kill(name("pci")).expect("runs");
    supervisor.kill(name("disk")).expect("runs");
    assert_eq!(supervisor.kill(name("disk")), Err(Errno::ESRCH));
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is restarting");
    assert!(events(&mut supervisor).contains(&Event::FindDevice(3)));
    assert_eq!(endpoint_of(&supervisor, "disk"), Endpoint::NONE);
    supervisor.device_found(3, Ok(Device::default()));
    assert_eq!(endpoint_of(&supervisor, "disk"), Endpoint::new(20, 2));
}

#[test]
fn a_successor_of_pci_is_told_again_whose_device_is_whose() {
    let mut supervisor = running_disk();
    supervisor.kill(name("pci")).expect("runs");
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is restarting");
    assert_eq!(events(&mut supervisor), [Event::Gone(2), Event::Up(2), Event::FindDevice(3)]);
    supervisor.device_found(3, Ok(Device::default()));
    assert_eq!(endpoint_of(&supervisor, "disk"), Endpoint::new(20, 1));
}

#[test]
fn a_successor_of_pci_is_told_of_devices_in_use_before_others() {
    let net = Service { pci: vec![(0x8086, 0x100e)], ..service("net", 22) };
    let mut supervisor = system(vec![pci(), disk(), net]);
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is starting");
    for (at, slot) in [(3, 20), (4, 22)] {
        supervisor.device_found(at, Ok(Device::default()));
        supervisor.ready(Endpoint::new(slot, 1), 0).expect("is starting");
    }
    supervisor.kill(name("pci")).expect("runs");
    supervisor.kill(name("disk")).expect("runs");
    events(&mut supervisor);
    supervisor.ready(endpoint_of(&supervisor, "pci"), 0).expect("is restarting");
    assert_eq!(events(&mut supervisor), [Event::Up(2), Event::FindDevice(4), Event::FindDevice(3)]);
}

#[test]
fn without_pci_there_are_no_devices() {
    let supervisor = system(vec![disk(), service("rtc", 21)]);
    assert_eq!((state_of(&supervisor, "disk"), state_of(&supervisor, "rtc")), (State::GivenUp, State::Starting));
    let mut supervisor = running_disk();
    supervisor.kill(name("pci")).expect("runs");
    supervisor.kill(name("disk")).expect("runs");
    for generation in 2..=3 {
        supervisor.ended(Endpoint::new(10, generation), Cause::Exited(1)).expect("is restarting");
    }
    assert_eq!((state_of(&supervisor, "pci"), state_of(&supervisor, "disk")), (State::GivenUp, State::GivenUp));
}

#[test]
fn a_screen_without_device_has_what_the_boot_loader_has_set_up() {
    let screen = |framebuffer, boot: Option<(u64, u64)>| {
        let mut supervisor = asked_for(Service { optional: true, framebuffer, ..disk() });
        supervisor.world.framebuffer = boot;
        supervisor.device_found(3, Err(Errno::ENODEV));
        let record = &supervisor.records()[3];
        (record.endpoint != Endpoint::NONE, record.device.clone())
    };
    let range = (0xe000_0000, 0x30_0000);
    let known = Knowledge::Known(Device { memory: [range].into(), ..Device::default() });
    assert_eq!(screen(true, Some(range)), (true, known));
    assert!(!screen(true, None).0);
    assert!(!screen(false, Some(range)).0, "the system file does not say so");
}
