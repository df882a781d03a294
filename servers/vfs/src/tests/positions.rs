//! Where reads and writes begin and end.

use super::*;
use abi::{Errno, linux::nr};

#[test]
fn a_read_moves_the_position_by_what_it_has_read() {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.read(world.root, file, 4).unwrap(), b"0123");
    assert_eq!(world.position(world.root, file), 4);
    assert_eq!(world.read(world.root, file, 100).unwrap(), b"456789");
    assert_eq!(world.position(world.root, file), 10);
    assert_eq!(world.read(world.root, file, 100).unwrap(), b"");
    assert_eq!(world.position(world.root, file), 10);
}

/// The buffer ends with the program's memory: what lies in front of its end is read, and the next read goes on there.
#[test]
fn a_read_that_ends_early_leaves_the_position_behind_the_last_byte() {
    let world = World::new();
    let content: Vec<u8> = (0..20_000u32).map(|at| at as u8).collect();
    world.make("/file", &content, 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let room = 10_000;
    let done = world.call(world.root, nr::READ, &[file, MEMORY.end - room, 20_000]).unwrap();
    assert!((1..=room).contains(&done), "{done} bytes");
    assert_eq!(world.position(world.root, file), done);
    let rest = world.read(world.root, file, 20_000).unwrap();
    assert_eq!(rest, content[done as usize..]);
}

#[test]
fn a_read_into_memory_that_is_not_there_moves_nothing() {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.call(world.root, nr::READ, &[file, 8, 10]), Err(Errno::EFAULT));
    assert_eq!(world.position(world.root, file), 0);
}

#[test]
fn a_write_that_ends_early_leaves_size_and_position_behind_the_last_byte() {
    let world = World::new();
    let file = world.open(world.root, "/file", O_CREAT | O_RDWR, 0o644).unwrap();
    let room = 10_000;
    world.machine.write(world.root, MEMORY.end - room, &std::vec![7; room as usize]);
    let done = world.call(world.root, nr::WRITE, &[file, MEMORY.end - room, 20_000]).unwrap();
    assert!((1..=room).contains(&done), "{done} bytes");
    assert_eq!(world.position(world.root, file), done);
    assert_eq!(world.fstat(world.root, file).unwrap().size, done);
    assert_eq!(world.content("/file"), std::vec![7; done as usize]);
}

#[test]
fn reads_and_writes_at_a_position_leave_that_of_the_file() {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(world.seek(world.root, file, 3, SEEK_SET), Ok(3));
    assert_eq!(world.pread(world.root, file, 4, 5).unwrap(), b"5678");
    assert_eq!(world.pwrite(world.root, file, b"ab", 1), Ok(2));
    assert_eq!(world.position(world.root, file), 3);
    assert_eq!(world.content("/file"), b"0ab3456789");
    assert_eq!(world.pread(world.root, file, 4, 10).unwrap(), b"");
}

#[test]
fn negative_positions_are_refused() {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    let vector = world.words(world.root, &[DATA, 1]);
    for position in [-1, -4, i64::MIN] {
        assert_eq!(world.pread(world.root, file, 1, position), Err(Errno::EINVAL));
        assert_eq!(world.pwrite(world.root, file, b"x", position), Err(Errno::EINVAL));
        for call in [nr::PREADV, nr::PWRITEV] {
            assert_eq!(world.call(world.root, call, &[file, vector, 1, position as u64]), Err(Errno::EINVAL));
        }
        assert_eq!(world.seek(world.root, file, position, SEEK_SET), Err(Errno::EINVAL));
    }
    assert_eq!(world.content("/file"), b"0123456789");
}

#[test]
fn seeks_are_from_start_position_and_end() {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(world.seek(world.root, file, 4, SEEK_SET), Ok(4));
    assert_eq!(world.seek(world.root, file, -3, SEEK_CUR), Ok(1));
    assert_eq!(world.seek(world.root, file, -2, SEEK_END), Ok(8));
    assert_eq!(world.seek(world.root, file, -11, SEEK_END), Err(Errno::EINVAL));
    assert_eq!(world.seek(world.root, file, 0, 99), Err(Errno::EINVAL));
    assert_eq!(world.position(world.root, file), 8);
    assert_eq!(world.read(world.root, file, 9).unwrap(), b"89");
}

#[test]
fn a_write_behind_the_end_leaves_zeros_between() {
    let world = World::new();
    world.make("/file", b"ab", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(world.seek(world.root, file, 5, SEEK_SET), Ok(5));
    assert_eq!(world.write(world.root, file, b"cd"), Ok(2));
    assert_eq!(world.content("/file"), b"ab\0\0\0cd");
}

#[test]
fn descriptors_of_one_open_share_the_position_and_those_of_two_do_not() {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let first = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let copy = world.call(world.root, nr::DUP, &[first]).unwrap();
    let second = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let child = world.fork(world.root, 0);
    assert_eq!(world.read(child, copy, 3).unwrap(), b"012");
    assert_eq!(world.read(world.root, first, 3).unwrap(), b"345");
    assert_eq!(world.read(world.root, second, 3).unwrap(), b"012");
}

#[test]
fn pipes_have_no_position() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(world.seek(world.root, reads, 0, SEEK_CUR), Err(Errno::ESPIPE));
    assert_eq!(world.pread(world.root, reads, 1, 0), Err(Errno::ESPIPE));
    assert_eq!(world.pwrite(world.root, writes, b"x", 0), Err(Errno::ESPIPE));
}

#[test]
fn the_position_of_a_memory_device_stays_zero() {
    let world = World::new();
    let open = |path: &str, device: u64| {
        let number = [u64::from(S_IFCHR) | 0o666, device];
        assert_eq!(world.path_call(world.root, nr::MKNOD, path, &number), Ok(0));
        world.open(world.root, path, O_RDWR, 0).unwrap()
    };
    let zero = open("/zero", 0x105);
    assert_eq!(world.seek(world.root, zero, 1 << 60, SEEK_SET), Ok(0));
    assert_eq!(world.seek(world.root, zero, 5, SEEK_CUR), Ok(0));
    assert_eq!(world.call(world.root, nr::PREAD64, &[zero, DATA, 1, 1 << 60]), Ok(1));
}
