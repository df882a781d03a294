//! What a clone takes from its parent, and what not.

use super::{MEMORY, World};
use abi::linux::nr;
use abi::{Endpoint, Errno};

const BUFFER: u64 = MEMORY.start + 0x100;
const STACK: [u64; 3] = [MEMORY.start + 0x4000, 0, 8192];
const NO_STACK: u64 = 2;
const CLONE_VM: u64 = 0x100;
const CLONE_SIGHAND: u64 = 0x800;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_THREAD: u64 = 0x1_0000;

fn clone(world: &mut World, flags: u64) -> Endpoint {
    world.call(world.init, nr::CLONE, &[flags, 0, 0, 0, 0]);
    world.newest()
}

/// Start, flags and length of the alternate signal stack.
fn signal_stack(world: &mut World, thread: Endpoint) -> [u64; 3] {
    assert_eq!(world.call(thread, nr::SIGALTSTACK, &[0, BUFFER]), Some(Ok(0)));
    [0, 8, 16].map(|offset| world.read(thread, BUFFER + offset))
}

fn with_signal_stack() -> World {
    let mut world = World::new();
    world.write(world.init, BUFFER, &STACK);
    assert_eq!(world.call(world.init, nr::SIGALTSTACK, &[BUFFER, 0]), Some(Ok(0)));
    world
}

#[test]
fn a_child_with_memory_of_its_own_keeps_the_alternate_signal_stack() {
    let mut world = with_signal_stack();
    let child = clone(&mut world, 17);
    assert_eq!(signal_stack(&mut world, child), STACK);
}

#[test]
fn a_child_that_shares_memory_has_no_alternate_signal_stack() {
    for flags in [CLONE_VM, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD] {
        let mut world = with_signal_stack();
        let child = clone(&mut world, flags);
        assert_eq!(signal_stack(&mut world, child), [0, NO_STACK, 0], "flags {flags:#x}");
        let init = world.init;
        assert_eq!(signal_stack(&mut world, init), STACK, "the parent keeps its own");
    }
}

#[test]
fn a_vfork_child_borrows_the_stack_of_its_parent_which_sleeps() {
    let mut world = with_signal_stack();
    let child = clone(&mut world, CLONE_VM | CLONE_VFORK | 17);
    assert_eq!(signal_stack(&mut world, child), STACK);
}

#[test]
fn flags_that_make_no_sense_together_are_refused() {
    let mut world = World::new();
    let mut refused = |flags: u64| world.call(world.init, nr::CLONE, &[flags, 0, 0, 0, 0]) == Some(Err(Errno::EINVAL));
    assert!(refused(CLONE_THREAD), "a thread shares handlers");
    assert!(refused(CLONE_THREAD | CLONE_VM), "a thread shares handlers");
    assert!(refused(CLONE_SIGHAND), "handlers lie in shared memory");
    assert!(refused(65), "there is no such signal");
    assert!(!refused(CLONE_VM | CLONE_SIGHAND));
}
