//! Who may make which request.

use super::*;
use abi::{Errno, Message};

/// Those whose requests are tried: a service that has no part of its own in the protocol is the last.
const SENDERS: [usize; 5] = [slot::RS, slot::PM, slot::VFS, slot::PCI, slot::DS];
const OF_RS: [u32; 4] = [vm::Spawn::LABEL, vm::Renew::LABEL, vm::SetRights::LABEL, vm::DeviceLost::LABEL];
const OF_PM: [u32; 11] = [
    vm::Fork::LABEL,
    vm::Exec::LABEL,
    vm::SegmentAttach::LABEL,
    vm::SegmentRelease::LABEL,
    vm::SegmentStatus::LABEL,
    vm::NextPresent::LABEL,
    vm::Poke::LABEL,
    vm::MemoryUse::LABEL,
    vm::SetContainer::LABEL,
    vm::ContainerMemory::LABEL,
    vm::SetLimits::LABEL,
];
const OF_ANY: [u32; 8] = [
    vm::OfferMemory::LABEL,
    vm::MapOffered::LABEL,
    vm::IsShown::LABEL,
    vm::MapPhysical::LABEL,
    vm::AllocateDma::LABEL,
    vm::Discard::LABEL,
    vm::MemoryInfo::LABEL,
    vm::ClockChange::LABEL,
];
const OF_INSPECTORS: [u32; 3] = [vm::ProcessMemory::LABEL, vm::Maps::LABEL, vm::MappedName::LABEL];

fn may(sender: usize, label: u32) -> bool {
    match label {
        _ if OF_ANY.contains(&label) => true,
        _ if OF_INSPECTORS.contains(&label) => false,
        vm::Exit::LABEL => [slot::PM, slot::RS].contains(&sender),
        vm::DmaBlock::LABEL => sender == slot::PCI,
        _ if OF_RS.contains(&label) => sender == slot::RS,
        _ if OF_PM.contains(&label) => sender == slot::PM,
        _ => sender == slot::VFS,
    }
}

/// A request about nothing.
fn is_refused(server: &mut Server<Simulation>, sender: Endpoint, label: u32) -> bool {
    let request = Message { source: sender, ..Message::new(label) };
    server.handle(&request).done().expect("answered at once").result() == Err(Errno::EPERM)
}

#[test]
fn each_request_is_refused_to_all_but_those_whom_the_protocol_names() {
    for label in vm::Spawn::LABEL..=vm::SharedShow::LABEL {
        for sender in SENDERS {
            let (mut server, _) = with_program(512);
            // The grant of each request, which is too short.
            crate::simulation::grant(&mut server, Vec::new());
            let is_refused = is_refused(&mut server, Endpoint::new(sender, 1), label);
            assert_eq!(is_refused, !may(sender, label), "request {label:#x} of slot {sender}");
        }
    }
}

#[test]
fn what_is_not_for_every_service_is_refused_to_programs() {
    let (mut server, program) = with_program(512);
    for label in (vm::Spawn::LABEL..=vm::SharedShow::LABEL).filter(|label| !OF_ANY.contains(label)) {
        assert!(is_refused(&mut server, program, label), "request {label:#x}");
    }
    for label in [vm::AllocateDma::LABEL, vm::ClockChange::LABEL] {
        assert!(is_refused(&mut server, program, label), "request {label:#x}");
    }
}

#[test]
fn who_inspects_memory_may_until_that_is_taken_from_the_slot() {
    let (mut server, _) = with_program(512);
    let inspector = Endpoint::new(slot::DS, 1);
    for inspects_memory in [true, false] {
        let rights = vm::SetRights { process: inspector, dma_bytes: 0, inspects_memory };
        assert_eq!(server.ask(slot::RS, rights.message()).result(), Ok(0));
        for label in OF_INSPECTORS {
            assert_eq!(is_refused(&mut server, inspector, label), !inspects_memory);
            assert!(is_refused(&mut server, Endpoint::new(slot::PM, 1), label));
        }
    }
}
