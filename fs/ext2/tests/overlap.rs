//! Many requests at a time over a disk whose reads end when the test says so: who misses a block waits alone.
//! The file is long because each kind of request meets each kind of wait.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use crate::common::grants::VFS;
use crate::common::{FileDevice, NOW, Scratch, check, memory_words, options};
use abi::call::KernelCall;
use abi::fs::{Create, GetDents, Lookup, Mount, Put, Read, StatFs, Sync, Truncate, Unlink, Unmount, Write};
use abi::{Endpoint, Errno, GrantId, Message, Word};
use ext2::Ext2;
use fs::device::{BlockDevice, Blocking, Fetch, SECTOR_SIZE};
use fs::preserve::{Preserved, VolumeMemory};
use fs::server::{MountRequest, Server};
use sys::StartKind;
use sys::host::Kernel;

const SUCCESSOR: Endpoint = Endpoint::new(abi::endpoint::slot::VFS, 2);
/// A cache far smaller than the files.
const LAYOUT: fs::preserve::Layout = crate::common::LAYOUT;
/// Times that a request may wait for the disk before a test gives it up.
const MAX_MISSES: usize = 10_000;

/// A read that the disk has begun: its sectors, and its end.
struct Begun {
    sector: u64,
    bytes: usize,
    end: Option<Result<Vec<u8>, Errno>>,
}

/// What the disk works on.
#[derive(Clone, Default)]
struct Reads(Rc<RefCell<Vec<Rc<RefCell<Begun>>>>>);

impl Reads {
    fn in_flight(&self) -> usize {
        self.0.borrow().len()
    }

    /// Ends the read that began `at`-th of those in flight.
    fn end(&self, at: usize, image: &FileDevice) {
        let begun = self.0.borrow_mut().remove(at);
        let mut begun = begun.borrow_mut();
        let mut content = vec![0; begun.bytes];
        image.file().read_exact_at(&mut content, begun.sector * SECTOR_SIZE as u64).unwrap();
        begun.end = Some(Ok(content));
    }

    fn fail(&self, at: usize) {
        self.0.borrow_mut().remove(at).borrow_mut().end = Some(Err(Errno::EIO));
    }
}

struct SlowFetch(Rc<RefCell<Begun>>);

impl Fetch for SlowFetch {
    fn result(&mut self) -> Option<Result<Vec<u8>, Errno>> {
        self.0.borrow_mut().end.take()
    }
}

struct SlowDisk {
    image: FileDevice,
    reads: Reads,
    blocking: Blocking,
    /// Sectors that were read.
    read: Vec<Range<u64>>,
}

impl SlowDisk {
    fn has_read(&self, sector: u64) -> bool {
        self.read.iter().any(|sectors| sectors.contains(&sector))
    }
}

impl BlockDevice for SlowDisk {
    fn sector_count(&self) -> u64 {
        self.image.sector_count()
    }
    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        // A sync reads again what it is about to replace.
        assert!(self.blocking.is_on() || self.has_read(first_sector), "sector {first_sector} is waited for");
        self.read.push(first_sector..first_sector + (buffer.len() / SECTOR_SIZE) as u64);
        self.image.read(first_sector, buffer)
    }
    fn is_blocking(&self) -> bool {
        self.blocking.is_on()
    }
    fn fetch(&mut self, sector: u64, bytes: usize) -> Option<Box<dyn Fetch>> {
        assert!(!self.blocking.is_on(), "sector {sector} is fetched while reads are waited for");
        let begun = Rc::new(RefCell::new(Begun { sector, bytes, end: None }));
        self.reads.0.borrow_mut().push(begun.clone());
        self.read.push(sector..sector + (bytes / SECTOR_SIZE) as u64);
        Some(Box::new(SlowFetch(begun)))
    }
    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        self.image.write(first_sector, data)
    }
    fn flush(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

/// The kernel: a buffer for each grant, and the answers that were sent.
#[derive(Clone, Default)]
struct Fake {
    buffers: Rc<RefCell<BTreeMap<u32, Vec<u8>>>>,
    sent: Rc<RefCell<Vec<Message>>>,
}

impl Kernel for Fake {
    fn primitive(&mut self, number: u64, to: Endpoint, message: &Message, _: Endpoint) -> sys::Result<Message> {
        assert_eq!((number, to.slot()), (abi::call::SEND, VFS.slot()));
        self.sent.borrow_mut().push(*message);
        Ok(Message::default())
    }
    fn call(&mut self, call: KernelCall, _: [u64; 6]) -> sys::Result<(u64, [u64; 2])> {
        assert_eq!(call, KernelCall::Time);
        Ok((1, [NOW.seconds as u64 * 1_000_000_000, 0]))
    }
    fn filling(&mut self, _: KernelCall, arguments: [u64; 6], buffer: &mut [u8]) -> sys::Result<u64> {
        let (grant, start) = (arguments[1] as u32, arguments[2] as usize);
        let buffers = self.buffers.borrow();
        let from = buffers.get(&grant).and_then(|bytes| bytes.get(start..start + buffer.len()));
        buffer.copy_from_slice(from.ok_or(Errno::EFAULT)?);
        Ok(buffer.len() as u64)
    }
    fn reading(&mut self, call: KernelCall, arguments: [u64; 6], buffer: &[u8]) -> sys::Result<u64> {
        if call != KernelCall::Diag {
            let (grant, start) = (arguments[1] as u32, arguments[2] as usize);
            let mut buffers = self.buffers.borrow_mut();
            let to = buffers.get_mut(&grant).and_then(|bytes| bytes.get_mut(start..start + buffer.len()));
            to.ok_or(Errno::EFAULT)?.copy_from_slice(buffer);
        }
        Ok(buffer.len() as u64)
    }
}

struct World {
    server: Box<dyn FnMut(Option<Message>) -> Option<Message>>,
    fake: Fake,
    reads: Reads,
    image: FileDevice,
    scratch: Scratch,
    root: u64,
    vfs: Endpoint,
    next_tag: u64,
}

impl World {
    fn new(arguments: &[&str]) -> World {
        World::with_cache(LAYOUT, arguments)
    }

    fn with_cache(layout: fs::preserve::Layout, arguments: &[&str]) -> World {
        let scratch = Scratch::new();
        let path = scratch.image(4096, arguments);
        let (fake, reads, blocking) = (Fake::default(), Reads::default(), Blocking::default());
        sys::host::install(fake.clone());
        let (of_disk, of_server, image) = (reads.clone(), blocking.clone(), path.clone());
        let mount = move |_: &MountRequest, memory: Option<VolumeMemory>| {
            let image = FileDevice::open(&image);
            let disk = SlowDisk { image, reads: of_disk.clone(), blocking: blocking.clone(), read: Vec::new() };
            Ext2::mount(disk, options(), memory.unwrap())
        };
        let preserved = Preserved::open(memory_words(layout), layout, StartKind::Fresh);
        let mut server = Server::resuming(mount, preserved).with_blocking(of_server);
        let server = Box::new(move |message: Option<Message>| match message {
            Some(message) => server.answer(&message),
            None => {
                server.go_on();
                None
            }
        });
        let image = FileDevice::open(&path);
        let mut world = World { server, fake, reads, image, scratch, root: 0, vfs: VFS, next_tag: 1 };
        let mounted = world.ask(b"disk", |grant| Mount { grant, bytes: 4, minor: 0, flags: 0 }.message());
        world.root = Mount::results(&mounted.1.expect("a mount is waited for")).unwrap().0;
        world
    }

    /// Asks with this buffer. Returns the request's tag (and number of its buffer), and the answer if there is one.
    fn ask(&mut self, content: &[u8], request: impl FnOnce(GrantId) -> Message) -> (u64, Option<Message>) {
        let tag = self.next_tag;
        self.next_tag += 1;
        let grant = GrantId::new(tag as u16, 0);
        self.fake.buffers.borrow_mut().insert(grant.0, content.to_vec());
        let mut request = request(grant);
        (request.source, request.words[6]) = (self.vfs, tag);
        (tag, (self.server)(Some(request)))
    }

    /// As `ask`, and the disk does what is to be done.
    fn do_it(&mut self, content: &[u8], request: impl FnOnce(GrantId) -> Message) -> (u64, Message) {
        let (tag, mut answer) = self.ask(content, request);
        for _ in 0..MAX_MISSES {
            if let Some(answer) = answer {
                return (tag, answer);
            }
            self.serve_disk();
            answer = self.take_sent(tag);
        }
        panic!("the request never ends");
    }

    /// Ends all reads in flight.
    fn serve_disk(&mut self) {
        assert!(self.reads.in_flight() > 0, "a request waits for nothing");
        while self.reads.in_flight() > 0 {
            self.reads.end(0, &self.image);
        }
        (self.server)(None);
    }

    fn take_sent(&mut self, tag: u64) -> Option<Message> {
        let mut sent = self.fake.sent.borrow_mut();
        let at = sent.iter().position(|answer| answer.tag() == tag)?;
        Some(sent.remove(at))
    }

    fn buffer(&self, tag: u64) -> Vec<u8> {
        self.fake.buffers.borrow()[&GrantId::new(tag as u16, 0).0].clone()
    }

    fn create(&mut self, name: &[u8], content: &[u8]) -> u64 {
        let (root, bytes) = (self.root, name.len() as u64);
        let create = |grant: GrantId| {
            Create { directory: root, name: grant.to_word(), bytes, mode: 0o100_644, ids: 0, device: 0 }.message()
        };
        let (_, reply) = self.do_it(name, create);
        let node = Create::results(&reply).unwrap().0;
        let write =
            |grant| Write { node, grant, position: 0, bytes: content.len() as u64, ids: 0, written_ns: 0 }.message();
        assert_eq!(self.do_it(content, write).1.result(), Ok(content.len() as u64));
        node
    }

    /// Free blocks of the file system, as `statfs` has them.
    fn free_blocks(&mut self) -> u64 {
        let node = self.root;
        let (tag, answer) = self.do_it(&[0; 120], |grant| StatFs { node, grant }.message());
        assert_eq!(answer.result(), Ok(0));
        u64::from_le_bytes(self.buffer(tag)[24..32].try_into().unwrap())
    }

    fn read(&mut self, node: u64, position: u64, bytes: u64) -> (u64, Option<Message>) {
        self.ask(&vec![0; bytes as usize], |grant| Read { node, grant, position, bytes, kept: false }.message())
    }

    /// Unmounts, mounts again, and finds the nodes again: nothing of them is in the cache.
    fn remount(&mut self, names: &[&[u8]]) -> Vec<u64> {
        let node = self.root;
        assert_eq!(self.do_it(b"", |_| Unmount { node, force: true }.message()).1.result(), Ok(0));
        let mounted = self.do_it(b"disk", |grant| Mount { grant, bytes: 4, minor: 0, flags: 0 }.message()).1;
        let directory = Mount::results(&mounted).unwrap().0;
        self.root = directory;
        let look_up = |name: &&[u8]| {
            let bytes = name.len() as u64;
            let lookup = |grant| Lookup { directory, grant, bytes, room: 0 }.message();
            let (_, reply) = self.do_it(name, lookup);
            Lookup::results(&reply).unwrap().0
        };
        names.iter().map(look_up).collect()
    }

    /// Everything else is as it should be.
    fn finish(mut self) {
        let node = self.root;
        assert_eq!(self.do_it(b"", |_| Unmount { node, force: true }.message()).1.result(), Ok(0));
        check(&self.scratch.path("image"));
    }
}

fn content(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| ((at / 7 + seed * 31) % 251) as u8).collect()
}

#[test]
fn a_slow_read_holds_no_cached_read() {
    let mut world = World::new(&[]);
    world.create(b"slow", &content(1, 4096));
    world.create(b"fast", &content(2, 4096));
    let [slow, fast] = world.remount(&[b"slow", b"fast"])[..] else { panic!() };
    let fast_read = world.read(fast, 0, 4096);
    assert!(fast_read.1.is_none());
    world.serve_disk();
    assert!(world.take_sent(fast_read.0).is_some());
    let (slow_tag, answer) = world.read(slow, 0, 4096);
    assert!(answer.is_none(), "it has missed its block");
    for _ in 0..3 {
        let (tag, answer) = world.read(fast, 0, 4096);
        assert_eq!(answer.expect("a cached read waits for nobody").result(), Ok(4096));
        assert_eq!(world.buffer(tag), content(2, 4096));
    }
    world.serve_disk();
    assert_eq!(world.take_sent(slow_tag).unwrap().result(), Ok(4096));
    assert_eq!(world.buffer(slow_tag), content(1, 4096));
    world.finish();
}

#[test]
fn two_cold_reads_are_in_flight_and_end_in_any_order() {
    let mut world = World::new(&[]);
    world.create(b"a", &content(1, 10_000));
    world.create(b"b", &content(2, 10_000));
    let [a, b] = world.remount(&[b"a", b"b"])[..] else { panic!() };
    let (first, _) = world.read(a, 0, 4096);
    let (second, _) = world.read(b, 0, 4096);
    assert_eq!(world.reads.in_flight(), 2);
    world.reads.end(1, &world.image);
    (world.server)(None);
    assert_eq!(world.take_sent(first), None);
    assert_eq!(world.take_sent(second).unwrap().result(), Ok(4096));
    world.serve_disk();
    assert_eq!(world.take_sent(first).unwrap().result(), Ok(4096));
    assert_eq!((world.buffer(first), world.buffer(second)), (content(1, 4096), content(2, 4096)));
    world.finish();
}

#[test]
fn who_misses_the_same_block_waits_for_the_same_read() {
    let mut world = World::new(&[]);
    world.create(b"a", &content(1, 1024));
    let [a] = world.remount(&[b"a"])[..] else { panic!() };
    let tags: Vec<u64> = (0..4).map(|_| world.read(a, 0, 1024).0).collect();
    assert_eq!(world.reads.in_flight(), 1);
    world.serve_disk();
    for tag in tags {
        assert_eq!(world.take_sent(tag).unwrap().result(), Ok(1024));
        assert_eq!(world.buffer(tag), content(1, 1024));
    }
    world.finish();
}

#[test]
fn a_long_read_goes_on_where_it_missed() {
    let mut world = World::new(&[]);
    world.create(b"long", &content(3, 900_000));
    let [long] = world.remount(&[b"long"])[..] else { panic!() };
    let (tag, answer) = world.do_it(&vec![0; 900_000], |grant| {
        Read { node: long, grant, position: 0, bytes: 900_000, kept: false }.message()
    });
    assert_eq!(answer.result(), Ok(900_000));
    assert_eq!(world.buffer(tag), content(3, 900_000));
    world.finish();
}

#[test]
fn a_change_that_misses_in_its_midst_is_undone_and_happens_once() {
    let mut world = World::new(&["-b", "1024", "-g", "1024"]);
    let names: Vec<Vec<u8>> = (0..40).map(|number| format!("file{number}").into_bytes()).collect();
    for (number, name) in names.iter().enumerate() {
        world.create(name, &content(number, 30_000));
    }
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let nodes = world.remount(&names);
    // Removals and a read in between, all of which miss; no answer is given before its request has happened.
    let directory = world.root;
    let mut tags = Vec::new();
    for (at, name) in names.iter().enumerate().filter(|(at, _)| at % 2 == 0) {
        let bytes = name.len() as u64;
        let unlink = |grant: GrantId| {
            Unlink { directory, name: grant.to_word(), bytes, directory_wanted: false, node: directory, uses: 0 }
                .message()
        };
        tags.push((world.ask(name, unlink), Ok(0)));
        tags.push((world.ask(b"", |_| Put { node: nodes[at], count: 1 }.message()), Ok(0)));
        tags.push((world.read(nodes[at + 1], 0, 30_000), Ok(30_000)));
        tags.push((world.ask(b"", |_| Truncate { node: nodes[at + 1], size: 30_001 }.message()), Ok(0)));
    }
    while world.reads.in_flight() > 0 {
        // The last read first.
        let last = world.reads.in_flight() - 1;
        world.reads.end(last, &world.image);
        (world.server)(None);
    }
    for ((tag, answer), expected) in tags {
        let answer = answer.or_else(|| world.take_sent(tag)).expect("is answered at last");
        assert_eq!(answer.result(), expected);
    }
    let (tag, answer) =
        world.do_it(&[0; 4096], |grant| GetDents { node: directory, grant, bytes: 4096, position: 0 }.message());
    let listed = world.buffer(tag)[..answer.result().unwrap() as usize].to_vec();
    let is_listed = |name: &[u8]| listed.windows(name.len() + 1).any(|window| window == [name, b"\0"].concat());
    for (at, name) in names.iter().enumerate() {
        assert_eq!(is_listed(name), at % 2 == 1, "{}", String::from_utf8_lossy(name));
    }
    world.finish();
}

#[test]
fn a_request_of_a_vfs_that_has_died_does_not_happen_any_more() {
    let mut world = World::new(&[]);
    let a = world.create(b"a", &content(1, 1024));
    let _ = a;
    world.remount(&[]);
    let directory = world.root;
    let unlink = |grant: GrantId| {
        Unlink { directory, name: grant.to_word(), bytes: 1, directory_wanted: false, node: directory, uses: 0 }
            .message()
    };
    let (tag, answer) = world.ask(b"a", unlink);
    assert!(answer.is_none());
    world.vfs = SUCCESSOR;
    let (_, answer) = world.do_it(b"a", |grant| Lookup { directory, grant, bytes: 1, room: 0 }.message());
    assert!(Lookup::results(&answer).is_ok(), "the file is still there");
    assert_eq!(world.take_sent(tag), None);
    world.finish();
}

#[test]
fn a_block_that_cannot_be_read_is_an_error_of_one_request() {
    let mut world = World::new(&[]);
    world.create(b"a", &content(1, 10_000));
    let [a] = world.remount(&[b"a"])[..] else { panic!() };
    let (tag, _) = world.read(a, 0, 1024);
    // The run, then the block alone.
    for _ in 0..2 {
        assert_eq!(world.reads.in_flight(), 1);
        world.reads.fail(0);
        (world.server)(None);
    }
    assert_eq!(world.take_sent(tag).unwrap().result(), Err(Errno::EIO));
    let (_, answer) =
        world.do_it(&[0; 1024], |grant| Read { node: a, grant, position: 0, bytes: 1024, kept: false }.message());
    assert_eq!(answer.result(), Ok(1024));
    world.finish();
}

#[test]
fn what_is_written_while_its_block_is_read_stays() {
    let mut world = World::new(&["-b", "1024"]);
    world.create(b"a", &content(1, 1024));
    let [a] = world.remount(&[b"a"])[..] else { panic!() };
    let (read, _) = world.read(a, 0, 1024);
    let write = |grant| Write { node: a, grant, position: 0, bytes: 1024, ids: 0, written_ns: 0 }.message();
    let (_, written) = world.ask(&content(9, 1024), write);
    assert_eq!(written.expect("a whole block needs no reading").result(), Ok(1024));
    assert_eq!(world.ask(b"", |_| Sync {}.message()).1.unwrap().result(), Ok(0));
    world.serve_disk();
    assert_eq!(world.take_sent(read).unwrap().result(), Ok(1024));
    assert_eq!(world.buffer(read), content(9, 1024));
    world.finish();
}

#[test]
fn a_request_that_needs_more_blocks_than_the_cache_has_ends() {
    let layout = fs::preserve::Layout { cache_bytes: 256 * 1024, ..LAYOUT };
    let mut world = World::with_cache(layout, &["-b", "1024", "-N", "1200"]);
    let name = |number: usize| format!("{number:0255}").into_bytes();
    for number in 0..1000 {
        world.create(&name(number), b"");
    }
    let last = name(999);
    world.remount(&[&last]);
    world.finish();
}

#[test]
fn blocks_that_are_being_freed_count_as_free() {
    let mut world = World::new(&["-b", "1024"]);
    let before = world.free_blocks();
    world.create(b"next", b"");
    let filler = world.create(b"filler", b"");
    let bytes = before * 1024;
    let write = |grant| Write { node: filler, grant, position: 0, bytes, ids: 0, written_ns: 0 }.message();
    assert!(world.do_it(&content(1, bytes as usize), write).1.result().unwrap() < bytes, "the disk is full");
    let [filler, next] = world.remount(&[b"filler", b"next"])[..] else { panic!() };
    let directory = world.root;
    let unlink = |grant: GrantId| {
        Unlink { directory, name: grant.to_word(), bytes: 6, directory_wanted: false, node: directory, uses: 0 }
            .message()
    };
    assert_eq!(world.do_it(b"filler", unlink).1.result(), Ok(0));
    assert_eq!(world.ask(b"", |_| Put { node: filler, count: 1 }.message()).1.unwrap().result(), Ok(0));
    assert!(world.reads.in_flight() > 0, "freeing waits for a block");
    let write = |grant| Write { node: next, grant, position: 0, bytes: 3_000_000, ids: 0, written_ns: 0 }.message();
    assert_eq!(world.do_it(&content(2, 3_000_000), write).1.result(), Ok(3_000_000));
    world.finish();
}

#[test]
fn free_blocks_are_told_when_all_are_freed() {
    let mut world = World::new(&["-b", "1024"]);
    let before = world.free_blocks();
    world.create(b"filler", &content(1, 3_000_000));
    let [filler] = world.remount(&[b"filler"])[..] else { panic!() };
    let directory = world.root;
    let unlink = |grant: GrantId| {
        Unlink { directory, name: grant.to_word(), bytes: 6, directory_wanted: false, node: directory, uses: 0 }
            .message()
    };
    assert_eq!(world.do_it(b"filler", unlink).1.result(), Ok(0));
    assert_eq!(world.ask(b"", |_| Put { node: filler, count: 1 }.message()).1.unwrap().result(), Ok(0));
    assert!(world.reads.in_flight() > 0, "freeing waits for a block");
    assert_eq!(world.free_blocks(), before);
    world.finish();
}

#[test]
fn free_blocks_are_the_same_after_a_request_that_was_undone() {
    let mut world = World::new(&["-b", "1024"]);
    world.create(b"old", &content(1, 100_000));
    let [old] = world.remount(&[b"old"])[..] else { panic!() };
    world.do_it(&[0; 10], |grant| Read { node: old, grant, position: 50 * 1024, bytes: 10, kept: false }.message());
    // The superblock on the disk does not know of this.
    world.create(b"new", &content(2, 50_000));
    let before = world.free_blocks();
    let (position, bytes) = (51 * 1024 - 4, 8);
    let across = |grant| Write { node: old, grant, position, bytes, ids: 0, written_ns: 0 }.message();
    let (tag, answer) = world.ask(b"01234567", across);
    assert!(answer.is_none(), "its second block is not there");
    assert_eq!(world.free_blocks(), before);
    world.serve_disk();
    assert_eq!(world.take_sent(tag).expect("is answered").result(), Ok(bytes));
    assert_eq!(world.free_blocks(), before);
    world.finish();
}
