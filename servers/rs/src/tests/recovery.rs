//! rs dies, and goes on with what it has retained.

use super::world::{BUFFER, PROGRAM, UART, World, services, thread, uart, words};
use abi::call::KernelCall;
use abi::endpoint::slot;
use abi::info::state;
use abi::kernel::Exited;
use abi::message::REPEATED;
use abi::rs::{NextChange, Ready, service_call};
use abi::{Endpoint, Errno, Message, Word, linux, vm};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec;

fn world() -> World {
    World::booted(services(vec![uart()]), &[])
}

/// What waits for rs in its slot.
fn waits(world: &World, slot: u32) {
    world.with(|kernel| kernel.threads.insert(slot as usize, thread(state::RECEIVING, Endpoint::RS, 0)));
}

#[test]
fn an_answer_that_was_ready_is_given_again() {
    let mut world = world();
    world.restart_rs();
    let ds = world.holder(slot::DS as u32);
    let request = NextChange { restart: false }.message();
    world.call(ds, request);
    let first = world.call(ds, request);
    waits(&world, slot::DS as u32);
    world.restart_rs();
    assert_eq!(world.call(ds, request), first);
    assert_ne!(world.call(ds, request), first);
}

#[test]
fn what_runs_goes_on_running() {
    let mut world = world();
    world.restart_rs();
    assert_eq!(world.holder(UART), Endpoint::new(20, 1));
    assert_eq!(world.calls_of(KernelCall::Create), [] as [[u64; 6]; 0]);
}

#[test]
fn the_alarm_is_set_anew() {
    let mut world = world();
    world.with(|kernel| kernel.alarm_ns = 0);
    world.restart_rs();
    assert_eq!(world.with(|kernel| kernel.alarm_ns), 10_000_000);
}

#[test]
fn ds_gets_all_changes_once_more() {
    let mut world = world();
    world.restart_rs();
    let ds = world.holder(slot::DS as u32);
    assert_eq!(world.with(|kernel| kernel.notified.clone()), [ds]);
    assert!(world.call(ds, NextChange { restart: false }.message()).is_some_and(|reply| reply.result().is_ok()));
}

#[test]
fn a_service_that_was_being_ended_has_a_successor() {
    let mut world = world();
    world.with(|kernel| kernel.holders.remove(&(UART as usize)));
    world.restart_rs();
    assert!(world.is_held(UART));
}

#[test]
fn one_that_was_being_started_is_ended() {
    let mut world = world();
    let stranger = Endpoint::new(20, 77);
    world.with(|kernel| kernel.holders.insert(UART as usize, stranger));
    world.restart_rs();
    assert_eq!(world.calls_of(KernelCall::Destroy)[0], [stranger.to_word(), 1, 0, 0, 0, 0]);
    assert_eq!(world.with(|kernel| kernel.to_vm[0]), vm::Exit { process: stranger }.message());
    assert_ne!(world.holder(UART), stranger);
}

#[test]
fn requests_are_made_again_but_not_for_callers_that_ask_again() {
    let mut world = world();
    world.crash(UART);
    world.ready(UART);
    let announced = world.requests_to(slot::PM);
    let status = words(service_call::STATUS, "uart", 8);
    world.call(PROGRAM, Message { words: status, ..Message::new(linux::SERVICE) });
    world.restart_rs();
    assert_eq!(world.requests_to(slot::PM), announced);
    world.call(world.holder(slot::PM as u32), announced[0].reply(Ok(0)));
    assert_eq!(world.requests_to(slot::PM), []);
}

#[test]
fn nobody_waits_for_a_report_any_more() {
    let mut world = world();
    let mut call = words(service_call::REPORT, "", 4096);
    call[5] = 1;
    assert_eq!(world.service_call(call, 0), None);
    world.restart_rs();
    world.crash(UART);
    assert_eq!(world.result_of_call(PROGRAM), None);
    call[6] = REPEATED;
    assert!(matches!(world.service_call(call, 0), Some(Ok(1..))));
}

/// rs dies twice over a message of uart, with its next call of the kernel.
fn die_twice_over(world: &mut World, message: Message) {
    waits(world, UART);
    let from = world.holder(UART);
    for _ in 0..2 {
        world.with(|kernel| kernel.is_fatal = true);
        assert!(catch_unwind(AssertUnwindSafe(|| world.call(from, message))).is_err());
        world.with(|kernel| kernel.is_fatal = false);
        world.restart_rs();
    }
}

#[test]
fn a_death_over_which_rs_has_died_twice_is_the_end_of_the_service() {
    let mut world = world();
    die_twice_over(&mut world, Exited { status: 3 }.message());
    let uart = world.holder(UART);
    world.call(uart, Exited { status: 3 }.message());
    assert!(world.with(|kernel| kernel.log.contains("over which rs has died twice")));
    assert_eq!(world.calls_of(KernelCall::Destroy).last(), Some(&[uart.to_word(), 0, 0, 0, 0, 0]));
}

#[test]
fn a_request_over_which_rs_has_died_twice_is_refused() {
    let mut world = World::new(services(vec![uart()]), &[]);
    world.ready(slot::DS as u32);
    world.ready(slot::PM as u32);
    die_twice_over(&mut world, Ready { status: 0 }.message());
    let uart = world.holder(UART);
    let reply = world.call(uart, Ready { status: 0 }.message());
    assert_eq!(reply.map(|reply| reply.result()), Some(Err(Errno::EIO)));
}

#[test]
fn where_nothing_is_watched_no_alarm_is_set() {
    let quiet = services(vec![]).into_iter().take(1).collect();
    let mut world = World::new(quiet, &[]);
    world.restart_rs();
    world.notify(Endpoint::CLOCK);
    assert_eq!(world.with(|kernel| (kernel.alarms, kernel.alarm_ns)), (0, 0));
}

#[test]
fn the_end_of_an_update_is_not_told_to_a_caller_that_asks_again() {
    let mut world = world();
    let program = crate::update_tests::program(0);
    world.write(PROGRAM, BUFFER, program.bytes());
    assert_eq!(world.command(service_call::UPDATE, "uart", program.bytes().len() as u64), None);
    world.restart_rs();
    world.crash(UART);
    world.crash(UART);
    assert!(world.with(|kernel| kernel.log.contains("the new program of uart has failed")));
    assert_eq!(world.result_of_call(PROGRAM), None);
}
