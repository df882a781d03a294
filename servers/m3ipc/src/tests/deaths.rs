//! m3ipc dies between any two messages, and nobody notices.

use super::world::{MEMORY, PACKET, World};
use m3ipc::call::Call;
use m3ipc::endpoint::Number;
use m3ipc::error::Error;
use m3ipc::rendezvous::Place;

const ANY: i64 = 0x7ace;
const FOREVER: i64 = -1;

#[test]
fn waits_and_results_outlive_the_server() {
    let (mut world, _) = World::new();
    let [one, two] = [(); 2].map(|()| world.program(0));
    let (one_name, two_name) = (world.bind_mediated(one, 3), world.bind_mediated(two, 4));
    world.packet(one, 77);
    assert_eq!(world.call(one, Call::SendReceive, &[two_name, PACKET as i64, FOREVER]), None);
    world.die();
    assert_eq!(world.call(two, Call::Receive, &[ANY, PACKET as i64, FOREVER]), Some(0));
    assert_eq!(world.received(two), (one_name, 77));
    world.die();
    assert_eq!(world.result(one), None);
    world.packet(two, 78);
    assert_eq!(world.call(two, Call::Reply, &[one_name, PACKET as i64, 0]), Some(0));
    assert_eq!((world.result(one), world.received(one)), (Some(0), (two_name, 78)));
}

/// The result was noted, and the death came before the answer.
#[test]
fn a_call_that_had_ended_is_answered_again() {
    let (mut world, _) = World::new();
    let [one, two] = [(); 2].map(|()| world.program(0));
    let (_, two_name) = (world.bind_mediated(one, 3), world.bind_mediated(two, 4));
    world.packet(one, 77);
    assert_eq!(world.call(two, Call::Receive, &[ANY, PACKET as i64, FOREVER]), None);
    assert_eq!(world.call(one, Call::Send, &[two_name, PACKET as i64, FOREVER]), Some(0));
    for thread in [one, two] {
        world.server.system.program(thread).calls = true;
    }
    world.packet(two, 0);
    world.die();
    assert_eq!([world.result(one), world.result(two)], [Some(0); 2]);
    assert_eq!(world.received(two).1, 77, "once more the same");
    assert_eq!(
        world.call(two, Call::Receive, &[ANY, PACKET as i64, 0]),
        World::fails(Error::Again),
        "and no second one"
    );
}

#[test]
fn ends_of_processes_that_were_missed_are_found() {
    let (mut world, _) = World::new();
    let [one, two] = [(); 2].map(|()| world.program(0));
    let (_, two_name) = (world.bind_mediated(one, 3), world.bind(two, 4));
    assert_eq!(world.call(one, Call::Receive, &[two_name, PACKET as i64, 50]), None);
    world.server.system.programs.remove(&two.0);
    world.die();
    assert_eq!(world.result(one), World::fails(Error::SourceDied));
}

#[test]
fn time_limits_go_on() {
    let (mut world, _) = World::new();
    let one = world.program(0);
    world.bind_mediated(one, 3);
    assert_eq!(world.call(one, Call::Receive, &[ANY, PACKET as i64, 50]), None);
    world.server.system.alarm_ns = 0;
    world.die();
    world.advance_ms(50);
    assert_eq!(world.result(one), World::fails(Error::TimedOut));
}

/// Notifications that a service has sent, and that nobody has received, are cancelled when it dies.
#[test]
fn what_waits_for_a_member_that_uses_primitives_is_told_again() {
    let (mut world, _) = World::new();
    let [one, two, three] = [(); 3].map(|()| world.program(0));
    let (_, two_name, three_name) = (world.bind_mediated(one, 3), world.bind(two, 4), world.bind(three, 5));
    world.packet(one, 77);
    assert_eq!(world.call(one, Call::SendReceive, &[two_name, PACKET as i64, FOREVER]), None);
    assert_eq!(world.call(three, Call::Unbind, &[0, three_name]), Some(0));
    for thread in [two, three] {
        world.server.system.program(thread).notified = 0;
    }
    world.die();
    assert_eq!([two, three].map(|thread| world.server.system.program(thread).notified), [1, 1]);
}

/// They have no thread that could know of it.
#[test]
fn bindings_of_processes_of_other_nodes_outlive_the_server() {
    let (mut world, root) = World::new();
    let one = world.program(0);
    world.bind(one, 3);
    assert_eq!(world.call(root, Call::AddNode, &[0, 5]), Some(0));
    assert_eq!(world.call(root, Call::RemoteBind, &[0, 20, 5, MEMORY as i64]), Some(20));
    world.die();
    assert_eq!(world.call(one, Call::Send, &[20, PACKET as i64, FOREVER]), World::fails(Error::NoProxy));
    assert_eq!(world.call(root, Call::Unbind, &[0, 20]), Some(0));
    assert_eq!(world.call(one, Call::Send, &[20, PACKET as i64, FOREVER]), World::fails(Error::DestinationDied));
}

#[test]
fn a_slot_that_was_occupied_and_has_no_member_is_free_again() {
    let (mut world, _) = World::new();
    let one = world.program(0);
    let slot = Number::new(3).expect("a slot");
    let _ = world.server.containers[0].machine.bind(slot, Place::Here);
    assert_eq!(world.bind(one, 3), World::fails(Error::SlotUsed).expect("an error"));
    world.die();
    assert_eq!(world.bind(one, 3), 3);
}
