//! Character devices, by a terminal: what the driver is asked, and what its answers mean for programs.

use super::*;
use abi::chardev::{self, Request};
use abi::{Errno, linux::nr, vfs};

const S: u64 = 1_000_000_000;
const MINOR: u64 = abi::console::MINOR_SHOWN + 5;

fn node(world: &World) {
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/tty5", &[u64::from(S_IFCHR) | 0o666, 0x405]), Ok(0));
}

pub(super) fn open(world: &World, flags: u64) -> u64 {
    if world.stat(world.root, "/tty5").is_err() {
        node(world);
    }
    world.open(world.root, "/tty5", flags, 0).unwrap()
}

/// What the driver has been asked since the last time.
fn asked(world: &World) -> Vec<Request> {
    std::mem::take(&mut world.terminal().asked)
}

fn pollfd(world: &World, who: abi::Endpoint, file: u64, events: u16) -> u64 {
    world.words(who, &[file | u64::from(events) << 32])
}

#[test]
fn the_driver_learns_who_opens_and_when_the_last_descriptor_is_closed() {
    let world = World::new();
    let set = vfs::SetSession { process: world.root, session: 11, group: 12, leader: true };
    assert_eq!(world.call_as_pm(set.message()), Ok(0));
    let file = open(&world, O_RDWR | O_NONBLOCK);
    let copy = world.call(world.root, nr::DUP, &[file]).unwrap();
    let flags = O_RDWR | O_NONBLOCK;
    let opening = chardev::Open { minor: MINOR, flags, caller: 1 | 12 << 32, session: 11, ids: 0, node: 0 };
    assert_eq!(asked(&world), [Request::Open(opening)]);
    world.close(world.root, file).unwrap();
    assert_eq!(asked(&world), []);
    world.close(world.root, copy).unwrap();
    assert_eq!(asked(&world), [Request::Close(chardev::Close { minor: MINOR })]);
    world.terminal().error = Some(Errno::EBUSY);
    assert_eq!(world.open(world.root, "/tty5", O_RDWR, 0), Err(Errno::EBUSY));
}

#[test]
fn a_read_gives_one_line_however_much_was_asked_for() {
    let world = World::new();
    let file = open(&world, O_RDWR);
    let child = world.fork(world.root, 0);
    let set = vfs::SetSession { process: child, session: 0x1_0000_0001, group: 0x2_0000_0002, leader: true };
    assert_eq!(world.call_as_pm(set.message()), Ok(0));
    asked(&world);
    assert_eq!(world.begin_call(child, nr::READ, &[file, DATA, 100]), None);
    let [Request::Read(read)] = asked(&world)[..] else { panic!("the driver is asked") };
    assert_eq!((read.minor, read.bytes, read.flags, read.caller), (MINOR, 100, 0, 2 | 1 << 32));
    world.enter(b"a line\n");
    assert_eq!(world.result(child), Some(Ok(7)));
    assert_eq!(world.machine.read(child, DATA, 8), b"a line\n\0");
    world.enter(b"one");
    world.enter(b"two");
    let pieces = world.words(child, &[DATA, 3, DATA + 100, 10]);
    assert_eq!(world.call(child, nr::READV, &[file, pieces, 2]), Ok(3));
    assert_eq!(world.read(child, file, 100).unwrap(), b"two");
    asked(&world);
    assert_eq!(world.read(world.root, file, 0).unwrap(), b"");
    assert_eq!(asked(&world), [], "nothing needs no driver");
    assert_eq!(world.pread(world.root, file, 1, 0), Err(Errno::ESPIPE));
    assert_eq!(world.seek(world.root, file, 0, SEEK_SET), Err(Errno::ESPIPE));
}

#[test]
fn without_waiting_a_terminal_says_that_there_is_no_input() {
    let world = World::new();
    let file = open(&world, O_RDWR | O_NONBLOCK);
    assert_eq!(world.read(world.root, file, 10), Err(Errno::EAGAIN));
    world.enter(b"text");
    assert_eq!(world.read(world.root, file, 10).unwrap(), b"text");
    assert_eq!(world.write(world.root, file, b"out"), Ok(3));
    let flags = asked(&world).into_iter().filter_map(|request| match request {
        Request::Read(read) => Some(read.flags),
        Request::Write(write) => Some(write.flags),
        _ => None,
    });
    assert_eq!(flags.collect::<Vec<_>>(), [O_NONBLOCK; 3]);
}

#[test]
fn a_write_goes_on_until_the_driver_takes_less() {
    let world = World::new();
    let file = open(&world, O_WRONLY);
    asked(&world);
    let all = MEMORY.end - DATA;
    assert!(all > 1 << 20);
    assert_eq!(world.call(world.root, nr::WRITE, &[file, DATA, all]), Ok(all));
    let sizes = asked(&world).into_iter().map(|request| match request {
        Request::Write(write) => (write.minor, write.bytes, write.flags, write.caller),
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [(MINOR, 1 << 20, 0, 0), (MINOR, all - (1 << 20), 0, 0)]);
    world.terminal().written.clear();
    world.data(world.root, b"abcdefgh");
    let pieces = world.words(world.root, &[DATA, 3, DATA + 5, 3]);
    assert_eq!(world.call(world.root, nr::WRITEV, &[file, pieces, 2]), Ok(6));
    assert_eq!(world.terminal().written, b"abcfgh");
    world.terminal().most = Some(2);
    assert_eq!(world.call(world.root, nr::WRITEV, &[file, pieces, 2]), Ok(2));
    world.terminal().error = Some(Errno::EIO);
    assert_eq!(world.write(world.root, file, b"x"), Err(Errno::EIO));
    assert_eq!(world.write(world.root, file, b""), Ok(0));
    assert_eq!(world.pwrite(world.root, file, b"x", 0), Err(Errno::ESPIPE));
}

#[test]
fn a_signal_ends_a_read_with_its_error() {
    let world = World::new();
    let file = open(&world, O_RDONLY);
    assert_eq!(world.begin_call(world.root, nr::READ, &[file, DATA, 100]), None);
    assert_eq!(world.terminal().waiting(), 1);
    assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::ERESTARTSYS)));
    assert_eq!(world.terminal().waiting(), 0, "the driver does not wait any more");
    world.enter(b"kept");
    assert_eq!(world.read(world.root, file, 100).unwrap(), b"kept");
    assert_eq!(world.cancel(world.root, Errno::EINTR), Err(Errno::ENOENT), "no call is in progress");
}

#[test]
fn the_driver_reaches_256_bytes_at_the_argument_of_an_ioctl() {
    let world = World::new();
    let file = open(&world, O_RDWR);
    let set = vfs::SetSession { process: world.root, session: 11, group: 12, leader: true };
    assert_eq!(world.call_as_pm(set.message()), Ok(0));
    asked(&world);
    let mut argument = [0; 257];
    (argument[0], argument[255], argument[256]) = (41, 7, 9);
    world.data(world.root, &argument);
    assert_eq!(world.call(world.root, nr::IOCTL, &[file, 0xffff_ffff_0000_5413, DATA]), Ok(0x5413));
    assert_eq!(world.machine.read(world.root, DATA, 2), [42, 7]);
    let [Request::Control(control)] = asked(&world)[..] else { panic!("the driver is asked") };
    let told = (control.minor, control.request, control.argument, control.caller, control.session);
    assert_eq!(told, (MINOR, 0x5413, DATA, 1 | 12 << 32, 11));
    world.terminal().error = Some(Errno::ENOTTY);
    assert_eq!(world.call(world.root, nr::IOCTL, &[file, 0x5413, DATA]), Err(Errno::ENOTTY));
    assert_eq!(world.call(world.root, nr::IOCTL, &[file, 0x5451, 0]), Ok(0), "of descriptors, not of the device");
}

#[test]
fn poll_asks_the_driver() {
    let world = World::new();
    let file = open(&world, O_RDWR);
    asked(&world);
    let poll = |events| {
        let address = pollfd(&world, world.root, file, events);
        let count = world.call(world.root, nr::POLL, &[address, 1, 0]).unwrap();
        (count, (world.read_words(world.root, address, 1)[0] >> 48) as u16)
    };
    assert_eq!(poll(POLLIN), (0, 0));
    assert_eq!(poll(POLLIN | POLLOUT), (1, POLLOUT));
    world.enter(b"text");
    assert_eq!(poll(POLLIN), (1, POLLIN));
    let questions: Vec<Request> = asked(&world);
    let question = |events: u16| {
        let events = u64::from(events | POLLERR | POLLHUP);
        Request::Poll(chardev::Poll { minor: MINOR, events, now: true, since: 0 })
    };
    assert_eq!(questions, [question(POLLIN), question(POLLIN | POLLOUT), question(POLLIN)]);
    world.terminal().error = Some(Errno::EIO);
    assert_eq!(poll(POLLIN), (1, POLLERR), "an error is told whether asked for or not");
}

#[test]
fn poll_waits_for_a_device_and_a_pipe_at_once() {
    let world = World::new();
    let file = open(&world, O_RDWR);
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    let begin = |timeout_ms: i64| {
        let asked = [file, reads].map(|file| file | u64::from(POLLIN) << 32);
        let address = world.words(child, &asked);
        assert_eq!(world.begin_call(child, nr::POLL, &[address, 2, timeout_ms as u64]), None);
        address
    };
    let found = |address| world.read_words(child, address, 2).iter().map(|word| word >> 48).collect::<Vec<_>>();
    let address = begin(-1);
    world.enter(b"text");
    assert_eq!(world.result(child), Some(Ok(1)));
    assert_eq!(found(address), [u64::from(POLLIN), 0]);
    world.terminal().input.clear();
    let address = begin(-1);
    assert_eq!(world.terminal().waiting(), 1);
    world.write(world.root, writes, b"x").unwrap();
    assert_eq!(world.result(child), Some(Ok(1)));
    assert_eq!(found(address), [0, u64::from(POLLIN)]);
    assert_eq!(world.terminal().waiting(), 0, "the question is taken back");
    world.read(world.root, reads, 1).unwrap();
    let address = begin(10);
    world.machine.advance_ns(S / 100);
    assert_eq!(world.result(child), Some(Ok(0)));
    assert_eq!(found(address), [0, 0]);
    assert_eq!(world.terminal().waiting(), 0);
    begin(-1);
    assert_eq!(world.cancel(child, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(child), Some(Err(Errno::EINTR)), "poll is never made again by itself");
    assert_eq!(world.terminal().waiting(), 0);
}

#[test]
fn select_asks_the_driver_too() {
    let world = World::new();
    let file = open(&world, O_RDWR);
    let select = |sets: [u64; 3]| {
        let sets = world.words(world.root, &[sets[0], sets[1], sets[2], 0, 0]);
        let count = world.call(world.root, nr::SELECT, &[file + 1, sets, sets + 8, sets + 16, sets + 24]).unwrap();
        (count, world.read_words(world.root, sets, 3))
    };
    let bit = 1 << file;
    assert_eq!(select([bit, bit, bit]), (1, [0, bit, 0].to_vec()));
    world.enter(b"text");
    assert_eq!(select([bit, bit, bit]), (2, [bit, bit, 0].to_vec()));
    assert_eq!(select([bit, 0, 0]), (1, [bit, 0, 0].to_vec()));
}

#[test]
fn an_open_terminal_outlives_vfs() {
    let mut world = World::new();
    let file = open(&world, O_RDWR);
    let call = [file, DATA, 100];
    assert_eq!(world.begin_call(world.root, nr::READ, &call), None);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    world.terminal().input.push_back(b"late".to_vec());
    assert_eq!(world.repeat_call(world.root, nr::READ, &call), Some(Ok(4)));
    asked(&world);
    world.close(world.root, file).unwrap();
    assert_eq!(asked(&world), [Request::Close(chardev::Close { minor: MINOR })]);
}
