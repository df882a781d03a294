//! The start of the system: what a service gets before its first step, and who is told.

use super::world::{ARCHIVE, RTC, STACK_BYTES, UART, World, named, services, uart};
use crate::supervisor_tests::{name, service};
use abi::call::KernelCall;
use abi::endpoint::slot;
use abi::layout::SERVICE_STACK_END;
use abi::privilege::MemoryRange;
use abi::rs::{Arguments, NextChange, Ready};
use abi::system::Service;
use abi::{Endpoint, Errno, GrantId, Message, Word, pci, pm, vm};
use std::vec;
use std::vec::Vec;

fn driver(text: &str) -> Service {
    Service { arguments: text.into(), quantum_us: 500, heap_bytes: 0x2000, keep_bytes: 0x1000, ..uart() }
}

#[test]
fn services_start_in_their_order_each_when_the_one_before_is_ready() {
    let mut world = World::new(services(vec![uart(), service("rtc", RTC)]), &[]);
    assert!(world.is_held(slot::DS as u32) && !world.is_held(slot::PM as u32));
    world.ready(slot::DS as u32);
    assert!(world.is_held(slot::PM as u32) && !world.is_held(UART));
    world.ready(slot::PM as u32);
    assert!(world.is_held(UART) && !world.is_held(RTC));
    world.ready(UART);
    assert!(world.is_held(RTC));
}

#[test]
fn vm_gets_its_rights_and_is_not_started_again() {
    let world = World::new(services(vec![]), &[]);
    let vm = world.holder(slot::VM as u32);
    assert_eq!(vm.generation(), 1);
    assert_eq!(world.with(|kernel| kernel.privileges[&vm].name), name("vm"));
    assert_eq!(world.calls_of(KernelCall::Schedule)[0], [vm.to_word(), 3, 0, 0, 0, 0]);
}

#[test]
fn a_service_gets_rights_queue_memory_arguments_and_runs() {
    let world = World::new(vec![service("vm", 5), driver("first second")], &[]);
    let uart = world.holder(UART);
    assert_eq!(world.with(|kernel| kernel.privileges[&uart].name), name("uart"));
    assert_eq!(world.calls_of(KernelCall::Schedule).last(), Some(&[uart.to_word(), 3, 500, 0, 0, 0]));
    let spawn = world.with(|kernel| vm::Spawn::from_message(&kernel.to_vm[0]));
    assert_eq!((spawn.process, spawn.image_bytes, spawn.argument_bytes), (uart, 4, 0));
    assert_eq!((spawn.heap_bytes, spawn.keep_bytes), (0x2000, 0x1000));
    assert_eq!(world.calls_of(KernelCall::Start), [[uart.to_word(), 0, 0, 0, 0, 0]]);
    let registers = world.calls_of(KernelCall::SetRegisters)[0];
    assert_eq!((registers[0], registers[2]), (uart.to_word(), 0));
    // Twelve bytes below the end of the stack, at a multiple of 16.
    assert_eq!(world.read(uart, SERVICE_STACK_END - 16, 16), b"first second\0\0\0\0");
    assert_eq!(world.read(uart, SERVICE_STACK_END - STACK_BYTES, 16), [0; 16]);
}

#[test]
fn vm_knows_the_rights_of_a_service_before_it_runs() {
    let with_rights = Service { dma_bytes: 0x3000, inspects_memory: true, ..driver("") };
    let world = World::new(vec![service("vm", 5), with_rights], &[]);
    let (rights, spawn) = world.with(|kernel| (kernel.to_vm[0], kernel.to_vm[1].label));
    assert_eq!((rights.label, spawn), (vm::SetRights::LABEL, vm::Spawn::LABEL));
    let rights = vm::SetRights::from_message(&rights);
    assert_eq!((rights.process, rights.dma_bytes, rights.inspects_memory), (world.holder(UART), 0x3000, true));
}

#[test]
fn arguments_say_where_the_module_is() {
    let with_module = Service { module: Some("root.img".into()), ..driver("") };
    let world = World::new(vec![service("vm", 5), with_module], &[("root.img", &[7; 40])]);
    let uart = world.holder(UART);
    let text = std::format!("module={:#x},0x28", ARCHIVE + 0x1000);
    assert_eq!(world.read(uart, SERVICE_STACK_END - 32, text.len() as u64), text.as_bytes());
    let memory = world.with(|kernel| kernel.privileges[&uart].memory[0]);
    assert_eq!(memory, MemoryRange { start: ARCHIVE + 0x1000, bytes: 40 });
}

#[test]
fn a_module_comes_behind_the_other_arguments() {
    let with_module = Service { module: Some("root.img".into()), ..driver("a") };
    let world = World::new(vec![service("vm", 5), with_module], &[("root.img", &[7; 40])]);
    let text = std::format!("a module={:#x},0x28", ARCHIVE + 0x1000);
    assert_eq!(world.read(world.holder(UART), SERVICE_STACK_END - 32, text.len() as u64), text.as_bytes());
}

#[test]
fn a_service_without_its_module_is_left_out_and_the_next_one_starts() {
    for optional in [false, true] {
        let absent = Service { module: Some("root.img".into()), optional, ..driver("") };
        let world = World::new(vec![service("vm", 5), absent, service("rtc", RTC)], &[]);
        assert!(!world.is_held(UART) && world.is_held(RTC));
        assert_eq!(world.with(|kernel| kernel.log.contains("uart cannot run: ENXIO")), !optional);
    }
}

#[test]
fn what_vm_refuses_is_cleared_away() {
    let mut world = World::new(services(vec![uart()]), &[]);
    world.ready(slot::DS as u32);
    world.with(|kernel| kernel.refusals.push(Errno::ENOMEM));
    world.ready(slot::PM as u32);
    assert!(!world.is_held(UART));
    assert!(world.with(|kernel| kernel.log.contains("uart cannot be started: ENOMEM")));
    let destroyed = world.calls_of(KernelCall::Destroy);
    assert_eq!(destroyed.first().map(|call| (call[0], call[1])), Some((Endpoint::new(20, 1).to_word(), 1)));
}

#[test]
fn pm_learns_who_is_up_and_when_to_start_the_first_program() {
    let mut world = World::new(services(vec![uart()]), &[]);
    world.ready(slot::DS as u32);
    assert_eq!(world.requests_to(slot::PM), [], "pm is not up");
    world.ready(slot::PM as u32);
    world.ready(UART);
    let told = world.answer_all();
    let up = |request: &Message| match pm::Request::decode(request) {
        Some(pm::Request::ServiceUp(up)) => Some((named(up.name_low, up.name_high), up.process)),
        _ => None,
    };
    let expected = [("vm", 5), ("ds", 6), ("pm", 7), ("uart", 20)];
    let expected = expected.map(|(text, slot)| Some((name(text), Endpoint::new(slot, 1))));
    assert_eq!(told[..4].iter().map(up).collect::<Vec<_>>(), expected);
    assert_eq!((told.len(), told[4].label), (5, pm::Boot {}.message().label));
    assert!(!world.with(|kernel| kernel.log.contains("refuses")));
}

#[test]
fn a_refusal_of_pm_is_logged() {
    let mut world = World::new(services(vec![]), &[]);
    world.ready(slot::DS as u32);
    world.ready(slot::PM as u32);
    let asked = world.requests_to(slot::PM);
    world.call(world.holder(slot::PM as u32), asked[0].reply(Err(Errno::EAGAIN)));
    assert!(world.with(|kernel| kernel.log.contains("pm refuses Announced: EAGAIN")));
}

#[test]
fn a_stranger_is_not_ready_and_may_ask_for_nothing() {
    let mut world = World::booted(services(vec![uart()]), &[]);
    let stranger = Endpoint::new(20, 7);
    let reply = world.call(stranger, Ready { status: 0 }.message());
    assert_eq!(reply, None, "it does not live");
    let program = Endpoint::new(300, 1);
    let reply = world.call(program, Ready { status: 0 }.message());
    assert_eq!(reply.map(|reply| reply.result()), Some(Err(Errno::ESRCH)));
    let reply = world.call(program, Message::new(0x777));
    assert_eq!(reply.map(|reply| reply.result()), Some(Err(Errno::ENOSYS)));
    let reply = world.call(program, NextChange { restart: false }.message());
    assert_eq!(reply.map(|reply| reply.result()), Some(Err(Errno::EPERM)));
}

#[test]
fn a_service_reads_its_arguments_as_far_as_its_buffer_reaches() {
    let mut world = World::booted(services(vec![driver("some text")]), &[]);
    let uart = world.holder(UART);
    for (bytes, expected) in [(64, &b"some text\0"[..]), (4, b"some\0")] {
        world.write(uart, 0, &[0; 10]);
        let reply = world.call(uart, Arguments { grant: GrantId(1), bytes }.message());
        assert_eq!(reply.map(|reply| reply.result()), Some(Ok(bytes.min(9))));
        assert_eq!(world.read(uart, 0, expected.len() as u64), expected);
    }
    let program = Endpoint::new(300, 1);
    let reply = world.call(program, Arguments { grant: GrantId(1), bytes: 4 }.message());
    assert_eq!(reply.map(|reply| reply.result()), Some(Err(Errno::ESRCH)));
}

#[test]
fn ds_is_notified_once_and_fetches_every_change() {
    let mut world = World::new(services(vec![uart()]), &[]);
    world.ready(slot::DS as u32);
    let ds = world.holder(slot::DS as u32);
    world.ready(slot::PM as u32);
    assert_eq!(world.with(|kernel| kernel.notified.iter().filter(|who| **who == ds).count()), 1);
    let mut names = Vec::new();
    loop {
        let reply = world.call(ds, NextChange { restart: false }.message()).expect("is answered");
        match NextChange::results(&reply) {
            Ok((low, high, endpoint, up)) => names.push((named(low, high), endpoint, up)),
            Err(error) => break assert_eq!(error, Errno::ENOENT),
        }
    }
    let up = |text, slot| (name(text), Endpoint::new(slot, 1), true);
    assert_eq!(names[..3], [up("vm", 5), up("ds", 6), up("pm", 7)]);
    assert_eq!((names.len(), names[3].0, names[3].2), (4, name("uart"), false));
    let reply = world.call(ds, NextChange { restart: true }.message()).expect("is answered");
    let (low, high, ..) = NextChange::results(&reply).expect("begins again");
    assert_eq!(named(low, high), name("vm"));
}

#[test]
fn a_driver_gets_what_its_device_has() {
    let pci_service = Service { heartbeat_ms: 0, ..service("pci", slot::PCI as u32) };
    let disk = Service { pci: vec![(0x1af4, 0x1042)], heartbeat_ms: 0, ..uart() };
    let mut world = World::new(services(vec![pci_service, disk]), &[]);
    for slot in [slot::DS, slot::PM, slot::PCI] {
        world.ready(slot as u32);
    }
    assert!(!world.is_held(UART));
    let pci = world.holder(slot::PCI as u32);
    let asked = world.requests_to(slot::PCI);
    let assign = pci::Assign { slot: 20, vendor: 0x1af4, device: 0x1042, index: 0, sizes: 0 };
    assert_eq!((asked.len(), pci::Assign::from_message(&asked[0])), (1, assign));
    world.call(pci, pci::Assign::reply(&asked[0], 0, 8, 0xff0b, 7));
    for bar in 0..6 {
        assert!(!world.is_held(UART));
        let asked = world.requests_to(slot::PCI);
        assert_eq!(pci::Bar::from_message(&asked[0]), pci::Bar { slot: 20, bar });
        let (start, bytes) = if bar == 0 { (0xc000, 0x40) } else { (0, 0) };
        world.call(pci, pci::Bar::reply(&asked[0], 0, start, bytes, true));
    }
    let rights = world.with(|kernel| kernel.privileges[&kernel.holders[&20]]);
    assert_eq!((rights.ports[0].first, rights.ports[0].last, rights.irqs[0]), (0xc000, 0xc03f, 11));
    world.ready(20);
    for _ in 0..2 {
        world.crash(slot::PCI as u32);
        world.ready(slot::PCI as u32);
        let asked = world.requests_to(slot::PCI);
        assert_eq!(
            asked.iter().map(pci::Assign::from_message).collect::<Vec<_>>(),
            [pci::Assign { sizes: 7, ..assign }]
        );
    }
}
