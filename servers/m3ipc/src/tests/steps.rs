//! m3ipc dies before and after each single thing that it asks of others, starts again with its tables as they were, and is asked again: no
//! program notices.

use super::world::{MEMORY, PACKET, World};
use crate::system::Native;
use abi::Endpoint;
use abi::m3ipc::own;
use m3ipc::call::Call;
use m3ipc::descriptor::{Privileges, ProcessInfo};
use m3ipc::endpoint::Number;
use m3ipc::limits::SLOTS;
use std::format;
use std::string::String;
use std::vec::Vec;

const ANY: i64 = 0x7ace;
const FOREVER: i64 = -1;
/// More steps than any of these has.
const MOST: u32 = 2000;

/// What programs see, in order.
struct Seen {
    world: World,
    root: Endpoint,
    lines: Vec<String>,
}

impl Seen {
    fn note(&mut self, what: &str, result: Option<i64>) {
        // Of a `FETCH` that is made again it is not noted whether there is more: then the library looks once more.
        let result = result.map(|result| if result == own::LAST as i64 { 0 } else { result });
        self.lines.push(format!("{what}: {result:?}"));
    }

    fn call(&mut self, thread: Endpoint, call: Call, arguments: &[i64]) -> i64 {
        let result = self.world.call(thread, call, arguments);
        self.note(&format!("{call:?} {arguments:x?}"), result);
        result.unwrap_or(0)
    }

    fn own(&mut self, thread: Endpoint, number: u64, arguments: &[i64]) {
        let result = self.world.own_call(thread, number, arguments);
        self.note(&format!("{number} {arguments:x?}"), result);
    }

    fn bind(&mut self, thread: Endpoint, number: i64) -> i64 {
        self.call(thread, Call::Bind, &[0, number])
    }

    /// The ends of calls that waited, and what they have received.
    fn results(&mut self, of: &[Endpoint]) {
        for thread in of {
            let (result, received) = (self.world.result(*thread), self.world.received(*thread));
            self.note(&format!("{thread:?} has received {received:?}"), result);
        }
    }

    fn pid(&mut self, thread: Endpoint) -> i64 {
        self.world.server.system.program(thread).process.pid.into()
    }

    fn programs<const N: usize>(&mut self) -> [Endpoint; N] {
        [(); N].map(|()| self.world.program(0))
    }

    /// What is bound, and by which row each program sends.
    fn state(&mut self) {
        for container in 0..2 {
            for slot in (0..SLOTS).map(Number::at) {
                let Some(info) = self.world.server.describe(container, slot, 2) else { continue };
                let ProcessInfo { endpoint, node, state, flags, receives_from, sends_to, local_sent, .. } = info;
                self.lines.push(format!(
                    "{container} {endpoint} node {node} {state:x} {flags:x} {receives_from:x} {sends_to:x} sent {local_sent}"
                ));
            }
        }
        let system = &mut self.world.server.system;
        // Who dies behind a signal sends it once more.
        system.signals.dedup();
        for (thread, program) in &system.programs {
            self.lines.push(format!("{thread:x}: row {}, {:?}, calls {}", program.row, program.state, program.calls));
        }
        self.lines.push(format!("signals {:?}", system.signals));
    }
}

/// Runs a scenario, with a death at this step. Returns what was seen, and whether anybody died.
fn run(scenario: fn(&mut Seen), dies_in: Option<u32>) -> (Vec<String>, bool) {
    let (mut world, root) = World::new();
    world.server.system.dies_in = dies_in;
    let mut seen = Seen { world, root, lines: Vec::new() };
    scenario(&mut seen);
    let died = dies_in.is_some() && seen.world.server.system.dies_in.take().is_none();
    seen.state();
    (seen.lines, died)
}

/// Compares a scenario in which m3ipc dies, at each step, with the one in which it does not.
fn nobody_notices(scenario: fn(&mut Seen)) {
    let (expected, _) = run(scenario, None);
    for step in 1..MOST {
        let (seen, died) = run(scenario, Some(step));
        for (line, (expected, seen)) in expected.iter().zip(&seen).enumerate() {
            assert_eq!(expected, seen, "death at step {step}, line {line} of {:#?}", &expected);
        }
        if !died {
            assert!(step > 10, "m3ipc died nowhere");
            return;
        }
    }
    panic!("the scenario has no end");
}

#[test]
fn of_processes_of_other_nodes() {
    nobody_notices(|seen| {
        let (root, [one, standby]) = (seen.root, seen.programs());
        seen.bind(one, 3);
        seen.call(root, Call::AddNode, &[0, 5]);
        seen.call(root, Call::AddNode, &[0, 6]);
        seen.call(root, Call::DelNode, &[0, 6]);
        seen.world.put(root, MEMORY, b"remote\0\0\0\0\0\0\0\0\0\0");
        seen.call(root, Call::RemoteBind, &[0, 20, 5, MEMORY as i64]);
        seen.call(root, Call::RemoteBind, &[0, 4 * 35_570 + 120, 5, MEMORY as i64]);
        seen.own(one, own::RESOLVE, &[20]);
        seen.call(one, Call::Send, &[20, PACKET as i64, FOREVER]);
        seen.call(one, Call::Notify, &[20]);
        seen.call(root, Call::DelNode, &[0, 5]);
        let pid = seen.pid(standby);
        seen.call(root, Call::BackupBind, &[0, pid, 30, 5]);
        seen.call(one, Call::SendReceive, &[30, PACKET as i64, FOREVER]);
        seen.call(root, Call::Unbind, &[0, 30]);
        seen.call(root, Call::ReplicaBind, &[0, pid, 31]);
        seen.call(root, Call::Unbind, &[0, 20]);
        seen.call(one, Call::Send, &[20, PACKET as i64, FOREVER]);
    });
}

#[test]
fn of_bindings_that_are_waited_for() {
    nobody_notices(|seen| {
        let [one, two, three, parent, child] = seen.programs();
        seen.bind(one, 70);
        seen.bind(two, 71);
        let pid = seen.pid(child);
        seen.call(one, Call::WaitForBindOf, &[35_570 + 72, FOREVER]);
        seen.call(two, Call::WaitForBindOf, &[35_570 + 72, FOREVER]);
        seen.call(child, Call::WaitForBind, &[FOREVER]);
        seen.call(parent, Call::LocalBind, &[0, pid, 72]);
        seen.results(&[one, two, child]);
        seen.call(one, Call::WaitForUnbind, &[35_570 + 72, FOREVER]);
        seen.call(two, Call::WaitForUnbind, &[35_570 + 72, FOREVER]);
        seen.call(parent, Call::GetEndpoint, &[pid]);
        seen.call(child, Call::Unbind, &[0, 35_570 + 72]);
        seen.results(&[one, two]);
        seen.bind(child, 72);
        seen.bind(three, 72);
        seen.call(three, Call::WaitForBind, &[20]);
        seen.world.advance_ms(20);
        seen.results(&[three]);
    });
}

#[test]
fn of_threads_that_are_bound_and_unbound() {
    nobody_notices(|seen| {
        let [leader, one] = seen.programs();
        let (thread, other) = (seen.world.thread_of(leader), seen.world.thread_of(leader));
        seen.bind(leader, 3);
        seen.bind(one, 5);
        seen.call(thread, Call::ThreadBind, &[0, 4]);
        seen.call(other, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        seen.call(thread, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        seen.call(one, Call::Receive, &[4, PACKET as i64, FOREVER]);
        seen.call(leader, Call::Unbind, &[0, 3]);
        seen.results(&[thread, other, one]);
        seen.bind(leader, 3);
        seen.call(thread, Call::ThreadBind, &[0, 4]);
    });
}

/// Several wait for one that is unbound, in each way there is.
fn wait_for_four(seen: &mut Seen) -> [Endpoint; 5] {
    let [four, receiver, sender, client, watcher] = seen.programs();
    seen.world.bind_mediated(four, 4);
    seen.own(four, own::LIMIT, &[-1]);
    for (thread, number) in [(receiver, 5), (sender, 6), (client, 7), (watcher, 8)] {
        seen.world.bind_mediated(thread, number);
    }
    seen.call(receiver, Call::Receive, &[4, PACKET as i64, FOREVER]);
    seen.call(sender, Call::Send, &[4, PACKET as i64, FOREVER]);
    seen.call(client, Call::SendReceive, &[4, PACKET as i64, FOREVER]);
    seen.call(watcher, Call::WaitForUnbind, &[4, FOREVER]);
    [four, receiver, sender, client, watcher]
}

#[test]
fn of_a_process_that_is_unbound() {
    nobody_notices(|seen| {
        let [four, others @ ..] = wait_for_four(seen);
        seen.call(four, Call::Unbind, &[0, 0x8ace]);
        seen.results(&others);
        seen.bind(four, 4);
    });
}

#[test]
fn of_a_process_that_ends() {
    nobody_notices(|seen| {
        let [four, others @ ..] = wait_for_four(seen);
        seen.world.end(four);
        seen.results(&others);
        let [next] = seen.programs();
        seen.bind(next, 4);
    });
}

#[test]
fn of_the_end_of_a_process_that_uses_primitives() {
    nobody_notices(|seen| {
        let [dying, waiter, other] = seen.programs();
        let name = seen.bind(dying, 4);
        seen.bind(waiter, 5);
        seen.bind(other, 6);
        seen.own(waiter, own::MODE, &[0]);
        seen.own(waiter, own::RESOLVE, &[name]);
        seen.own(other, own::RESOLVE, &[name]);
        seen.world.server.system.program(waiter).state = Native::Answering(dying);
        seen.world.server.system.program(other).state = Native::Receiving(dying);
        seen.world.ends(dying);
        seen.world.end(dying);
        seen.own(waiter, own::RESUME, &[Call::SendReceive as i64, name, PACKET as i64]);
    });
}

#[test]
fn of_rights_and_whom_the_end_is_told() {
    nobody_notices(|seen| {
        let (root, [one, two, client]) = (seen.root, seen.programs());
        seen.world.bind_mediated(one, 3);
        let name = seen.bind(two, 70);
        seen.bind(client, 5);
        seen.own(client, own::RESOLVE, &[name]);
        seen.world.server.system.program(client).state = Native::Answering(two);
        seen.call(root, Call::GetPrivileges, &[0, name, MEMORY as i64]);
        let rights: Privileges = seen.world.get(root, MEMORY);
        seen.world.put(
            root,
            MEMORY,
            &Privileges { warn: 3, sends_to: [1 << 40 | 1 << 38 | 1 << 39, 0, 0, 0], ..rights },
        );
        seen.call(root, Call::SetPrivileges, &[0, name, MEMORY as i64]);
        seen.own(client, own::RESUME, &[Call::SendReceive as i64, name, PACKET as i64]);
        seen.call(two, Call::Reply, &[5, PACKET as i64]);
        seen.results(&[client]);
        seen.call(one, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        seen.world.end(two);
        seen.results(&[one]);
    });
}

#[test]
fn of_containers_and_the_node() {
    nobody_notices(|seen| {
        let (root, [one, two]) = (seen.root, seen.programs());
        seen.world.start_container(root, 1);
        seen.bind(one, 3);
        seen.call(two, Call::Bind, &[1, 4]);
        seen.call(one, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        seen.call(root, Call::VmInfo, &[1, MEMORY as i64]);
        seen.call(root, Call::VmEnd, &[0]);
        seen.results(&[one]);
        seen.call(root, Call::VmEnd, &[0]);
        seen.call(root, Call::DrvsEnd, &[]);
        seen.call(root, Call::DrvsEnd, &[]);
        seen.call(root, Call::DrvsInit, &[2, 0]);
        seen.call(root, Call::DrvsInit, &[2, 0]);
    });
}

#[test]
fn of_messages_to_a_member_that_uses_primitives() {
    nobody_notices(|seen| {
        let (root, [one, two]) = (seen.root, seen.programs());
        let (one_name, two_name) = (seen.world.bind_mediated(one, 3), seen.bind(two, 4));
        seen.own(two, own::MODE, &[0]);
        for kind in [77, 78] {
            seen.world.server.system.program(two).state = Native::Receiving(Endpoint::ANY);
            seen.world.packet(one, kind);
            seen.call(one, Call::Send, &[two_name, PACKET as i64, FOREVER]);
            seen.world.server.system.program(two).state = Native::Elsewhere;
            seen.own(two, own::FETCH, &[ANY, PACKET as i64, 0]);
            seen.results(&[two]);
            seen.own(two, own::FETCH, &[ANY, PACKET as i64, 0]);
        }
        seen.world.packet(one, 79);
        seen.call(one, Call::SendReceive, &[two_name, PACKET as i64, FOREVER]);
        seen.own(two, own::FETCH, &[ANY, PACKET as i64, 0]);
        seen.results(&[two]);
        seen.call(two, Call::Reply, &[one_name, PACKET as i64]);
        seen.results(&[one]);
        seen.call(one, Call::NotifyValue, &[two_name, 5]);
        seen.own(two, own::FETCH, &[ANY, PACKET as i64, 0]);
        seen.call(root, Call::NotifyHardware, &[0, two_name]);
        seen.own(two, own::FETCH, &[ANY, PACKET as i64, 0]);
        seen.world.server.system.program(two).state = Native::Receiving(Endpoint::ANY);
        seen.call(one, Call::WakeUp, &[0, two_name]);
        seen.call(one, Call::WakeUp, &[0, two_name]);
        seen.own(two, own::LIMIT, &[10]);
        seen.world.server.system.program(two).state = Native::Receiving(Endpoint::ANY);
        seen.world.advance_ms(10);
        let failed = seen.world.server.system.program(two).failed;
        seen.lines.push(format!("{failed:?}"));
        seen.call(two, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        seen.world.packet(one, 80);
        seen.call(one, Call::Send, &[two_name, PACKET as i64, 0]);
        seen.results(&[two]);
    });
}

#[test]
fn of_messages() {
    nobody_notices(|seen| {
        let (root, [one, two]) = (seen.root, seen.programs());
        let (one_name, two_name) = (seen.world.bind_mediated(one, 3), seen.world.bind_mediated(two, 4));
        seen.world.packet(one, 77);
        seen.call(one, Call::SendReceive, &[two_name, PACKET as i64, FOREVER]);
        seen.call(two, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        seen.results(&[two]);
        seen.world.packet(two, 78);
        seen.call(two, Call::Reply, &[one_name, PACKET as i64]);
        seen.results(&[one]);
        seen.call(two, Call::ReceiveRequest, &[PACKET as i64, FOREVER]);
        seen.world.packet(one, 79);
        seen.call(one, Call::Send, &[two_name, PACKET as i64, FOREVER]);
        seen.results(&[two]);
        seen.call(two, Call::Notify, &[one_name]);
        seen.call(two, Call::NotifyHardware, &[0, one_name]);
        seen.call(root, Call::NotifyHardware, &[0, one_name]);
        seen.call(one, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        seen.results(&[one]);
        seen.call(one, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        seen.results(&[one]);
        seen.call(one, Call::Receive, &[ANY, PACKET as i64, FOREVER]);
        seen.call(two, Call::Copy, &[one_name, MEMORY as i64, two_name, MEMORY as i64, 100]);
        seen.call(two, Call::WakeUp, &[0, one_name]);
        seen.results(&[one]);
        seen.call(one, Call::Receive, &[two_name, PACKET as i64, 20]);
        seen.world.advance_ms(20);
        seen.results(&[one]);
        seen.call(one, Call::Receive, &[ANY, PACKET as i64, 0]);
    });
}
