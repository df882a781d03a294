//! The system call `linux::SERVICE`.

use super::world::{BUFFER, PROGRAM, RTC, UART, World, services, uart, words};
use crate::supervisor_tests::{name, service};
use abi::call::{KernelCall, inject};
use abi::endpoint::slot;
use abi::message::REPEATED;
use abi::rs::{FailAllocation, Injection, PrepareUpdate, ReportHead, ServiceRecord, service_call, state};
use abi::{Endpoint, Errno, Message, Word, linux, vm};
use std::vec;
use std::vec::Vec;
use zerocopy::{FromBytes, IntoBytes};

const RECORD: u64 = size_of::<ServiceRecord>() as u64;

fn world() -> World {
    World::booted(services(vec![uart(), service("rtc", RTC)]), &[])
}

/// What people are told of one service.
fn status(world: &mut World, of: &str) -> ServiceRecord {
    assert_eq!(world.command(service_call::STATUS, of, RECORD), Some(Ok(RECORD)));
    records(world, 1)[0]
}

fn records(world: &World, count: u64) -> Vec<ServiceRecord> {
    let bytes = world.buffer(count * RECORD);
    bytes.chunks(RECORD as usize).map(|one| ServiceRecord::read_from_bytes(one).expect("has this size")).collect()
}

#[test]
fn root_alone_may_ask() {
    let mut world = world();
    let list = words(service_call::LIST, "", RECORD);
    assert_eq!(world.service_call(list, 1000), Some(Err(Errno::EPERM)));
    assert_eq!(world.service_call(list, 0), Some(Ok(RECORD)));
}

#[test]
fn a_caller_that_pm_does_not_know_gets_its_error() {
    let mut world = world();
    world.call(PROGRAM, Message { words: words(0, "", 8), ..Message::new(linux::SERVICE) });
    let asked = world.requests_to(slot::PM);
    world.call(world.holder(slot::PM as u32), asked[0].reply(Err(Errno::ESRCH)));
    assert_eq!(world.result_of_call(PROGRAM), Some(Err(Errno::ESRCH)));
}

#[test]
fn a_list_has_as_many_whole_records_as_fit() {
    let mut world = world();
    let mut list = |bytes| world.command(service_call::LIST, "", bytes);
    assert_eq!(list(RECORD - 1), Some(Err(Errno::EINVAL)));
    assert_eq!(list(2 * RECORD + 1), Some(Ok(2 * RECORD)));
    assert_eq!(list(20 * RECORD), Some(Ok(5 * RECORD)));
    let names: Vec<_> = records(&world, 5).iter().map(|one| one.name).collect();
    assert_eq!(names, ["vm", "ds", "pm", "uart", "rtc"].map(name));
    assert!(records(&world, 5).iter().all(|one| one.state == state::UP));
}

#[test]
fn the_status_of_one_service_is_one_record() {
    let mut world = world();
    let uart = status(&mut world, "uart");
    assert_eq!((uart.name, uart.endpoint, uart.restarts), (name("uart"), Endpoint::new(20, 1), 0));
    assert_eq!(world.command(service_call::STATUS, "nobody", RECORD), Some(Err(Errno::ENOENT)));
    assert_eq!(world.command(99, "uart", RECORD), Some(Err(Errno::EINVAL)));
}

#[test]
fn the_status_tells_of_the_last_death_and_the_present_life() {
    let mut world = world();
    world.with(|kernel| kernel.now_ns = 5_000_000);
    let alive = status(&mut world, "uart");
    assert_eq!((alive.ended_ns, alive.reason, alive.last_status), (0, 0, 0));
    world.exit(UART, 3);
    let starting = status(&mut world, "uart");
    assert_eq!((starting.ended_ns, starting.ready_ns, starting.state), (5_000_000, 0, state::RESTARTING));
    assert_eq!((starting.reason, starting.last_status, starting.restarts), (1, 3, 1));
    world.command(service_call::RESTART, "uart", 0);
    let killed = status(&mut world, "uart");
    assert_eq!((killed.reason, killed.last_status, killed.restarts), (4, 0, 0));
    world.crash(slot::VM as u32);
    let vm = status(&mut world, "vm");
    assert_eq!((vm.ready_ns, vm.reason, vm.last_status, vm.restarts), (5_000_000, 2, 6, 1));
}

#[test]
fn a_buffer_that_is_not_there_is_an_error() {
    let mut world = world();
    let mut call = words(service_call::LIST, "", RECORD);
    call[3] = 0x10;
    assert_eq!(world.service_call(call, 0), Some(Err(Errno::EFAULT)));
}

#[test]
fn a_killed_service_has_a_successor_and_no_report() {
    let mut world = world();
    assert_eq!(world.command(service_call::KILL, "uart", 0), Some(Ok(0)));
    assert_eq!(world.holder(UART), Endpoint::new(20, 2));
    assert_eq!(world.command(service_call::LOG, "uart", 100), Some(Err(Errno::ENODATA)));
    assert_eq!(world.calls_of(KernelCall::Destroy), [[Endpoint::new(20, 1).to_word(), 1, 0, 0, 0, 0]]);
    assert_eq!(world.command(service_call::KILL, "nobody", 0), Some(Err(Errno::ENOENT)));
}

#[test]
fn a_kill_over_which_rs_died_succeeds_if_nobody_is_left() {
    let mut world = world();
    world.exhaust_memory();
    assert_eq!(world.command(service_call::KILL, "uart", 0), Some(Ok(0)));
    assert!(!world.is_held(UART));
    let mut kill = words(service_call::KILL, "uart", 0);
    assert_eq!(world.service_call(kill, 0), Some(Err(Errno::ESRCH)));
    kill[6] = REPEATED;
    assert_eq!(world.service_call(kill, 0), Some(Ok(0)));
}

#[test]
fn a_restarted_service_begins_afresh() {
    let mut world = world();
    assert_eq!(world.command(service_call::RESTART, "uart", 0), Some(Ok(0)));
    assert_eq!(world.holder(UART), Endpoint::new(20, 2));
    assert_eq!(world.command(service_call::RESTART, "vm", 0), Some(Err(Errno::EPERM)));
}

#[test]
fn an_injection_reaches_the_kernel_once() {
    let mut world = world();
    let what = Injection { kind: inject::KILL_AFTER_MESSAGES, value: 3, further: 4, bytes: 5 };
    world.write(PROGRAM, BUFFER, what.as_bytes());
    let bytes = size_of::<Injection>() as u64;
    assert_eq!(world.command(service_call::INJECT, "uart", bytes - 1), Some(Err(Errno::EINVAL)));
    assert_eq!(world.command(service_call::INJECT, "uart", bytes), Some(Ok(0)));
    let uart = world.holder(UART).to_word();
    assert_eq!(world.calls_of(KernelCall::Inject), [[uart, inject::KILL_AFTER_MESSAGES, 3, 4, 5, 0]]);
    let mut again = words(service_call::INJECT, "uart", bytes);
    again[6] = REPEATED;
    assert_eq!(world.service_call(again, 0), Some(Ok(0)));
    assert_eq!(world.calls_of(KernelCall::Inject).len(), 1);
}

#[test]
fn a_failing_allocation_is_asked_of_the_service() {
    let mut world = world();
    let what = Injection { kind: inject::ALLOCATION, value: 3, ..Injection::default() };
    world.write(PROGRAM, BUFFER, what.as_bytes());
    let bytes = size_of::<Injection>() as u64;
    assert_eq!(world.command(service_call::INJECT, "uart", bytes), Some(Ok(0)));
    let uart = world.holder(UART);
    let asked = |(to, message): &(Endpoint, Message)| *to == uart && message.label == FailAllocation::LABEL;
    let orders: Vec<u64> =
        world.with(|kernel| kernel.sent.iter().filter(|sent| asked(sent)).map(|(_, order)| order.words[0]).collect());
    assert_eq!(orders, [3]);
}

#[test]
fn the_log_of_a_service_is_its_newest_report_as_far_as_it_fits() {
    let mut world = world();
    world.crash(UART);
    assert_eq!(world.command(service_call::LOG, "uart", 14), Some(Ok(14)));
    assert_eq!(world.buffer(15), b"crash report 1\0");
    let all = world.command(service_call::LOG, "uart", 8000);
    assert!(matches!(all, Some(Ok(15..4096))), "{all:?}");
    assert_eq!(world.command(service_call::LOG, "rtc", 14), Some(Err(Errno::ENODATA)));
    assert_eq!(world.command(service_call::LOG, "nobody", 14), Some(Err(Errno::ENOENT)));
}

#[test]
fn a_reader_of_reports_waits_for_the_next_one() {
    let mut world = world();
    let mut call = words(service_call::REPORT, "", 4096);
    call[5] = 1;
    assert_eq!(world.service_call(call, 0), None);
    world.crash(UART);
    let Some(Ok(bytes)) = world.result_of_call(PROGRAM) else { panic!("the report has come") };
    let buffer = world.buffer(bytes);
    let (head, text) = buffer.split_at(size_of::<ReportHead>());
    let expected = ReportHead { number: 1, name: name("uart"), bytes: text.len() as u64 };
    assert_eq!(ReportHead::read_from_bytes(head), Ok(expected));
    assert!(text.starts_with(b"crash report 1: uart, generation 1\n"));
    world.crash(RTC);
    assert_eq!(world.result_of_call(PROGRAM), None, "it was answered once");
    assert_eq!(world.service_call(call, 0), Some(Ok(bytes)), "it is still there");
    let mut small = call;
    small[4] = bytes - 1;
    assert_eq!(world.service_call(small, 0), Some(Err(Errno::EINVAL)));
    small[4] = bytes;
    assert_eq!(world.service_call(small, 0), Some(Ok(bytes)));
}

#[test]
fn the_newest_reader_of_reports_waits_alone() {
    let mut world = world();
    let mut call = words(service_call::REPORT, "", 4096);
    call[5] = 1;
    assert_eq!(world.service_call(call, 0), None);
    let other = Endpoint::new(201, 1);
    world.add_memory(other, BUFFER, vec![0; 4096]);
    assert_eq!(world.begin_call(other, call, 0), None);
    assert_eq!(world.result_of_call(PROGRAM), Some(Err(Errno::EBUSY)));
    world.crash(UART);
    assert!(matches!(world.result_of_call(other), Some(Ok(1..))));
    assert_eq!(world.result_of_call(PROGRAM), None);
}

/// A program that vm would take.
fn program() -> Vec<u8> {
    crate::update_tests::program(0).bytes().to_vec()
}

fn begin_update(world: &mut World, of: &str) -> Option<Result<u64, Errno>> {
    let program = program();
    world.write(PROGRAM, BUFFER, &program);
    world.command(service_call::UPDATE, of, program.len() as u64)
}

#[test]
fn an_update_is_answered_when_its_trial_is_over() {
    let mut world = world();
    assert_eq!(begin_update(&mut world, "uart"), None);
    let asked = world.requests_to(UART as usize);
    assert_eq!(asked.iter().map(|one| one.label).collect::<Vec<_>>(), [PrepareUpdate {}.message().label]);
    assert_eq!(begin_update(&mut world, "uart"), Some(Err(Errno::EBUSY)));
    world.call(Endpoint::new(20, 1), asked[0].reply(Ok(0)));
    assert_eq!(world.holder(UART), Endpoint::new(20, 2));
    let spawned = world.with(|kernel| kernel.to_vm.iter().map(|one| vm::Spawn::from_message(one).image_bytes).max());
    assert_eq!(spawned, Some(program().len() as u64));
    world.ready(UART);
    world.answer_all();
    assert_eq!(world.result_of_call(PROGRAM), None);
    for _ in 0..12 {
        world.advance_ms(5);
        world.notify(Endpoint::new(20, 2));
        world.notify(Endpoint::new(21, 1));
    }
    assert_eq!(world.result_of_call(PROGRAM), Some(Ok(0)));
    world.crash(UART);
    assert_eq!(world.command(service_call::LOG, "uart", 8000).map(|result| result.is_ok()), Some(true));
    assert!(world.buffer(100).starts_with(b"crash report 1: uart, generation 2, with an updated program\n"));
}

#[test]
fn a_failed_update_is_answered_to_its_own_caller() {
    let mut world = world();
    let other = Endpoint::new(201, 1);
    world.add_memory(other, BUFFER, program());
    assert_eq!(begin_update(&mut world, "rtc"), None);
    assert_eq!(world.begin_call(other, words(service_call::UPDATE, "uart", program().len() as u64), 0), None);
    let asked = world.requests_to(UART as usize);
    world.call(Endpoint::new(20, 1), asked[0].reply(Ok(0)));
    world.crash(UART);
    assert_eq!(world.result_of_call(PROGRAM), None);
    assert_eq!(world.result_of_call(other), Some(Err(Errno::ECANCELED)));
}

#[test]
fn a_file_that_is_no_program_is_no_update() {
    let mut world = world();
    assert_eq!(world.command(service_call::UPDATE, "uart", 100), Some(Err(Errno::ENOEXEC)));
    assert_eq!(world.command(service_call::UPDATE, "uart", 2 << 20), Some(Err(Errno::EFBIG)));
    assert_eq!(world.requests_to(UART as usize), []);
}
