//! Nodes, containers, and who is bound.

use super::world::{MEMORY, PACKET, World};
use m3ipc::call::Call;
use m3ipc::descriptor::{ContainerInfo, DrvsInfo};
use m3ipc::error::Error;

const FOREVER: i64 = -1;

#[test]
fn the_node_comes_first_and_is_roots() {
    let (mut world, root) = World::new();
    let user = world.program(7);
    assert_eq!(world.call(user, Call::DrvsEnd, &[]), World::fails(Error::NotPermitted));
    assert_eq!(world.call(root, Call::DrvsInit, &[2, 0]), World::fails(Error::AlreadyInitialised));
    assert_eq!(world.call(root, Call::DrvsEnd, &[]), Some(0));
    assert_eq!(world.call(root, Call::DrvsInfo, &[MEMORY as i64]), World::fails(Error::NotInitialised));
    assert_eq!(world.call(root, Call::DrvsInit, &[32, 0]), World::fails(Error::BadNode));
    world.put(root, MEMORY, &DrvsInfo { containers: 33, ..DrvsInfo::default() });
    assert_eq!(world.call(root, Call::DrvsInit, &[1, MEMORY as i64]), World::fails(Error::Range));
    let info = DrvsInfo {
        containers: 1,
        nodes: 4,
        processes: 100,
        tasks: 10,
        system_processes: 20,
        max_copy_buffer: 4096,
        max_copy: 4096,
        ..DrvsInfo::default()
    };
    world.put(root, MEMORY, &info);
    assert_eq!(world.call(root, Call::DrvsInit, &[1, MEMORY as i64]), Some(1));
    world.put(root, MEMORY, &ContainerInfo { number: 1, ..ContainerInfo::default() });
    assert_eq!(world.call(root, Call::VmInit, &[MEMORY as i64]), World::fails(Error::BadContainer), "one only");
}

#[test]
fn a_container_ends_with_its_processes() {
    let (mut world, root) = World::new();
    let (one, pid) = (world.program(7), 102);
    world.bind(one, 5);
    assert_eq!(world.call(one, Call::VmEnd, &[0]), World::fails(Error::NotPermitted));
    assert_eq!(world.call(root, Call::VmEnd, &[0]), Some(0));
    assert_eq!(world.server.system.signals, [(pid, 13)]);
    assert_eq!(world.call(root, Call::VmInfo, &[0, MEMORY as i64]), World::fails(Error::ContainerNotRunning));
    assert_eq!(world.call(root, Call::VmInfo, &[32, MEMORY as i64]), World::fails(Error::BadContainer));
}

#[test]
fn slots_are_taken_once_and_by_one() {
    let (mut world, _) = World::new();
    let (one, two) = (world.program(7), world.program(7));
    assert_eq!(world.bind(one, 70), 35_570 + 70);
    assert_eq!(world.call(one, Call::Bind, &[0, 71]), World::fails(Error::Busy));
    assert_eq!(world.call(two, Call::Bind, &[0, 70]), World::fails(Error::SlotUsed));
    assert_eq!(world.call(two, Call::Bind, &[0, 221]), World::fails(Error::Range));
    assert_eq!(world.call(two, Call::Bind, &[1, 4]), World::fails(Error::ContainerNotRunning));
    assert_eq!(world.call(two, Call::ThreadBind, &[0, 71]), World::fails(Error::GroupLeader));
    world.end(one);
    assert_eq!(world.bind(two, 70), 2 * 35_570 + 70, "a name of its own");
}

#[test]
fn a_parent_binds_its_child_which_waits_for_that() {
    let (mut world, _) = World::new();
    let (parent, child, stranger) = (world.program(7), world.program(7), world.program(8));
    let pid = world.server.system.program(child).process.pid.into();
    assert_eq!(world.call(child, Call::WaitForBind, &[0]), World::fails(Error::Again));
    assert_eq!(world.call(child, Call::WaitForBind, &[FOREVER]), None);
    assert_eq!(world.call(stranger, Call::LocalBind, &[0, pid, 9]), World::fails(Error::NotPermitted));
    assert_eq!(world.call(parent, Call::LocalBind, &[0, 4711, 9]), World::fails(Error::BadPid));
    assert_eq!(world.call(parent, Call::LocalBind, &[0, pid, 9]), Some(9));
    assert_eq!(world.result(child), Some(9));
    assert_eq!(world.call(parent, Call::GetEndpoint, &[pid]), Some(9));
    assert_eq!(world.call(child, Call::WaitForBind, &[FOREVER]), Some(9), "it is");
    assert_eq!(world.call(stranger, Call::Unbind, &[0, 9]), World::fails(Error::NotPermitted));
}

#[test]
fn bindings_and_their_ends_are_waited_for() {
    let (mut world, _) = World::new();
    let [one, two, three] = [(); 3].map(|()| world.program(0));
    world.bind(one, 3);
    assert_eq!(world.call(one, Call::WaitForBindOf, &[4, FOREVER]), None);
    world.bind(two, 4);
    assert_eq!(world.result(one), Some(4));
    assert_eq!(world.call(one, Call::WaitForUnbind, &[4, FOREVER]), None);
    world.end(two);
    assert_eq!(world.result(one), Some(0));
    assert_eq!(world.call(one, Call::WaitForBindOf, &[4, 10]), None);
    world.advance_ms(10);
    assert_eq!(world.result(one), World::fails(Error::TimedOut));
    assert_eq!(world.call(three, Call::WaitForBindOf, &[4, 10]), World::fails(Error::NotBound));
}

#[test]
fn threads_are_bound_behind_their_leader_and_end_with_it() {
    let (mut world, _) = World::new();
    let leader = world.program(7);
    let thread = world.thread_of(leader);
    world.bind(leader, 3);
    assert_eq!(world.call(thread, Call::ThreadBind, &[0, 4]), Some(4));
    assert_eq!(world.call(thread, Call::ThreadBind, &[0, 5]), World::fails(Error::Busy));
    assert_eq!(world.call(thread, Call::Receive, &[0x7ace, PACKET as i64, FOREVER]), None);
    assert_eq!(world.call(leader, Call::Unbind, &[0, 3]), Some(0));
    assert_eq!(world.result(thread), World::fails(Error::NotBound));
    assert_eq!(world.call(thread, Call::Receive, &[0x7ace, PACKET as i64, FOREVER]), World::fails(Error::NotBound));
}
