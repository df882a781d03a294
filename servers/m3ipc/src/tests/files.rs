//! What procfs is told.

use super::world::{GRANT, World};
use abi::m3ipc::{Containers, TEXT_CONTAINER, TEXT_COUNTS, TEXT_NODE, TEXT_NODES, TEXT_PROCESSES, Text};
use abi::{Endpoint, Errno, Message};
use m3ipc::call::Call;
use std::string::String;

const PROCFS: Endpoint = Endpoint::new(40, 1);

fn ask(world: &mut World, message: Message) -> Message {
    world.server.handle(&Message { source: PROCFS, ..message }).done().expect("it does not wait")
}

/// Reads a file; or its error.
fn read(world: &mut World, what: u64, container: u64, bytes: u64) -> Result<String, Errno> {
    world.server.system.granted.clear();
    let length = ask(world, Text { what, container, grant: GRANT, bytes }.message()).result()?;
    assert_eq!(length, world.server.system.granted.len() as u64);
    Ok(String::from_utf8(world.server.system.granted.clone()).expect("text"))
}

#[test]
fn files_tell_what_descriptors_tell() {
    let (mut world, root) = World::new();
    world.start_container(root, 31);
    let reply = ask(&mut world, Containers {}.message());
    assert_eq!(Containers::results(&reply), Ok(1 | 1 << 31));
    assert!(read(&mut world, TEXT_NODE, 0, 1000).expect("a text").starts_with("nodeid=2\nnr_vms=32\n"));
    let nodes = read(&mut world, TEXT_NODES, 0, 1000).expect("a text");
    assert_eq!(nodes.lines().count(), 2, "{nodes}");
    assert!(nodes.ends_with("        0 X------------------------------X local\n"), "{nodes}");
    let member = world.program(0);
    let name = world.bind(member, 70);
    let pid = world.server.system.program(member).process.pid;
    assert!(read(&mut world, TEXT_CONTAINER, 0, 1000).expect("a text").contains("bound=1\nname=test\n"));
    let procs = read(&mut world, TEXT_PROCESSES, 0, 1000).expect("a text");
    let line = procs.lines().nth(1).expect("a process");
    assert_eq!(
        line.split_whitespace().take(5).collect::<std::vec::Vec<_>>().join(" "),
        std::format!("0 70 {name} {pid} 2")
    );
    assert_eq!(
        world.call(member, Call::Copy, &[0x8ace, 0x1000, 0x8ace, 0x1000, 1]),
        World::fails(m3ipc::error::Error::NotPermitted)
    );
    assert_eq!(read(&mut world, TEXT_COUNTS, 0, 1000).expect("a text").lines().count(), 2);
    assert_eq!(read(&mut world, TEXT_COUNTS, 31, 1000).expect("a text").lines().count(), 1);
}

#[test]
fn wrong_questions_fail() {
    let (mut world, _) = World::new();
    for (what, container, bytes, error) in [
        (TEXT_COUNTS + 1, 0, 1000, Errno::EINVAL),
        (TEXT_CONTAINER, 1, 1000, Errno::ESRCH),
        (TEXT_PROCESSES, 256, 1000, Errno::ESRCH),
        (TEXT_NODE, 0, 10, Errno::ENOSPC),
    ] {
        assert_eq!(read(&mut world, what, container, bytes), Err(error), "{what}");
    }
    let program = world.program(0);
    let sent = Message { source: program, ..Containers {}.message() };
    assert_eq!(
        world.server.handle(&sent).done().expect("an answer").result(),
        Err(Errno::ENOSYS),
        "programs do not ask"
    );
}
