//! Signs of life, deaths and successors.

use super::world::{BUFFER, PROGRAM, RTC, UART, World, services, thread, uart};
use crate::supervisor_tests::service;
use abi::call::{KernelCall, inject};
use abi::endpoint::slot;
use abi::info::state;
use abi::rs::{Ready, service_call};
use abi::system::Service;
use abi::{Endpoint, Word, pm, vm};
use std::vec;
use std::vec::Vec;

fn world() -> World {
    World::booted(services(vec![uart()]), &[])
}

fn asked(world: &World) -> usize {
    let uart = world.holder(UART);
    world.with(|kernel| kernel.notified.iter().filter(|who| **who == uart).count())
}

#[test]
fn a_service_that_answers_its_heartbeats_lives() {
    let mut world = world();
    for beat in 1..10 {
        world.advance_ms(10);
        assert_eq!(asked(&world), beat);
        world.notify(world.holder(UART));
    }
    assert_eq!(world.holder(UART).generation(), 1);
}

#[test]
fn a_silent_service_is_replaced() {
    let mut world = world();
    world.advance_ms(30);
    assert_eq!(world.holder(UART), Endpoint::new(20, 2));
    assert!(world.with(|kernel| kernel.log.contains("uart (1) is silent")));
}

#[test]
fn a_service_that_waits_for_another_is_not_silent() {
    for (what, on, lives) in [
        (state::SENDING, Endpoint::PM, true),
        (state::RECEIVING, Endpoint::PM, true),
        (state::ANSWERING, Endpoint::PM, true),
        (state::RECEIVING, Endpoint::ANY, false),
        (state::FAULTING, Endpoint::NONE, true),
        (state::READY, Endpoint::PM, false),
    ] {
        let mut world = world();
        world.with(|kernel| kernel.threads.insert(UART as usize, thread(what, on, 0)));
        world.advance_ms(100);
        assert_eq!(world.holder(UART).generation() == 1, lives, "{what} on {on:?}");
    }
}

#[test]
fn the_alarm_is_set_when_it_changes_and_switched_off_when_nobody_is_watched() {
    let mut world = world();
    let before = world.with(|kernel| kernel.alarms);
    world.notify(Endpoint::new(slot::PM, 1));
    assert_eq!(world.with(|kernel| (kernel.alarms, kernel.alarm_ns)), (before, 10_000_000));
    world.exhaust_memory();
    world.command(service_call::KILL, "uart", 0);
    assert_eq!(world.with(|kernel| (kernel.alarms, kernel.alarm_ns)), (before + 1, 0));
}

#[test]
fn a_successor_is_announced_to_pm() {
    let mut world = world();
    world.crash(UART);
    assert_eq!(world.requests_to(slot::PM), []);
    world.ready(UART);
    let told = world.answer_all();
    let up = pm::ServiceUp::from_message(&told[0]);
    assert_eq!((told.len(), up.process), (1, Endpoint::new(20, 2)));
}

#[test]
fn who_is_busy_is_asked_when_it_waits_again() {
    let mut world = world();
    let pm = world.holder(slot::PM as u32);
    world.with(|kernel| kernel.busy.insert(pm));
    world.crash(UART);
    world.ready(UART);
    world.with(|kernel| kernel.busy.clear());
    world.notify(Endpoint::CLOCK);
    assert_eq!(world.requests_to(slot::PM), [], "it has not waited yet");
    world.notify(pm);
    assert_eq!(world.requests_to(slot::PM).len(), 1);
}

#[test]
fn a_request_that_a_service_died_over_is_made_to_its_successor() {
    let mut world = world();
    world.crash(UART);
    world.ready(UART);
    let first = world.requests_to(slot::PM);
    world.crash(slot::PM as u32);
    world.ready(slot::PM as u32);
    let second = world.requests_to(slot::PM);
    assert_eq!((first.len(), &second[..1]), (1, &first[..]));
}

#[test]
fn an_update_that_is_being_prepared_dies_with_its_service() {
    let mut world = world();
    let program = crate::update_tests::program(0);
    world.write(PROGRAM, BUFFER, program.bytes());
    world.command(service_call::UPDATE, "uart", program.bytes().len() as u64);
    assert_eq!(world.requests_to(UART as usize).len(), 1);
    world.crash(UART);
    world.ready(UART);
    assert_eq!(world.requests_to(UART as usize), [], "the new program need not prepare");
}

#[test]
fn a_service_that_fails_its_start_is_left_out() {
    let mut world = World::new(services(vec![uart(), service("rtc", RTC)]), &[]);
    world.ready(slot::DS as u32);
    world.ready(slot::PM as u32);
    let uart = world.holder(UART);
    let reply = world.call(uart, Ready { status: -5 }.message());
    assert_eq!(reply, None, "it is dead");
    assert!(!world.is_held(UART) && world.is_held(RTC));
    assert!(world.with(|kernel| kernel.log.contains("uart cannot run: EIO")));
    let freed: Vec<_> = world.with(|kernel| kernel.to_vm.iter().map(|one| one.label).collect());
    assert!(freed.contains(&vm::Exit { process: uart }.message().label));
    let destroyed = world.calls_of(KernelCall::Destroy);
    let current = Endpoint::current(20).to_word();
    assert_eq!(destroyed, [[uart.to_word(), 0, 0, 0, 0, 0], [current, 0, 0, 0, 0, 0]]);
}

#[test]
fn the_system_ends_with_a_service_that_it_needs() {
    let mut world = World::new(services(vec![Service { essential: true, ..uart() }]), &[]);
    world.ready(slot::DS as u32);
    world.ready(slot::PM as u32);
    world.call(world.holder(UART), Ready { status: -5 }.message());
    assert!(world.with(|kernel| kernel.log.contains("the system cannot go on without uart")));
    assert_eq!(world.calls_of(KernelCall::Shutdown), [[0, 1, 0, 0, 0, 0]]);
}

#[test]
fn a_service_with_retained_memory_goes_on_in_it() {
    let mut world = World::booted(services(vec![Service { retained: true, ..uart() }]), &[]);
    world.exit(UART, 1);
    let renewed = world.with(|kernel| vm::Renew::from_message(&kernel.to_vm[0]));
    assert_eq!(world.with(|kernel| kernel.to_vm[0].label), vm::Renew::LABEL);
    assert_eq!((renewed.process, renewed.image_bytes), (Endpoint::new(20, 2), 4));
}

#[test]
fn a_service_with_retained_memory_is_killed_between_two_messages() {
    let mut world = World::booted(services(vec![Service { retained: true, ..uart() }]), &[]);
    world.command(service_call::KILL, "uart", 0);
    let uart = world.holder(UART);
    assert_eq!(uart.generation(), 1);
    assert_eq!(world.calls_of(KernelCall::Inject), [[uart.to_word(), inject::KILL_AFTER_MESSAGES, 1, 0, 0, 0]]);
    assert_eq!(world.with(|kernel| kernel.notified.clone()), [uart]);
}

#[test]
fn a_vm_that_has_died_is_started_by_the_kernel() {
    let mut world = world();
    world.crash(slot::VM as u32);
    assert_eq!(world.calls_of(KernelCall::Create), [] as [[u64; 6]; 0]);
    assert_eq!(world.calls_of(KernelCall::Destroy).len(), 1);
}
