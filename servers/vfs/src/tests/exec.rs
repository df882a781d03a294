//! exec: finding, checking and loading programs.

use super::*;
use abi::{Errno, vfs};

/// A static ELF program with one segment of 5,000 bytes.
pub fn program() -> Vec<u8> {
    let mut file = std::vec![0; 0x1000 + 5000];
    file[..16].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let put16 = |file: &mut Vec<u8>, at: usize, value: u16| file[at..at + 2].copy_from_slice(&value.to_le_bytes());
    let put32 = |file: &mut Vec<u8>, at: usize, value: u32| file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let put64 = |file: &mut Vec<u8>, at: usize, value: u64| file[at..at + 8].copy_from_slice(&value.to_le_bytes());
    [(16, 2), (18, 62), (52, 64), (54, 56), (56, 1)].into_iter().for_each(|(at, value)| put16(&mut file, at, value));
    put32(&mut file, 20, 1);
    [(24, 0x401000), (32, 64)].into_iter().for_each(|(at, value)| put64(&mut file, at, value));
    put32(&mut file, 64, 1);
    put32(&mut file, 68, 5);
    let fields = [(72, 0x1000), (80, 0x401000), (88, 0x401000), (96, 5000), (104, 5000), (112, 0x1000)];
    fields.into_iter().for_each(|(at, value)| put64(&mut file, at, value));
    file[0x1000..].fill(0x90);
    file
}

#[test]
fn a_program_is_loaded_into_vm() {
    let world = World::new();
    world.make("/program", &program(), 0o755, (0, 0));
    let (image, [interpreter, flags, _]) = world.exec(world.root, "/program");
    assert_eq!((interpreter, flags), (0, 0));
    assert_eq!(world.exec_text(world.root), "/program");
    let vm = world.vm();
    let pages = &vm.images[(image.unwrap() as usize - 1) / 2];
    assert_eq!(pages.filled[&0x1000], [0x90; 4096]);
    assert_eq!(pages.filled[&0x2000], [0x90; 904]);
    assert_eq!(pages.open, 1, "vfs holds it until the commit");
    drop(vm);
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: world.root }.message()), Ok(0));
    assert_eq!(world.vm().images[0].open, 0);
}

#[test]
fn what_has_changed_is_loaded_anew() {
    let world = World::new();
    world.make("/program", &program(), 0o755, (0, 0));
    let first = world.exec(world.root, "/program").0.unwrap();
    assert_eq!(world.exec(world.root, "/program").0, Ok(first));
    let file = world.open(world.root, "/program", O_WRONLY, 0).unwrap();
    assert_eq!(world.pwrite(world.root, file, &[0xcc], 0x1000), Ok(1));
    let second = world.exec(world.root, "/program").0.unwrap();
    assert_ne!(first, second);
    assert_eq!(world.vm().images[(second as usize - 1) / 2].filled[&0x1000][0], 0xcc);
}

#[test]
fn only_what_may_be_executed_is() {
    let world = World::new();
    world.make("/program", &program(), 0o744, (1000, 100));
    world.make("/text", b"echo no program", 0o755, (0, 0));
    world.make_directory("/dir", 0o755, (0, 0));
    world.make_directory("/closed", 0o700, (0, 0));
    world.make("/closed/program", &program(), 0o755, (0, 0));
    let (owner, other) = (world.user(1000, 100), world.user(1001, 100));
    assert!(world.exec(owner, "/program").0.is_ok());
    assert_eq!(world.exec(other, "/program").0, Err(Errno::EACCES));
    assert_eq!(world.exec(other, "/closed/program").0, Err(Errno::EACCES));
    assert_eq!(world.exec(other, "/dir").0, Err(Errno::EACCES));
    assert_eq!(world.exec(other, "/text").0, Err(Errno::ENOEXEC));
    assert_eq!(world.exec(other, "/none").0, Err(Errno::ENOENT));
    assert_eq!(world.exec(other, "/text/x").0, Err(Errno::ENOTDIR));
}

#[test]
fn set_id_bits_are_reported_with_the_owner() {
    let world = World::new();
    let user = world.user(1000, 100);
    let reported = |mode| {
        world.make("/program", &program(), mode, (7, 8));
        let (_, [_, flags, ids]) = world.exec(user, "/program");
        assert_eq!(world.path_call(world.root, abi::linux::nr::UNLINK, "/program", &[]), Ok(0));
        (flags, ids)
    };
    assert_eq!(reported(0o4755), (vfs::EXEC_SETUID, 7 | 8 << 32));
    assert_eq!(reported(0o2755), (vfs::EXEC_SETGID, 7 | 8 << 32));
    assert_eq!(reported(0o6755).0, vfs::EXEC_SETUID | vfs::EXEC_SETGID);
    assert_eq!(reported(0o2745).0, 0, "without the group's right it is no change of ids");
}

#[test]
fn who_writes_to_a_program_does_not_get_its_owners_ids() {
    let world = World::new();
    world.make("/program", &program(), 0o6777, (7, 8));
    let user = world.user(1000, 100);
    let (_, [_, flags, _]) = world.exec(user, "/program");
    assert_eq!(flags, vfs::EXEC_SETUID | vfs::EXEC_SETGID);
    let file = world.open(user, "/program", O_WRONLY, 0).unwrap();
    assert_eq!(world.pwrite(user, file, &[0xcc], 0x1000), Ok(1));
    let (_, [_, flags, _]) = world.exec(user, "/program");
    assert_eq!(flags, 0);
}

#[test]
fn a_script_runs_its_interpreter() {
    let world = World::new();
    world.make("/shell", &program(), 0o755, (0, 0));
    world.make("/script", b"#! /shell -x\necho", 0o755, (0, 0));
    world.make("/nested", b"#!/script\n", 0o755, (0, 0));
    world.make("/orphan", b"#!/none\n", 0o755, (0, 0));
    let (image, [_, flags, _]) = world.exec(world.root, "/script");
    assert!(image.is_ok());
    assert_eq!(flags, vfs::EXEC_SCRIPT);
    assert_eq!(world.exec_text(world.root), "/shell\0-x\0/script\0");
    assert_eq!(world.exec(world.root, "/nested").0, Err(Errno::ENOEXEC));
    assert_eq!(world.exec(world.root, "/orphan").0, Err(Errno::ENOENT));
}
