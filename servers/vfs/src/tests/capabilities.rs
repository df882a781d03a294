//! Capabilities (capabilities(7)): what root is refused without one, and those of files.

use super::permissions::{R_OK, W_OK};
use super::*;
use abi::{Capability, CapabilitySet, Endpoint, Errno, linux::nr, vfs};

const OWNER: (u64, u64) = (1000, 100);
const KEEP: u64 = u32::MAX as u64;

/// A process of root's that lacks these.
fn without(world: &World, capabilities: &[Capability]) -> Endpoint {
    let program = world.fork(world.root, 0);
    world.set_capabilities(program, CapabilitySet::ALL.without(CapabilitySet::of(capabilities)));
    program
}

/// A user who has this one.
fn user_with(world: &World, capability: Capability) -> Endpoint {
    let program = world.user(1001, 101);
    world.set_user_capabilities(program, (1001, 101), CapabilitySet::of(&[capability]));
    program
}

#[test]
fn root_without_the_right_over_modes_is_a_user_like_others() {
    let world = World::new();
    world.make("/secret", b"x", 0o600, OWNER);
    world.make_directory("/closed", 0o700, OWNER);
    world.make("/closed/file", b"x", 0o644, (0, 0));
    let searcher = without(&world, &[Capability::DacOverride]);
    assert!(world.open(searcher, "/secret", O_RDONLY, 0).is_ok(), "CAP_DAC_READ_SEARCH reads");
    assert_eq!(world.open(searcher, "/secret", O_RDWR, 0), Err(Errno::EACCES));
    assert!(world.open(searcher, "/closed/file", O_RDWR, 0).is_ok(), "and searches");
    assert_eq!(world.path_call(searcher, nr::MKDIR, "/closed/new", &[0o755]), Err(Errno::EACCES));

    let program = without(&world, &[Capability::DacOverride, Capability::DacReadSearch]);
    assert_eq!(world.open(program, "/secret", O_RDONLY, 0), Err(Errno::EACCES));
    assert_eq!(world.open(program, "/closed/file", O_RDONLY, 0), Err(Errno::EACCES));
    assert_eq!(world.path_call(program, nr::ACCESS, "/secret", &[W_OK]), Ok(0), "access asks what the real user may");
}

#[test]
fn a_user_with_the_right_over_modes_opens_what_is_anothers() {
    let world = World::new();
    world.make("/secret", b"x", 0o600, OWNER);
    let program = user_with(&world, Capability::DacOverride);
    assert!(world.open(program, "/secret", O_RDWR, 0).is_ok());
    assert_eq!(world.path_call(program, nr::CHMOD, "/secret", &[0o644]), Err(Errno::EPERM));
    assert_eq!(world.path_call(program, nr::ACCESS, "/secret", &[R_OK]), Err(Errno::EACCES), "as the real user");
}

#[test]
fn each_call_asks_for_its_own_capability() {
    let world = World::new();
    world.make("/file", b"x", 0o666, OWNER);
    world.make_directory("/dir", 0o755, (0, 0));
    for (capability, number, path, arguments) in [
        (Capability::FileOwner, nr::CHMOD, "/file", &[0o600][..]),
        (Capability::Chown, nr::CHOWN, "/file", &[1000, 7]),
        (Capability::Chown, nr::CHOWN, "/file", &[7, KEEP]),
        (Capability::MakeNode, nr::MKNOD, "/null", &[0o20666, 0x103]),
        (Capability::SysChroot, nr::CHROOT, "/dir", &[]),
        (Capability::SysAdmin, nr::UMOUNT2, "/dev", &[0]),
    ] {
        let program = without(&world, &[capability]);
        assert_eq!(world.path_call(program, number, path, arguments), Err(Errno::EPERM), "{capability:?}");
    }
    let root = without(&world, &[]);
    assert_eq!(world.path_call(root, nr::CHMOD, "/file", &[0o600]), Ok(0));
    assert_eq!(world.path_call(root, nr::CHROOT, "/dir", &[]), Ok(0));
}

#[test]
fn set_id_bits_stay_for_who_may_set_any() {
    let world = World::new();
    world.make("/program", b"x", 0o6777, OWNER);
    let program = without(&world, &[Capability::FileSetId]);
    let file = world.open(program, "/program", O_WRONLY, 0).unwrap();
    assert_eq!(world.write(program, file, b"y"), Ok(1));
    assert_eq!(world.stat(program, "/program").unwrap().mode & 0o7777, 0o777);
}

#[test]
fn capabilities_outlive_vfs_and_are_inherited() {
    let mut world = World::new();
    world.make("/secret", b"x", 0o600, OWNER);
    let program = without(&world, &[Capability::DacOverride, Capability::DacReadSearch]);
    world.restart_vfs();
    let child = world.fork(program, 0);
    for program in [program, child] {
        assert_eq!(world.open(program, "/secret", O_RDONLY, 0), Err(Errno::EACCES));
        assert_eq!(world.path_call(program, nr::ACCESS, "/secret", &[R_OK]), Ok(0));
    }
}

/// `struct vfs_cap_data` of revision 2: CAP_KILL and CAP_SYS_ADMIN permitted, CAP_CHECKPOINT_RESTORE inheritable, all effective.
fn data() -> [u8; 20] {
    let words: [u32; 5] = [0x0200_0001, 1 << 5 | 1 << 21, 0, 0, 1 << 8];
    let mut bytes = [0; 20];
    bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
    bytes
}

fn set_capabilities_of(world: &World, who: Endpoint, path: &str, value: &[u8]) -> Result<u64> {
    let (name, value_at) = (world.path(who, 1, "security.capability"), world.data(who, value));
    world.path_call(who, nr::SETXATTR, path, &[name, value_at, value.len() as u64, 0])
}

#[test]
fn capabilities_of_a_program_are_reported_with_its_exec() {
    let world = World::new();
    world.make("/program", &super::exec::program(), 0o755, (0, 0));
    assert_eq!(world.exec(world.root, "/program").1[1], 0);
    assert_eq!(set_capabilities_of(&world, world.root, "/program", &data()), Ok(0));
    let (_, [_, flags, _]) = world.exec(world.root, "/program");
    assert_eq!(flags, vfs::EXEC_CAPABILITIES);
    let text = world.exec_bytes(world.root);
    let (given, rest) = vfs::FileCapabilities::take(&text).unwrap();
    assert_eq!(given.permitted, CapabilitySet::of(&[Capability::Kill, Capability::SysAdmin]));
    assert_eq!(given.inheritable, CapabilitySet::from_bits(1 << 40));
    assert!(given.are_effective);
    assert_eq!(rest, b"/program\0/program\0");
    let name = world.path(world.root, 1, "security.capability");
    assert_eq!(world.path_call(world.root, nr::REMOVEXATTR, "/program", &[name]), Ok(0));
    assert_eq!(world.exec(world.root, "/program").1[1], 0);
}

#[test]
fn capabilities_of_files_are_set_by_who_may_and_only_such() {
    let world = World::new();
    world.make("/program", b"x", 0o777, OWNER);
    let owner = world.user(1000, 100);
    assert_eq!(set_capabilities_of(&world, owner, "/program", &data()), Err(Errno::EPERM));
    assert_eq!(set_capabilities_of(&world, owner, "/program", b"nonsense"), Err(Errno::EINVAL), "before the right");
    assert_eq!(set_capabilities_of(&world, world.root, "/program", &data()[..12]), Err(Errno::EINVAL));
    let program = without(&world, &[Capability::SetFileCapabilities]);
    assert_eq!(set_capabilities_of(&world, program, "/program", &data()), Err(Errno::EPERM));
    let program = without(&world, &[Capability::SysAdmin]);
    assert_eq!(set_capabilities_of(&world, program, "/program", &data()), Ok(0));
}

#[test]
fn a_program_that_changes_loses_its_capabilities() {
    for change in [
        |world: &World, file| world.write(world.root, file, b"x"),
        |world: &World, file| world.call(world.root, nr::FTRUNCATE, &[file, 4096]),
        |world: &World, file| world.call(world.root, nr::FCHOWN, &[file, 5, KEEP]),
    ] {
        let world = World::new();
        world.make("/program", &super::exec::program(), 0o755, (0, 0));
        assert_eq!(set_capabilities_of(&world, world.root, "/program", &data()), Ok(0));
        let file = world.open(world.root, "/program", O_RDWR, 0).unwrap();
        assert_eq!(world.path_call(world.root, nr::CHMOD, "/program", &[0o700]), Ok(0));
        let name = world.path(world.root, 1, "security.capability");
        assert_eq!(world.path_call(world.root, nr::GETXATTR, "/program", &[name, DATA, 100]), Ok(20));
        assert!(change(&world, file).is_ok());
        assert_eq!(world.path_call(world.root, nr::GETXATTR, "/program", &[name, DATA, 100]), Err(Errno::ENODATA));
    }
}
