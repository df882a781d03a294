//! Nodes, containers, and who is bound.

use super::world::{MEMORY, PACKET, World};
use crate::system::Native;
use abi::m3ipc::own;
use m3ipc::call::Call;
use m3ipc::descriptor::{ContainerInfo, DrvsInfo, Privileges};
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
    assert_eq!(world.call(root, Call::DrvsInit, &[32, 0]), World::fails(Error::Range));
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
    assert_eq!(world.call(root, Call::VmInit, &[MEMORY as i64]), World::fails(Error::Range), "one only");
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
    assert_eq!(world.call(one, Call::Bind, &[0, 71]), World::fails(Error::BindType));
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
    assert_eq!(world.result(one), Some(4));
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
    assert_eq!(world.call(thread, Call::ThreadBind, &[0, 5]), World::fails(Error::BindType));
    assert_eq!(world.call(thread, Call::Receive, &[0x7ace, PACKET as i64, FOREVER]), None);
    assert_eq!(world.call(leader, Call::Unbind, &[0, 3]), Some(0));
    assert_eq!(world.result(thread), World::fails(Error::NotBound));
    assert_eq!(world.call(thread, Call::Receive, &[0x7ace, PACKET as i64, FOREVER]), World::fails(Error::NotBound));
}

#[test]
fn processes_of_other_nodes_have_names_and_nothing_reaches_them() {
    let (mut world, root) = World::new();
    let (one, standby) = (world.program(0), world.program(0));
    world.bind(one, 3);
    assert_eq!(world.call(root, Call::AddNode, &[0, 5]), Some(0));
    world.put(root, MEMORY, b"remote\0\0\0\0\0\0\0\0\0\0");
    let bind =
        |world: &mut World, name: i64, node: i64| world.call(root, Call::RemoteBind, &[0, name, node, MEMORY as i64]);
    assert_eq!(bind(&mut world, 20, 2), World::fails(Error::LocalProcess));
    assert_eq!(bind(&mut world, 20, 4), World::fails(Error::NodeNotOfContainer));
    assert_eq!(bind(&mut world, 0x7ace, 5), World::fails(Error::BadPeer));
    assert_eq!(bind(&mut world, 4 * 35_570 + 120, 5), Some(4 * 35_570 + 120));
    assert_eq!(bind(&mut world, 20, 5), Some(20));
    assert_eq!(bind(&mut world, 20, 5), World::fails(Error::SlotUsed));
    assert_eq!(world.call(root, Call::DelNode, &[0, 5]), World::fails(Error::NodeBusy));
    assert_eq!(world.own_call(one, abi::m3ipc::own::RESOLVE, &[20]), Some(0));
    assert_eq!(world.call(one, Call::Send, &[20, PACKET as i64, FOREVER]), World::fails(Error::NoProxy));
    assert_eq!(world.call(root, Call::Unbind, &[0, 20]), Some(0));
    let pid = world.server.system.program(standby).process.pid.into();
    assert_eq!(world.call(root, Call::BackupBind, &[0, pid, 30, 5]), Some(30));
    assert_eq!(world.call(one, Call::Send, &[30, PACKET as i64, FOREVER]), World::fails(Error::NoProxy));
    world.end(standby);
    assert_eq!(world.call(one, Call::Send, &[30, PACKET as i64, FOREVER]), World::fails(Error::DestinationDied));
}

#[test]
fn who_may_join_is_said_by_the_container_or_else_by_the_system_file() {
    let (mut world, root) = World::new();
    let mut info = ContainerInfo { number: 1, name: *b"test\0\0\0\0\0\0\0\0\0\0\0\0", ..ContainerInfo::default() };
    world.put(root, MEMORY, &info);
    assert_eq!(world.call(root, Call::VmInit, &[MEMORY as i64]), Some(0));
    (info.number, info.users[3]) = (2, 8);
    world.put(root, MEMORY, &info);
    assert_eq!(world.call(root, Call::VmInit, &[MEMORY as i64]), Some(0));
    world.server.defaults.groups[0] = 7;
    let (of_group, of_user) = (world.program(7), world.program(8));
    assert_eq!(world.call(of_group, Call::Bind, &[2, 70]), World::fails(Error::NotPermitted), "the container says who");
    assert_eq!(world.call(of_user, Call::Bind, &[1, 70]), World::fails(Error::NotPermitted));
    assert_eq!(world.server.system.log.len(), 1, "at most a line a second");
    assert!(
        world.server.system.log[0].contains("pid 102, user 7, in container 2 refused"),
        "{:?}",
        world.server.system.log
    );
    let child = world.server.system.program(of_user).process.pid.into();
    assert_eq!(world.call(root, Call::LocalBind, &[1, child, 70]), Some(35_570 + 70), "root decides itself");
    assert_eq!(world.call(of_group, Call::Bind, &[1, 71]), Some(35_570 + 71));
}

#[test]
fn a_user_cannot_fill_a_container() {
    let (mut world, _) = World::new();
    for number in 0..128 {
        let user = world.program(7);
        assert_eq!(world.bind(user, number), if number < 64 { number } else { 35_570 + number });
    }
    let (more, other, root) = (world.program(7), world.program(8), world.program(0));
    assert_eq!(world.bind(more, 128), i64::from(Error::ResourceBusy.to_result()));
    assert!(world.bind(other, 128) > 0 && world.bind(root, 129) > 0);
}

#[test]
fn the_end_of_a_process_is_told_to_whom_it_wants() {
    let (mut world, root) = World::new();
    let (one, two) = (world.program(0), world.program(0));
    world.bind_mediated(one, 3);
    let ended = world.bind(two, 70);
    assert_eq!(world.call(root, Call::GetPrivileges, &[0, ended, MEMORY as i64]), Some(0));
    let rights: Privileges = world.get(root, MEMORY);
    world.put(root, MEMORY, &Privileges { warn: 3, ..rights });
    assert_eq!(world.call(root, Call::SetPrivileges, &[0, ended, MEMORY as i64]), Some(0));
    assert_eq!(world.call(one, Call::Receive, &[0x7ace, PACKET as i64, FOREVER]), None);
    world.end(two);
    assert_eq!((world.result(one), world.received(one).0), (Some(0), ended));
}

/// pm ends it later: until then, the kernel tells nobody.
#[test]
fn those_who_wait_for_a_thread_that_is_about_to_end_are_told() {
    let (mut world, _) = World::new();
    let [dying, waiter, receiver, other, mediated, watcher] = [(); 6].map(|()| world.program(0));
    let name = world.bind(dying, 4);
    let names =
        [(waiter, 5), (other, 6), (watcher, 7), (receiver, 9)].map(|(thread, number)| world.bind(thread, number));
    world.bind_mediated(mediated, 8);
    world.server.system.program(waiter).state = Native::Answering(dying);
    world.server.system.program(receiver).state = Native::Receiving(dying);
    world.server.system.program(other).state = Native::Receiving(watcher);
    // Who waits by a primitive knows the thread: by its name, or since it has received from it.
    for thread in [waiter, other] {
        assert_eq!(world.own_call(thread, own::RESOLVE, &[name]), Some((own::FOUND | u64::from(dying.0)) as i64));
    }
    assert_eq!(world.own_call(receiver, own::NAME, &[dying.0.into()]), Some((own::FOUND | name as u64) as i64));
    assert_eq!(world.call(mediated, Call::Receive, &[name, PACKET as i64, FOREVER]), None);
    assert_eq!(world.call(watcher, Call::WaitForUnbind, &[name, FOREVER]), None);
    for _ in 0..2 {
        world.ends(dying);
        let failed = [waiter, receiver, other].map(|thread| world.server.system.program(thread).failed);
        assert_eq!(failed, [Some(Error::DestinationDied), Some(Error::DestinationDied), None]);
        assert_eq!(
            [mediated, watcher].map(|thread| world.result(thread)),
            [World::fails(Error::SourceDied), Some(name)]
        );
    }
    let row = world.server.system.program(dying).row;
    assert_ne!(row, abi::endpoint::APPLICATIONS_BIT, "whoever sends to it is told when it ends");
    world.end(dying);
    assert_eq!(world.call(waiter, Call::Unbind, &[0, names[0]]), Some(0));
}
