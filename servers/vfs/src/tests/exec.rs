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
    assert_eq!(world.exec_text(world.root), "/program\0/program\0");
    let vm = world.vm();
    let pages = &vm.images[(image.unwrap() as usize - 1) / 2];
    assert_eq!(pages.filled[&0x1000], [0x90; 4096]);
    assert_eq!(pages.filled[&0x2000], [0x90; 904]);
    assert_eq!(pages.open, 1, "vfs holds it until the commit");
    drop(vm);
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: world.root }.message()), Ok(0));
    assert_eq!(world.vm().images[0].open, 0);
}

/// Its predecessor has died between a request to vm and its own note of it.
#[test]
fn a_successor_tells_vm_which_images_it_holds() {
    for held in [1, 3] {
        let mut world = World::new();
        world.make("/program", &program(), 0o755, (0, 0));
        let processes = [world.root, world.fork(world.root, 0)];
        processes.iter().for_each(|process| assert!(world.exec(*process, "/program").0.is_ok()));
        world.vm().images[0].open = held;
        world.restart_vfs();
        assert_eq!(world.vm().images[0].open, 2);
        for process in processes {
            assert_eq!(world.call_as_pm(vfs::ExecCommit { process }.message()), Ok(0));
        }
        assert_eq!(world.vm().images[0].open, 0);
        world.vm().images[0].open = 1;
        world.restart_vfs();
        assert_eq!(world.vm().images[0].open, 0, "nothing is in progress");
    }
}

/// What pm is told of an exec by a child of this process, which ends then.
fn exec_in_child(world: &World, parent: abi::Endpoint, path: &str) -> (Result<u64>, [u64; 3]) {
    let child = world.fork(parent, 0);
    let told = world.exec(child, path);
    world.exit(child);
    told
}

#[test]
fn what_has_changed_is_loaded_anew() {
    let world = World::new();
    world.make("/program", &program(), 0o755, (0, 0));
    let first = exec_in_child(&world, world.root, "/program").0.unwrap();
    assert_eq!(exec_in_child(&world, world.root, "/program").0, Ok(first));
    let file = world.open(world.root, "/program", O_WRONLY, 0).unwrap();
    assert_eq!(world.pwrite(world.root, file, &[0xcc], 0x1000), Ok(1));
    assert_eq!(world.call(world.root, abi::linux::nr::CLOSE, &[file]), Ok(0));
    let second = exec_in_child(&world, world.root, "/program").0.unwrap();
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
    let (_, [_, flags, _]) = exec_in_child(&world, user, "/program");
    assert_eq!(flags, vfs::EXEC_SETUID | vfs::EXEC_SETGID);
    let file = world.open(user, "/program", O_WRONLY, 0).unwrap();
    assert_eq!(world.pwrite(user, file, &[0xcc], 0x1000), Ok(1));
    assert_eq!(world.call(user, abi::linux::nr::CLOSE, &[file]), Ok(0));
    let (_, [_, flags, _]) = world.exec(user, "/program");
    assert_eq!(flags, 0);
}

#[test]
fn a_script_runs_its_interpreter() {
    let world = World::new();
    world.make("/shell", &program(), 0o755, (0, 0));
    world.make("/script", b"#! /shell -x\necho", 0o755, (0, 0));
    world.make("/nested", b"#!/script  a b\n", 0o755, (0, 0));
    world.make("/orphan", b"#!/none\n", 0o755, (0, 0));
    assert!(world.exec(world.root, "/script").0.is_ok());
    assert_eq!(world.exec_text(world.root), "/shell\0/script\0/shell\0-x\0/script\0");
    assert!(world.exec(world.root, "/nested").0.is_ok());
    assert_eq!(world.exec_text(world.root), "/shell\0/nested\0/shell\0-x\0/script\0a b\0/nested\0");
    assert_eq!(world.exec(world.root, "/orphan").0, Err(Errno::ENOENT));
}

#[test]
fn at_most_five_scripts_are_interpreted_by_each_other() {
    let world = World::new();
    world.make("/0", &program(), 0o755, (0, 0));
    for number in 1..7 {
        world.make(&std::format!("/{number}"), std::format!("#!/{}\n", number - 1).as_bytes(), 0o755, (0, 0));
    }
    assert!(world.exec(world.root, "/5").0.is_ok());
    assert_eq!(world.exec_text(world.root), "/0\0/5\0/0\0/1\0/2\0/3\0/4\0/5\0");
    assert_eq!(world.exec(world.root, "/6").0, Err(Errno::ELOOP));
}

#[test]
fn a_descriptor_names_a_program_or_its_directory() {
    const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
    const AT_EMPTY_PATH: u64 = 0x1000;
    const O_CLOEXEC: u64 = 0o2000000;
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make("/dir/program", &program(), 0o755, (0, 0));
    world.make("/dir/script", b"#!/dir/program\n", 0o755, (0, 0));
    assert_eq!(world.paths_call(world.root, abi::linux::nr::SYMLINK, "/dir/program", "/link"), Ok(0));
    let open = |path, flags| world.open(world.root, path, flags, 0).unwrap() as i32;
    let directory = open("/dir", O_RDONLY);
    assert!(world.exec_at(world.root, directory, "program", 0).0.is_ok());
    assert_eq!(world.exec_text(world.root), std::format!("/dir/program\0/dev/fd/{directory}/program\0"));
    assert_eq!(world.exec_at(world.root, 99, "program", 0).0, Err(Errno::EBADF));
    assert_eq!(world.exec_at(world.root, -100, "/link", AT_SYMLINK_NOFOLLOW).0, Err(Errno::ELOOP));
    let opened = open("/dir/program", O_RDONLY | O_CLOEXEC);
    assert!(world.exec_at(world.root, opened, "", AT_EMPTY_PATH).0.is_ok());
    assert_eq!(world.exec_text(world.root), std::format!("/dir/program\0/dev/fd/{opened}\0"));
    assert_eq!(world.exec_at(world.root, directory, "", AT_EMPTY_PATH).0, Err(Errno::EACCES));
    // Its interpreter could not open it.
    let script = open("/dir/script", O_RDONLY | O_CLOEXEC);
    assert_eq!(world.exec_at(world.root, script, "", AT_EMPTY_PATH).0, Err(Errno::ENOENT));
    let script = open("/dir/script", O_RDONLY);
    assert!(world.exec_at(world.root, script, "", AT_EMPTY_PATH).0.is_ok());
    assert!(world.exec_text(world.root).ends_with(&std::format!("/dev/fd/{script}\0")));
}

#[test]
fn what_is_written_is_not_executed() {
    let world = World::new();
    world.make("/program", &program(), 0o755, (0, 0));
    world.make("/script", b"#!/program\n", 0o755, (0, 0));
    let file = world.open(world.root, "/program", O_RDWR, 0).unwrap();
    assert_eq!(world.exec(world.root, "/program").0, Err(Errno::ETXTBSY));
    assert_eq!(world.exec(world.root, "/script").0, Err(Errno::ETXTBSY));
    assert_eq!(world.call(world.root, abi::linux::nr::CLOSE, &[file]), Ok(0));
    assert!(world.exec(world.root, "/script").0.is_ok());
}

/// What opening for writing, and truncating, give for /program.
fn writing(world: &World) -> [Result<u64>; 3] {
    let open = |flags| {
        let file = world.open(world.root, "/program", flags, 0)?;
        world.call(world.root, abi::linux::nr::CLOSE, &[file])
    };
    [open(O_WRONLY), open(O_RDONLY | O_TRUNC), world.path_call(world.root, abi::linux::nr::TRUNCATE, "/program", &[1])]
}

#[test]
fn what_is_executed_is_not_written_until_the_last_process_has_ended() {
    let mut world = World::new();
    world.make("/program", &program(), 0o755, (0, 0));
    let busy = [Err(Errno::ETXTBSY); 3];
    let first = world.fork(world.root, 0);
    assert!(world.exec(first, "/program").0.is_ok());
    assert_eq!(writing(&world), busy, "from the report on");
    world.restart_vfs();
    assert_eq!(writing(&world), busy);
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: first }.message()), Ok(0));
    assert_eq!(writing(&world), busy);
    let second = world.fork(first, 0);
    world.exit(first);
    assert_eq!(writing(&world), busy, "a child executes what its parent did");
    world.restart_vfs();
    assert_eq!(writing(&world), busy);
    assert!(world.open(world.root, "/program", O_RDONLY, 0).is_ok());
    world.exit(second);
    assert_eq!(writing(&world), [Ok(0); 3]);
}

#[test]
fn a_failed_exec_leaves_the_file_free() {
    let world = World::new();
    world.make("/program", b"no program", 0o755, (0, 0));
    assert_eq!(world.exec(world.root, "/program").0, Err(Errno::ENOEXEC));
    assert_eq!(writing(&world), [Ok(0); 3]);
}
