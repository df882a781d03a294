//! The handlers that are found in this checkout.

use super::*;
use abi::linux;

/// mrt and m3ipc have one call each, which needs no `match`; pm refuses rseq as it refuses what it does not know.
const WITHOUT_ARM: [&str; 3] = ["skink_mrt", "skink_m3ipc", "rseq"];

fn handlers() -> Handlers {
    let workspace = Workspace::from_environment().expect("is a checkout");
    let packages = Packages::read(&workspace).expect("is a workspace");
    Handlers::new(&workspace, &packages)
}

fn linux(name: &str) -> Key {
    Key::Linux(name.to_string())
}

fn message(protocol: &str, name: &str) -> Key {
    Key::Message(protocol.to_string(), name.to_string())
}

#[test]
fn every_routed_call_has_a_handler() {
    let workspace = Workspace::from_environment().expect("is a checkout");
    let packages = Packages::read(&workspace).expect("is a workspace");
    let system = crate::system::read(&workspace, &packages, "default").expect("is a system");
    let mut handlers = Handlers::new(&workspace, &packages);
    let mut missing = Vec::new();
    for route in &system.routes {
        let service = system.service.iter().find(|service| service.slot == route.slot);
        let binary = service.map_or("kernel", |service| &service.binary);
        let name = linux::name(route.number).expect("has a name");
        if !WITHOUT_ARM.contains(&name) && handlers.of(binary, &linux(name)).is_none() {
            missing.push(format!("{binary}: {name}"));
        }
    }
    assert!(missing.is_empty(), "no match arm names {missing:?}");
}

#[test]
fn the_way_of_a_read_is_found() {
    let mut handlers = handlers();
    let mut place = |binary: &str, key: Key| {
        let place = handlers.of(binary, &key).unwrap_or_else(|| panic!("{binary} does not handle {key:?}"));
        let text = fs::read_to_string(handlers.root.join(&place.file)).expect("the file is there");
        let function = place.function.rsplit(':').next().unwrap_or_default().to_string();
        assert!(text.contains(&format!("fn {function}")), "{place:?}");
        (place.file, function)
    };
    assert_eq!(place("vfs", linux("read")), ("servers/vfs/src/calls/data.rs".to_string(), "read".to_string()));
    assert_eq!(place("vfs", linux("dup2")), ("servers/vfs/src/calls/descriptors.rs".to_string(), "dup_to".to_string()));
    let (file, function) = place("ext2", message("fs", "Read"));
    assert!(file.starts_with("fs/ext2/src/"), "{file}");
    assert_eq!(function, "read");
    let (file, function) = place("virtio_blk", message("block", "Read"));
    assert_eq!(file, "lib/driver/src/block.rs");
    assert_eq!(function, "take_in");
    assert!(place("pm", linux("clone")).1.contains("fork"));
    assert_eq!(place("vm", message("vm", "Fork")).1, "fork");
    let (file, function) = place("vfs", Key::Kernel("SafeCopyTo".to_string()));
    assert!(file.starts_with("kernel/core/src/"), "{file}");
    assert_eq!(function, "copy_by_grant");
}

#[test]
fn a_function_that_is_gone_is_not_named() {
    let mut handlers = handlers();
    assert_eq!(handlers.of("vfs", &linux("no_such_call")), None);
    assert_eq!(handlers.of("no_such_service", &linux("read")), None);
}
