//! Seals of files in memory.

use super::{
    mappings::{MAP_SHARED, PROT_READ, PROT_WRITE, map},
    *,
};
use abi::{Errno, linux::nr};

const F_ADD_SEALS: u64 = 1033;
const F_GET_SEALS: u64 = 1034;
const SEAL: u64 = 1;
const SHRINK: u64 = 2;
const GROW: u64 = 4;
const WRITE: u64 = 8;
const FUTURE_WRITE: u64 = 16;
const MFD_ALLOW_SEALING: u64 = 2;

/// A world with a file in memory of 5,000 bytes, and its descriptor.
fn world(flags: u64) -> (World, u64) {
    let mut world = World::new();
    world.mount_tmpfs("/tmp");
    let file = world.path_call(world.root, nr::MEMFD_CREATE, "x", &[flags]).unwrap();
    assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, 5000]), Ok(0));
    (world, file)
}

fn add(world: &World, file: u64, seals: u64) -> Result<u64> {
    world.call(world.root, nr::FCNTL, &[file, F_ADD_SEALS, seals])
}

fn seals(world: &World, file: u64) -> Result<u64> {
    world.call(world.root, nr::FCNTL, &[file, F_GET_SEALS, 0])
}

fn resize(world: &World, file: u64, bytes: u64) -> Result<u64> {
    world.call(world.root, nr::FTRUNCATE, &[file, bytes])
}

#[test]
fn files_in_memory_are_sealed_against_seals_unless_asked_for_and_others_have_none() {
    let (world, file) = world(0);
    assert_eq!(seals(&world, file), Ok(SEAL));
    assert_eq!(add(&world, file, WRITE), Err(Errno::EPERM));
    let named = world.open(world.root, "/tmp/file", O_CREAT | O_RDWR, 0o600).unwrap();
    assert_eq!(seals(&world, named), Ok(SEAL));
    let on_disk = world.open(world.root, "/file", O_CREAT | O_RDWR, 0o600).unwrap();
    assert_eq!(seals(&world, on_disk), Err(Errno::EINVAL));
    let (pipe, _) = world.pipe(world.root, 0);
    assert_eq!(seals(&world, pipe), Err(Errno::EINVAL));
}

#[test]
fn seals_are_added_by_who_may_write_until_there_may_be_no_more() {
    let (world, file) = world(MFD_ALLOW_SEALING);
    assert_eq!(seals(&world, file), Ok(0));
    assert_eq!(add(&world, file, 0x20), Err(Errno::EINVAL));
    assert_eq!(add(&world, file, SHRINK), Ok(0));
    assert_eq!(add(&world, file, GROW | SEAL), Ok(0));
    assert_eq!(seals(&world, file), Ok(SHRINK | GROW | SEAL));
    assert_eq!(add(&world, file, WRITE), Err(Errno::EPERM));
}

#[test]
fn each_seal_forbids_what_it_names() {
    let (world, file) = world(MFD_ALLOW_SEALING);
    assert_eq!(add(&world, file, SHRINK), Ok(0));
    assert_eq!((resize(&world, file, 10), resize(&world, file, 6000)), (Err(Errno::EPERM), Ok(0)));
    assert_eq!(add(&world, file, GROW), Ok(0));
    assert_eq!((resize(&world, file, 6001), resize(&world, file, 6000)), (Err(Errno::EPERM), Ok(0)));
    assert_eq!(world.pwrite(world.root, file, b"abc", 5998), Err(Errno::EPERM));
    assert_eq!(world.pwrite(world.root, file, b"abc", 5997), Ok(3));
    assert_eq!(world.call(world.root, nr::FALLOCATE, &[file, 0, 0, 7000]), Err(Errno::EPERM));
    assert_eq!(world.call(world.root, nr::FALLOCATE, &[file, 3, 0, 4096]), Ok(0), "holes may be punched");
    assert_eq!(add(&world, file, WRITE), Ok(0));
    assert_eq!(world.pwrite(world.root, file, b"abc", 0), Err(Errno::EPERM));
    assert_eq!(world.call(world.root, nr::FALLOCATE, &[file, 3, 0, 4096]), Err(Errno::EPERM));
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(world.write(world.root, writes, b"abc"), Ok(3));
    assert_eq!(world.call(world.root, nr::SPLICE, &[reads, 0, file, 0, 3, 0]), Err(Errno::EPERM));
    assert_eq!(world.read(world.root, reads, 10).unwrap(), b"abc", "no byte is lost");
}

#[test]
fn a_sealed_file_is_not_mapped_to_be_written_and_a_mapped_one_not_sealed() {
    let (world, file) = world(MFD_ALLOW_SEALING);
    let writes = MAP_SHARED | PROT_READ | PROT_WRITE;
    let (object, error, may_write) = map(&world, file, 0, 4096, writes);
    assert_eq!((error, may_write), (0, true));
    world.vm().shared[(object as usize - 1) / 2].mapped = true;
    assert_eq!(add(&world, file, WRITE), Err(Errno::EBUSY));
    assert_eq!(add(&world, file, FUTURE_WRITE), Ok(0), "what is mapped stays");
    assert_eq!(Errno(map(&world, file, 0, 4096, writes).1), Errno::EPERM);
    world.vm().shared[(object as usize - 1) / 2].mapped = false;
    assert_eq!(add(&world, file, WRITE), Ok(0), "vfs finds out that it is mapped no more");
    let (_, error, may_write) = map(&world, file, 0, 4096, MAP_SHARED | PROT_READ);
    assert_eq!((error, may_write), (0, false));
}

#[test]
fn seals_outlive_vfs_whichever_descriptor_is_left() {
    let (mut world, file) = world(MFD_ALLOW_SEALING);
    let links = world.start_proc();
    links.lock().unwrap().push((std::format!("{file}"), "x".into()));
    let again = world.open(world.root, &std::format!("/proc/{file}"), O_RDWR, 0).unwrap();
    assert_eq!(add(&world, file, GROW), Ok(0));
    world.close(world.root, file).unwrap();
    world.restart_vfs();
    assert_eq!(seals(&world, again), Ok(GROW));
    assert_eq!(resize(&world, again, 9000), Err(Errno::EPERM));
    assert_eq!(add(&world, again, SHRINK), Ok(0));
    assert_eq!(seals(&world, again), Ok(GROW | SHRINK));
}
