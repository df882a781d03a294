//! Messages that m3ipc carries, and what it does for members that use the kernel's primitives.

use super::world::{MEMORY, NAMED, PACKET, World};
use crate::system::Native;
use abi::Endpoint;
use abi::endpoint::{APPLICATIONS_BIT, FIRST_CONTAINER};
use abi::m3ipc::own;
use m3ipc::call::Call;
use m3ipc::descriptor::{Privileges, ProcessInfo, rts};
use m3ipc::error::Error;
use m3ipc::message::Message as Packet;

const ANY: i64 = 0x7ace;
const FOREVER: i64 = -1;

/// Two members whose messages go through m3ipc, with their endpoints.
fn two() -> (World, [(Endpoint, i64); 2]) {
    let (mut world, _) = World::new();
    let members = [3, 4].map(|number| {
        let program = world.program(0);
        (program, world.bind_mediated(program, number))
    });
    (world, members)
}

/// Two members that use the kernel's primitives.
fn two_direct() -> (World, [(Endpoint, i64); 2]) {
    let (mut world, _) = World::new();
    let members = [3, 4].map(|number| {
        let program = world.program(0);
        (program, world.bind(program, number))
    });
    (world, members)
}

#[test]
fn a_message_goes_when_both_are_there_whoever_comes_first() {
    for sender_first in [false, true] {
        let (mut world, [(one, one_name), (two, two_name)]) = two();
        world.packet(one, 77);
        let receive = |world: &mut World| world.call(two, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        if !sender_first {
            assert_eq!(receive(&mut world), None);
        }
        let sent = world.call(one, Call::Send, &[two_name, PACKET as i64, FOREVER]);
        if sender_first {
            assert_eq!((sent, receive(&mut world)), (None, Some(0)));
        }
        assert_eq!([world.result(one), world.result(two)], [Some(0); 2]);
        assert_eq!(world.received(two), (one_name, 77));
    }
}

#[test]
fn a_request_is_answered() {
    let (mut world, [(one, one_name), (two, two_name)]) = two();
    world.packet(one, 5);
    assert_eq!(world.call(one, Call::SendReceive, &[two_name, PACKET as i64, FOREVER]), None);
    assert_eq!(world.call(two, Call::Receive, &[one_name, PACKET as i64, FOREVER]), Some(0));
    assert_eq!(world.result(one), None);
    world.packet(two, 6);
    assert_eq!(world.call(two, Call::Reply, &[one_name, PACKET as i64, 0]), Some(0));
    assert_eq!((world.result(one), world.received(one)), (Some(0), (two_name, 6)));
    assert_eq!(world.call(two, Call::Reply, &[one_name, PACKET as i64, 0]), World::fails(Error::BadState));
}

#[test]
fn errors_have_their_numbers() {
    let (mut world, [(one, one_name), (two, two_name)]) = two();
    let stranger = world.program(0);
    let at = PACKET as i64;
    assert_eq!(world.call(stranger, Call::Send, &[one_name, at, FOREVER]), World::fails(Error::NotBound));
    assert_eq!(world.call(one, Call::Send, &[one_name, at, FOREVER]), World::fails(Error::BadPeer));
    assert_eq!(world.call(one, Call::Send, &[two_name, 8, FOREVER]), World::fails(Error::Fault));
    assert_eq!(world.call(one, Call::Send, &[two_name, at, 0]), World::fails(Error::Again));
    assert_eq!(world.call(one, Call::Send, &[99, at, FOREVER]), World::fails(Error::DestinationDied));
    assert_eq!(world.call(one, Call::Receive, &[two_name, at, 0]), World::fails(Error::Again));
    assert_eq!(world.own_call(one, 49, &[]), World::fails(Error::NotImplemented));
    assert_eq!(world.call(one, Call::SendReceive, &[two_name, at, FOREVER]), None);
    assert_eq!(world.call(two, Call::Send, &[one_name, at, FOREVER]), World::fails(Error::Locked));
}

#[test]
fn a_time_limit_ends_a_wait() {
    let (mut world, [(one, _), (_, two_name)]) = two();
    assert_eq!(world.call(one, Call::Receive, &[two_name, PACKET as i64, 30]), None);
    world.advance_ms(29);
    assert_eq!(world.result(one), None);
    world.advance_ms(1);
    assert_eq!(world.result(one), World::fails(Error::TimedOut));
    assert_eq!(world.server.threads.next_deadline_ns(), 0);
}

#[test]
fn notifications_come_first_and_say_who_and_what() {
    let (mut world, [(one, one_name), (two, two_name)]) = two();
    assert_eq!(world.call(one, Call::NotifyValue, &[two_name, 9]), Some(0));
    assert_eq!(world.call(one, Call::Notify, &[two_name]), World::fails(Error::Overrun));
    assert_eq!(world.call(two, Call::Receive, &[ANY, PACKET as i64, FOREVER]), Some(0));
    let packet: Packet = world.get(two, PACKET);
    assert!(packet.is_notification());
    assert_eq!((i64::from(packet.source), packet.kind & 0xff), (one_name, 3 + 35));
}

#[test]
fn the_end_of_a_peer_is_told() {
    let (mut world, [(one, _), (two, two_name)]) = two();
    assert_eq!(world.call(one, Call::SendReceive, &[two_name, PACKET as i64, FOREVER]), None);
    world.end(two);
    assert_eq!(world.result(one), World::fails(Error::PeerDied));
    assert_eq!(world.call(one, Call::Send, &[two_name, PACKET as i64, FOREVER]), World::fails(Error::DestinationDied));
}

#[test]
fn a_signal_takes_a_wait_back() {
    let (mut world, [(one, one_name), (two, two_name)]) = two();
    assert_eq!(world.call(one, Call::Receive, &[two_name, PACKET as i64, FOREVER]), None);
    world.server.system.program(one).calls = false;
    world.server.look_for_ends();
    world.packet(two, 1);
    assert_eq!(world.call(two, Call::Send, &[one_name, PACKET as i64, 0]), World::fails(Error::Again));
}

#[test]
fn blocks_are_copied_between_processes_that_wait() {
    let (mut world, [(one, one_name), (two, two_name)]) = two();
    let third = world.program(5);
    world.bind_mediated(third, 70);
    world.put(one, MEMORY + 512, &[7u8; 100]);
    let block = [one_name, MEMORY as i64 + 512, two_name, MEMORY as i64 + 1024, 100];
    assert_eq!(world.call(one, Call::Copy, &block), World::fails(Error::BadState));
    assert_eq!(world.call(two, Call::Receive, &[ANY, PACKET as i64, FOREVER]), None);
    assert_eq!(world.call(one, Call::Copy, &block), Some(100));
    assert_eq!(world.get::<[u8; 100]>(two, MEMORY + 1024), [7; 100]);
    assert_eq!(world.call(third, Call::Copy, &block), World::fails(Error::BadState));
    let [source, at, target, to, _] = block;
    for bytes in [-1, 5 << 20] {
        assert_eq!(
            world.call(one, Call::Copy, &[source, at, target, to, bytes]),
            World::fails(Error::Range),
            "{bytes}"
        );
    }
    assert_eq!(world.call(one, Call::Copy, &[source, 1, target, to, 4]), World::fails(Error::AddressNotAvailable));
    assert_eq!(world.call(one, Call::Copy, &[source, 1, target, 1, 0]), Some(0));
    assert_eq!(world.call(one, Call::Receive, &[two_name, PACKET as i64, FOREVER]), None);
    assert_eq!(world.call(third, Call::Copy, &block), World::fails(Error::NotPermitted), "the third is not root");
}

#[test]
fn a_long_block_is_copied_in_pieces_and_counts_as_one() {
    let (mut world, [(one, one_name), (two, two_name)]) = two();
    for thread in [one, two] {
        world.server.system.program(thread).memory = vec![0; 3 << 20];
    }
    world.put(one, MEMORY + (2 << 20), &[7u8; 100]);
    assert_eq!(world.call(two, Call::Receive, &[ANY, PACKET as i64, FOREVER]), None);
    let bytes = (2 << 20) + 100;
    for (done, piece) in [(0, 1 << 20), (1 << 20, 1 << 20), (2 << 20, 100)] {
        assert_eq!(world.get::<[u8; 100]>(two, MEMORY + (2 << 20)), [0; 100], "not copied yet");
        let at = MEMORY as i64 + done;
        assert_eq!(world.call(one, Call::Copy, &[one_name, at, two_name, at, bytes - done]), Some(piece));
    }
    assert_eq!(world.get::<[u8; 100]>(two, MEMORY + (2 << 20)), [7; 100]);
    assert_eq!(world.call(one, Call::ProcessInfo, &[0, 3, MEMORY as i64]), Some(0));
    assert_eq!(world.get::<ProcessInfo>(one, MEMORY).local_copies, 1);
}

#[test]
fn members_with_full_rights_have_the_row_of_their_container() {
    let (mut world, [(one, one_name), (two, two_name)]) = two_direct();
    assert_eq!([one, two].map(|thread| world.server.system.program(thread).row), [FIRST_CONTAINER; 2]);
    let binding = |number: i64, slot: i64| Some(number << 8 | (slot + 35));
    assert_eq!(world.own_call(one, own::MODE, &[]), binding(1, 3));
    assert_eq!(world.own_call(two, own::MODE, &[]), binding(2, 4));
    let found = |raw: u64| Some((own::FOUND | raw) as i64);
    assert_eq!(world.own_call(one, own::RESOLVE, &[two_name]), found(two.0.into()));
    assert_eq!(world.own_call(two, own::NAME, &[one.0.into()]), found(one_name as u64));
    assert_eq!(world.own_call(one, own::RESOLVE, &[one_name]), World::fails(Error::BadPeer));
    assert_eq!(world.own_call(one, own::NAME, &[5]), World::fails(Error::NotBound));
    assert_eq!(world.call(one, Call::Unbind, &[0, one_name]), Some(0));
    assert_eq!(world.server.system.program(one).row, APPLICATIONS_BIT);
    world.bind(one, 3);
    assert_eq!(world.own_call(one, own::MODE, &[]), Some(0), "its thread has had another name here");
}

#[test]
fn a_sender_that_has_ended_has_its_name_until_another_has_its_slot() {
    let (mut world, [(one, one_name), (two, _)]) = two_direct();
    world.end(one);
    assert_eq!(world.own_call(two, own::NAME, &[one.0.into()]), Some((own::FOUND | one_name as u64) as i64));
    let other = world.program(0);
    world.bind(other, 3);
    assert_eq!(world.own_call(two, own::NAME, &[one.0.into()]), World::fails(Error::NotBound));
}

#[test]
fn a_sender_that_has_ended_has_the_name_that_it_was_direct_by() {
    let (mut world, [(one, _), (two, two_name)]) = two_direct();
    assert_eq!(world.call(two, Call::Unbind, &[0, two_name]), Some(0));
    world.bind(two, 2);
    world.end(two);
    assert_eq!(world.own_call(one, own::NAME, &[two.0.into()]), Some((own::FOUND | two_name as u64) as i64));
}

#[test]
fn what_waits_in_the_server_is_fetched_by_a_member_that_is_notified() {
    let (mut world, [(one, one_name), (two, two_name)]) = two_direct();
    world.server.system.program(two).state = Native::Receiving(Endpoint::ANY);
    assert_eq!(world.call(one, Call::Notify, &[two_name]), Some(0));
    assert_eq!(world.server.system.program(two).notified, 1);
    assert_eq!(world.own_call(two, own::FETCH, &[ANY, PACKET as i64, 1]), World::fails(Error::Again), "messages only");
    assert_eq!(world.own_call(two, own::FETCH, &[ANY, PACKET as i64, 0]), Some(own::LAST as i64));
    assert_eq!(world.received(two).0, one_name);
    assert_eq!(world.own_call(two, own::FETCH, &[ANY, PACKET as i64, 0]), World::fails(Error::Again));
}

#[test]
fn a_member_that_receives_by_a_primitive_is_ready_for_one_that_does_not_wait() {
    for call in [Call::Send, Call::Reply] {
        let (mut world, [(one, one_name), (two, two_name)]) = two_direct();
        assert_eq!(world.call(one, Call::Unbind, &[0, one_name]), Some(0));
        world.bind(one, 3);
        world.packet(one, 31);
        let arguments = [two_name, PACKET as i64, 0];
        assert!(world.call(one, call, &arguments) < Some(0), "it runs");
        world.server.system.program(two).state = Native::Receiving(one);
        assert_eq!(world.call(one, call, &arguments), Some(0));
        assert!(world.call(one, call, &arguments) < Some(0), "one message at a time");
        let other = world.program(0);
        let other_name = world.bind(other, 70);
        assert_eq!(world.own_call(two, own::FETCH, &[other_name, PACKET as i64, 0]), World::fails(Error::Again));
        assert_eq!(world.own_call(two, own::FETCH, &[ANY, PACKET as i64, 0]), Some(own::LAST as i64));
        assert_eq!(world.received(two), (one_name, 31));
    }
}

#[test]
fn a_member_whose_rights_are_restricted_goes_on_through_the_server() {
    let (mut world, [(one, one_name), (two, two_name)]) = two_direct();
    // Its request was received by a primitive.
    world.server.system.program(one).state = Native::Answering(two);
    assert_eq!(world.call(two, Call::GetPrivileges, &[0, two_name, MEMORY as i64]), Some(0));
    let rights: Privileges = world.get(two, MEMORY);
    world.put(two, MEMORY, &Privileges { traps: !(1 << 4), ..rights });
    assert_eq!(world.call(two, Call::SetPrivileges, &[0, two_name, MEMORY as i64]), Some(0));
    assert_eq!(world.server.system.program(two).row, APPLICATIONS_BIT);
    world.server.system.program(one).state = Native::Elsewhere;
    let request = Call::SendReceive as i64;
    assert_eq!(
        world.own_call(one, own::RESUME, &[request, two_name, PACKET as i64]),
        None,
        "it awaits the answer here"
    );
    world.packet(two, 12);
    assert_eq!(world.call(two, Call::Reply, &[one_name, PACKET as i64, 0]), Some(0));
    assert_eq!((world.result(one), world.received(one)), (Some(0), (two_name, 12)));
    assert_eq!(world.own_call(one, own::RESOLVE, &[two_name]), Some(0), "through the server from now on");
    assert_eq!(world.call(two, Call::Notify, &[one_name]), World::fails(Error::CallDenied));
}

#[test]
fn a_primitive_that_failed_is_explained() {
    let (mut world, [(one, one_name), (two, two_name)]) = two_direct();
    let resume =
        |world: &mut World, call: Call| world.own_call(one, own::RESUME, &[call as i64, two_name, PACKET as i64]);
    assert_eq!(resume(&mut world, Call::Send), Some(own::REDO as i64));
    world.server.system.program(one).state = Native::Receiving(Endpoint::ANY);
    assert_eq!(world.call(two, Call::WakeUp, &[0, one_name]), Some(0));
    assert_eq!(world.server.system.program(one).failed.take(), Some(Error::WokenUp));
    assert_eq!(world.own_call(one, own::LIMIT, &[20]), Some(0));
    world.server.system.program(one).state = Native::Sending(two);
    world.advance_ms(20);
    assert_eq!(world.server.system.program(one).failed.take(), Some(Error::TimedOut));
    world.server.system.programs.remove(&two.0);
    for (call, error) in
        [(Call::Receive, Error::SourceDied), (Call::SendReceive, Error::PeerDied), (Call::Send, Error::DestinationDied)]
    {
        assert_eq!(resume(&mut world, call), World::fails(error), "pm has not told yet");
    }
}

#[test]
fn threads_that_share_an_endpoint_exchange_messages_through_the_server() {
    let (mut world, [(one, one_name), (two, _)]) = two_direct();
    let other = world.thread_of(one);
    assert_eq!(world.own_call(other, own::MODE, &[]), Some(0));
    assert_eq!(world.call(other, Call::Receive, &[ANY, PACKET as i64, FOREVER]), None);
    assert_eq!(world.own_call(two, own::RESOLVE, &[one_name]), Some(0));
    world.packet(two, 3);
    assert_eq!(world.call(two, Call::Send, &[one_name, PACKET as i64, FOREVER]), Some(0));
    assert_eq!(world.received(other).1, 3);
}

#[test]
fn processes_are_described() {
    let (mut world, [(one, one_name), (two, two_name)]) = two_direct();
    world.server.system.program(two).state = Native::Sending(one);
    assert_eq!(world.call(one, Call::ProcessInfo, &[0, 4, MEMORY as i64]), Some(0));
    let info: ProcessInfo = world.get(one, MEMORY);
    assert_eq!((info.endpoint, info.state, info.sends_to), (two_name as i32, rts::SENDING, one_name as i32));
    assert_eq!(info.name, NAMED);
    assert_eq!(world.call(one, Call::ProcessInfo, &[0, 5, MEMORY as i64]), Some(0));
    assert_eq!(world.get::<ProcessInfo>(one, MEMORY).state, rts::SLOT_FREE);
    assert_eq!(world.call(one, Call::ProcessInfo, &[0, 221, MEMORY as i64]), World::fails(Error::Range));
}
