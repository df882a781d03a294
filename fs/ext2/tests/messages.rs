//! The whole process but the kernel: requests of vfs as messages, data through grants, ext2 on a real image.

use std::rc::Rc;

use crate::common::grants::{Buffer, Fake, GRANT, VFS, name_words};
use crate::common::{FileDevice, NOW, Random, Scratch, check, is_marked_clean, memory, options};
use abi::fs::{
    Allocate, ChMod, ChOwn, CopyRange, Create, GetDents, Link, Lookup, MOUNTED_READ_ONLY, Mount, PUT_ALL_MOST, Put,
    PutAll, RENAME_EXCHANGE, Read, ReadLink, Rename, SetTimes, ShortName, Stat, StatFs, Symlink, Sync, Truncate,
    Unlink, UnlinkUnused, Unmount, Write,
};
use abi::{Endpoint, Errno, GrantId, Message, Word};
use ext2::{Ext2, Options};
use fs::preserve::VolumeMemory;
use fs::server::{MountRequest, Server};

const SUCCESSOR: Endpoint = Endpoint::new(abi::endpoint::slot::VFS, 2);
const TAG: u64 = 4711;

/// Plays vfs: minor n is the image with the number n.
struct Vfs<M> {
    server: Server<Ext2<FileDevice>, M>,
    buffer: Buffer,
    endpoint: Endpoint,
}

fn vfs(
    scratches: Rc<Vec<Scratch>>,
) -> Vfs<impl FnMut(&MountRequest, Option<VolumeMemory>) -> Result<Ext2<FileDevice>, Errno>> {
    let buffer = Buffer::default();
    sys::host::install(Fake(buffer.clone()));
    let server = Server::new(move |request: &MountRequest, _| {
        assert_eq!(request.source.service.unwrap().as_str(), "disk");
        let scratch = scratches.get(request.source.minor as usize).ok_or(Errno::ENXIO)?;
        let device = FileDevice::open(&scratch.path("image"));
        Ext2::mount(device, Options { read_only: request.read_only, ..options() }, memory())
    });
    Vfs { server, buffer, endpoint: VFS }
}

impl<M: FnMut(&MountRequest, Option<VolumeMemory>) -> Result<Ext2<FileDevice>, Errno>> Vfs<M> {
    /// Sends a request with this content in the granted buffer.
    fn ask(&mut self, content: &[u8], mut request: Message) -> Message {
        *self.buffer.borrow_mut() = content.to_vec();
        request.source = self.endpoint;
        request.words[6] = TAG;
        let reply = self.server.answer(&request).expect("a device that waits for itself lets nobody wait");
        assert_eq!((reply.label, reply.tag()), (request.label | abi::message::REPLY, TAG));
        reply
    }

    fn mount(&mut self, minor: u64, flags: u64) -> Message {
        self.ask(b"disk", Mount { grant: GRANT, bytes: 4, minor, flags }.message())
    }

    fn root(&mut self, minor: u64) -> u64 {
        let reply = self.mount(minor, 0);
        assert_eq!(reply.result(), Ok(0));
        Mount::results(&reply).unwrap().0
    }

    fn lookup(&mut self, directory: u64, name: &str) -> Result<(u64, u64, u64, u64, u64), Errno> {
        let reply =
            self.ask(name.as_bytes(), Lookup { directory, grant: GRANT, bytes: name.len() as u64, room: 0 }.message());
        Lookup::results(&reply)
    }

    fn create(&mut self, directory: u64, name: &str, mode: u64) -> Result<u64, Errno> {
        let (words, ids) = (name_words(name), 1000 | 100 << 32);
        let request = Create { directory, name: words.0, bytes: words.1, mode, ids, device: 0 };
        let reply = self.ask(name.as_bytes(), request.message());
        Create::results(&reply).map(|results| results.0)
    }

    fn write(&mut self, node: u64, position: u64, data: &[u8]) -> Result<(u64, u64), Errno> {
        let reply = self.ask(
            data,
            Write { node, grant: GRANT, position, bytes: data.len() as u64, ids: 0, written_ns: 0 }.message(),
        );
        Ok((reply.result()?, Write::results(&reply)?))
    }

    fn read(&mut self, node: u64, position: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
        let reply =
            self.ask(&vec![0xaa; bytes as usize], Read { node, grant: GRANT, position, bytes, kept: false }.message());
        let done = reply.result()? as usize;
        Ok(self.buffer.borrow()[..done].to_vec())
    }

    fn result(&mut self, content: &[u8], request: Message) -> Result<u64, Errno> {
        self.ask(content, request).result()
    }
}

fn one_image() -> Rc<Vec<Scratch>> {
    let scratch = Scratch::new();
    scratch.image(4096, &["-b", "4096"]);
    Rc::new(vec![scratch])
}

#[test]
fn a_file_is_made_written_read_and_removed() {
    let images = one_image();
    let mut vfs = vfs(images.clone());
    let root = vfs.root(0);
    let dir = vfs.create(root, "dir", 0o40_755).unwrap();
    let file = vfs.create(dir, "file", 0o100_640).unwrap();
    let data: Vec<u8> = (0..10_000).map(|n| n as u8).collect();
    assert_eq!(vfs.write(file, 0, &data), Ok((10_000, 10_000)));
    assert_eq!(vfs.write(file, 20_000, b"end"), Ok((3, 20_003)));
    assert_eq!(vfs.read(file, 4000, 200).unwrap(), data[4000..4200]);
    assert_eq!(vfs.read(file, 9_999, 4).unwrap(), [data[9_999], 0, 0, 0]);
    assert_eq!(vfs.read(file, 20_003, 10).unwrap(), []);
    let (node, mode, ids, size, device) = vfs.lookup(dir, "file").unwrap();
    assert_eq!((node, mode, ids, size, device), (file, 0o100_640 | 1 << 32, 1000 | 100 << 32, 20_003, 0));
    assert_eq!(vfs.lookup(dir, "..").unwrap().0, root);
    assert_eq!(vfs.lookup(dir, "missing"), Err(Errno::ENOENT));
    assert_eq!(vfs.result(b"", Truncate { node: file, size: 5 }.message()), Ok(0));
    let unlink = |name: &str, wanted| {
        let (name, bytes) = name_words(name);
        Unlink { directory: dir, name, bytes, directory_wanted: wanted, node: file, uses: 0 }.message()
    };
    assert_eq!(vfs.result(b"file", unlink("file", true)), Err(Errno::ENOTDIR));
    assert_eq!(vfs.result(b"file", unlink("file", false)), Ok(0));
    assert_eq!(vfs.read(file, 0, 10).unwrap(), data[..5]);
    assert_eq!(vfs.result(b"", Put { node: file, count: 2 }.message()), Ok(0));
    assert!(vfs.read(file, 0, 10).is_err());
    assert_eq!(vfs.result(b"", Sync {}.message()), Ok(0));
    assert_eq!(vfs.result(b"", Unmount { node: root, force: false }.message()), Err(Errno::EBUSY));
    assert_eq!(vfs.result(b"", Unmount { node: root, force: true }.message()), Ok(0));
    assert_eq!(vfs.lookup(root, "dir"), Err(Errno::ESTALE));
    check(&images[0].path("image"));
    assert!(is_marked_clean(&images[0].path("image")));
}

#[test]
fn uses_of_many_nodes_end_with_one_request() {
    let images = one_image();
    let mut vfs = vfs(images.clone());
    let root = vfs.root(0);
    let nodes = ["one", "two", "gone"].map(|name| vfs.create(root, name, 0o100_644).unwrap());
    let (name, bytes) = name_words("gone");
    let unlink = Unlink { directory: root, name, bytes, directory_wanted: false, node: nodes[2], uses: 0 };
    assert_eq!(vfs.result(b"gone", unlink.message()), Ok(0));
    vfs.lookup(root, "two").unwrap();
    let records = |nodes: &[(u64, u64)]| -> Vec<u8> {
        nodes.iter().flat_map(|(node, count)| [node.to_le_bytes(), count.to_le_bytes()].concat()).collect()
    };
    let mut put = |records: &[u8]| vfs.result(records, PutAll { grant: GRANT, bytes: records.len() as u64 }.message());
    // Of one file too many: the others end all the same.
    assert_eq!(put(&records(&[(nodes[0], 7), (nodes[1], 1), (nodes[2], 1)])), Ok(0));
    assert_eq!(put(&records(&[(nodes[1], 1), (nodes[0], 1)])), Ok(0));
    assert_eq!(put(&[0; 15]), Err(Errno::EINVAL));
    assert_eq!(put(&records(&[(nodes[0], 1); PUT_ALL_MOST + 1])), Err(Errno::EINVAL));
    assert_eq!(put(&records(&[(root | 5 << 56, 1)])), Err(Errno::ESTALE));
    assert!(vfs.read(nodes[2], 0, 10).is_err(), "it is freed");
    // The root has its use by the mount.
    assert_eq!(vfs.result(b"", Unmount { node: root, force: false }.message()), Ok(0));
    check(&images[0].path("image"));
}

#[test]
fn a_name_of_a_file_without_users_is_removed_and_its_node_told() {
    let images = one_image();
    let mut vfs = vfs(images.clone());
    let root = vfs.root(0);
    let [_, unused] = ["used", "unused"].map(|name| vfs.create(root, name, 0o100_644).unwrap());
    vfs.create(root, "dir", 0o40_755).unwrap();
    let link = |name: &str, node| Link { directory: root, grant: GRANT, bytes: name.len() as u64, node }.message();
    assert_eq!(vfs.result(b"other", link("other", unused)), Ok(0));
    assert_eq!(vfs.result(b"", Put { node: unused, count: 1 }.message()), Ok(0));
    let mut unlink = |name: &str| {
        let (content, (name, bytes)) = (name.as_bytes(), name_words(name));
        UnlinkUnused::results(&vfs.ask(content, UnlinkUnused { directory: root, name, bytes }.message()))
    };
    assert_eq!(unlink("used"), Err(Errno::EBUSY));
    assert_eq!(unlink("dir"), Err(Errno::EBUSY), "it is in use");
    assert_eq!(unlink("."), Err(Errno::EISDIR));
    assert_eq!(unlink("none"), Err(Errno::ENOENT));
    assert_eq!(unlink("other"), Ok(0), "it has another name");
    assert_eq!(unlink("unused"), Ok(unused));
    assert_eq!(unlink("unused"), Err(Errno::ENOENT));
    assert_eq!(vfs.result(b"", Unmount { node: root, force: true }.message()), Ok(0));
    check(&images[0].path("image"));
}

#[test]
fn links_and_renames_work_by_message() {
    let images = one_image();
    let mut vfs = vfs(images.clone());
    let root = vfs.root(0);
    let file = vfs.create(root, "a", 0o100_644).unwrap();
    let symlink = Symlink { directory: root, grant: GRANT, name_bytes: 4, target_bytes: 6, ids: 0 };
    assert_eq!(vfs.result(b"linktarget", symlink.message()), Ok(0));
    let link = vfs.lookup(root, "link").unwrap().0;
    assert_eq!(vfs.result(&[0; 64], ReadLink { node: link, grant: GRANT, bytes: 64, reader: 1 }.message()), Ok(6));
    assert_eq!(&vfs.buffer.borrow()[..6], b"target");
    assert_eq!(vfs.result(&[0; 3], ReadLink { node: link, grant: GRANT, bytes: 3, reader: 1 }.message()), Ok(3));
    let hard = Link { directory: root, grant: GRANT, bytes: 1, node: file };
    assert_eq!(vfs.result(b"b", hard.message()), Ok(0));
    assert_eq!(vfs.result(b"b", hard.message()), Err(Errno::EEXIST));
    let rename =
        Rename { old_directory: root, new_directory: root, grant: GRANT, old_bytes: 1, new_bytes: 3, flags: 0 };
    assert_eq!(vfs.result(b"bnew", rename.message()), Ok(0));
    assert_eq!(vfs.lookup(root, "new").unwrap().0, file);
    assert_eq!(vfs.lookup(root, "b"), Err(Errno::ENOENT));
    let exchange = Rename { old_bytes: 3, new_bytes: 4, flags: RENAME_EXCHANGE, ..rename };
    assert_eq!(vfs.result(b"newlink", exchange.message()), Ok(0));
    assert_eq!((vfs.lookup(root, "new").unwrap().0, vfs.lookup(root, "link").unwrap().0), (link, file));
    assert_eq!(vfs.result(b"newnone", exchange.message()), Err(Errno::ENOENT));
    assert_eq!(vfs.result(b"newlink", Rename { flags: 8, ..exchange }.message()), Err(Errno::EINVAL));
    assert_eq!(vfs.result(b"", Unmount { node: root, force: true }.message()), Ok(0));
    check(&images[0].path("image"));
}

#[test]
fn directories_are_listed_as_linux_records() {
    let mut vfs = vfs(one_image());
    let root = vfs.root(0);
    let mut expected = vec![(".".to_string(), 4), ("..".to_string(), 4), ("lost+found".to_string(), 4)];
    for number in 0..20 {
        let name = format!("file-{number}");
        vfs.create(root, &name, 0o100_644).unwrap();
        expected.push((name, 8));
    }
    let mut seen = Vec::new();
    let mut position = 0;
    loop {
        let reply = vfs.ask(&[0; 200], GetDents { node: root, grant: GRANT, position, bytes: 200 }.message());
        let used = reply.result().unwrap() as usize;
        position = GetDents::results(&reply).unwrap().0;
        if used == 0 {
            break;
        }
        let records = vfs.buffer.borrow()[..used].to_vec();
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            let size = u16::from_le_bytes([rest[16], rest[17]]) as usize;
            assert!(size.is_multiple_of(8));
            let name = rest[19..size].split(|&byte| byte == 0).next().unwrap();
            seen.push((String::from_utf8(name.to_vec()).unwrap(), rest[18]));
            rest = &rest[size..];
        }
    }
    assert_eq!(seen[..2], expected[..2], "these come first, and the others by their hashes");
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
    let small = GetDents { node: root, grant: GRANT, position: 0, bytes: 10 };
    assert_eq!(vfs.result(&[0; 10], small.message()), Err(Errno::EINVAL));
}

#[test]
fn attributes_change_and_are_told_as_linux_structures() {
    let mut vfs = vfs(one_image());
    let root = vfs.root(0);
    let file = vfs.create(root, "f", 0o100_755).unwrap();
    vfs.write(file, 0, b"hello").unwrap();
    let now_ns = NOW.seconds as u64 * 1_000_000_000 + u64::from(NOW.nanos);
    let reply = vfs.ask(b"", ChMod { node: file, mode: 0o4711 }.message());
    assert_eq!(ChMod::results(&reply), Ok((0o104_711 | 1 << 32, 8, now_ns, now_ns, now_ns)));
    let reply = vfs.ask(b"", ChOwn { node: file, ids: 0xffff_ffff | 7 << 32 }.message());
    assert_eq!(ChOwn::results(&reply), Ok((0o100_711 | 1 << 32, 8, now_ns, now_ns, now_ns)));
    let times = SetTimes { node: file, accessed_ns: 1_500_000_000_000_000_007, modified_ns: u64::MAX - 1 };
    let reply = vfs.ask(b"", times.message());
    // The request is of the clock of `sys`, which has whole seconds here.
    let expected = (0o100_711 | 1 << 32, 8, 1_500_000_000_000_000_007, NOW.seconds as u64 * 1_000_000_000, now_ns);
    assert_eq!(SetTimes::results(&reply), Ok(expected));
    assert_eq!(vfs.result(&[0; 144], Stat { node: file, grant: GRANT }.message()), Ok(0));
    let stat = vfs.buffer.borrow().clone();
    let word = |offset: usize| u64::from_le_bytes(stat[offset..offset + 8].try_into().unwrap());
    assert_eq!((word(8), word(16), word(24)), (file, 1, 0o100_711 | 1000 << 32));
    assert_eq!((word(32), word(40), word(48), word(56), word(64)), (7, 0, 5, 4096, 8));
    assert_eq!((word(72), word(80)), (1_500_000_000, 7));
    assert_eq!((word(88), word(104)), (NOW.seconds as u64, NOW.seconds as u64));
    assert_eq!(vfs.result(&[0; 120], StatFs { node: file, grant: GRANT }.message()), Ok(0));
    let statfs = vfs.buffer.borrow().clone();
    assert_eq!(u64::from_le_bytes(statfs[..8].try_into().unwrap()), 0xef53);
    assert_eq!(u64::from_le_bytes(statfs[64..72].try_into().unwrap()), 255);
}

#[test]
fn bad_requests_are_refused() {
    let mut vfs = vfs(one_image());
    let root = vfs.root(0);
    assert_eq!(vfs.mount(0, 0).result(), Err(Errno::EBUSY));
    assert_eq!(vfs.mount(9, 0).result(), Err(Errno::ENXIO));
    assert_eq!(vfs.lookup(root, ""), Err(Errno::ENOENT));
    assert_eq!(vfs.lookup(root, "a/b"), Err(Errno::EINVAL));
    assert_eq!(vfs.lookup(root, &"n".repeat(256)), Err(Errno::ENAMETOOLONG));
    assert_eq!(vfs.lookup(root | 5 << 56, "x"), Err(Errno::ESTALE));
    assert_eq!(vfs.lookup(12345, "x"), Err(Errno::ESTALE));
    let short = Lookup { directory: root, grant: GRANT, bytes: 200, room: 0 };
    assert_eq!(vfs.result(b"x", short.message()), Err(Errno::EFAULT));
    let stranger = Lookup { directory: root, grant: GrantId::new(1, 1), bytes: 1, room: 0 };
    assert_eq!(vfs.result(b"x", stranger.message()), Err(Errno::EPERM));
    let huge = Read { node: root, grant: GRANT, position: u64::MAX, bytes: u64::MAX, kept: false };
    assert_eq!(vfs.result(b"", huge.message()), Err(Errno::EISDIR));
    let long =
        Rename { old_directory: root, new_directory: root, grant: GRANT, old_bytes: u64::MAX, new_bytes: 2, flags: 0 };
    assert_eq!(vfs.result(b"", long.message()), Err(Errno::ENAMETOOLONG));
    let odd = Allocate { node: root, offset: 0, bytes: 1, mode: 4 };
    assert_eq!(vfs.result(b"", odd.message()), Err(Errno::EINVAL));
    let node = Put { node: root, count: u64::MAX };
    assert_eq!(vfs.result(b"", node.message()), Err(Errno::EINVAL));
    assert_eq!(vfs.result(b"", Message::new(0x6_0063)), Err(Errno::ENOSYS));
    let mut foreign = Sync {}.message();
    foreign.source = Endpoint::new(40, 1);
    assert_eq!(vfs.server.answer(&foreign).map(|reply| reply.result()), Some(Err(Errno::EPERM)));
}

#[test]
fn a_failing_buffer_gives_efault_or_a_short_count() {
    let mut vfs = vfs(one_image());
    let root = vfs.root(0);
    let file = vfs.create(root, "f", 0o100_644).unwrap();
    let long = Write { node: file, grant: GRANT, position: 0, bytes: 10_000, ids: 0, written_ns: 0 };
    assert_eq!(vfs.result(&[1; 5000], long.message()), Ok(4096));
    assert_eq!(vfs.result(&[1; 100], long.message()), Err(Errno::EFAULT));
    let read = Read { node: file, grant: GRANT, position: 0, bytes: 4096, kept: false };
    assert_eq!(vfs.result(&[0; 100], read.message()), Err(Errno::EFAULT));
}

#[test]
fn a_range_is_copied_within_the_file_system() {
    let mut vfs = vfs(one_image());
    let root = vfs.root(0);
    let (from, to) = (vfs.create(root, "from", 0o100_644).unwrap(), vfs.create(root, "to", 0o100_644).unwrap());
    let data: Vec<u8> = (0..200_000).map(|n| (n * 7 % 251) as u8).collect();
    vfs.write(from, 0, &data).unwrap();
    let mut copy = |from, from_position, to, to_position, bytes| {
        let reply = vfs.ask(b"", CopyRange { from, from_position, to, to_position, bytes, ids: 0 }.message());
        reply.result().map(|moved| (moved, CopyRange::results(&reply).unwrap().0))
    };
    assert_eq!(copy(from, 100, to, 50, 150_000), Ok((150_000, 150_050)));
    assert_eq!(copy(from, 190_000, to, 300_000, 1 << 40), Ok((10_000, 310_000)), "up to the end");
    assert_eq!(copy(from, 200_000, to, 0, 10), Ok((0, 310_000)));
    assert_eq!(copy(from, u64::MAX, to, 0, 10), Ok((0, 310_000)));
    assert_eq!(copy(from, 0, to, u64::MAX, 10), Err(Errno::EFBIG));
    assert_eq!(copy(root, 0, to, 0, 10), Err(Errno::EISDIR));
    assert_eq!(copy(from, 0, to | 1 << 56, 0, 10), Err(Errno::EXDEV));
    assert_eq!(vfs.read(to, 0, 150_050).unwrap(), [&[0; 50], &data[100..150_100]].concat());
    assert_eq!(vfs.read(to, 300_000, 20_000).unwrap(), data[190_000..]);
}

#[test]
fn writes_of_users_leave_the_reserved_blocks_alone() {
    let scratch = Scratch::new();
    scratch.image(1024, &["-b", "1024", "-m", "30"]);
    let mut vfs = vfs(Rc::new(vec![scratch]));
    let root = vfs.root(0);
    let file = vfs.create(root, "f", 0o100_666).unwrap();
    let write =
        |ids, position| Write { node: file, grant: GRANT, position, bytes: 800_000, ids, written_ns: 0 }.message();
    let user = vfs.result(&[1; 800_000], write(1000 | 100 << 32, 0)).unwrap();
    assert!(user < 800_000, "{user} bytes");
    assert_eq!(vfs.result(&[1; 800_000], write(1000 | 100 << 32, user)), Err(Errno::ENOSPC));
    assert!(vfs.result(&[1; 800_000], write(0, user)).unwrap() > 200_000);
}

#[test]
fn two_volumes_are_kept_apart() {
    let images: Vec<_> = (0..2).map(|_| Scratch::new()).collect();
    images.iter().for_each(|scratch| drop(scratch.image(1024, &[])));
    let mut vfs = vfs(Rc::new(images));
    let (first, second) = (vfs.root(0), vfs.root(1));
    assert_ne!(first, second);
    let file = vfs.create(second, "f", 0o100_644).unwrap();
    assert_eq!(vfs.write(file, 0, b"x"), Ok((1, 1)));
    assert_eq!(vfs.lookup(first, "f"), Err(Errno::ENOENT));
    let across = Link { directory: first, grant: GRANT, bytes: 1, node: file };
    assert_eq!(vfs.result(b"g", across.message()), Err(Errno::EXDEV));
    let across =
        Rename { old_directory: second, new_directory: first, grant: GRANT, old_bytes: 1, new_bytes: 1, flags: 0 };
    assert_eq!(vfs.result(b"fg", across.message()), Err(Errno::EXDEV));
    assert_eq!(vfs.result(b"", Unmount { node: first, force: false }.message()), Ok(0));
    assert_eq!(vfs.lookup(second, "f").unwrap().0, file);
}

#[test]
fn a_name_in_the_request_is_checked_like_a_granted_one() {
    let mut vfs = vfs(one_image());
    let root = vfs.root(0);
    let mut create = |(name, bytes): (u64, u64)| {
        let request = Create { directory: root, name, bytes, mode: 0o100_644, ids: 0, device: 0 };
        Create::results(&vfs.ask(b"", request.message())).map(|results| results.0)
    };
    for (text, expected) in [(&b"a/b"[..], Err(Errno::EINVAL)), (b"a\0b", Err(Errno::EINVAL))] {
        assert_eq!(create(ShortName::new(text).unwrap().words()), expected);
    }
    // What is no length of a short name is one of a granted name.
    assert_eq!([16 << 56, u64::MAX].map(|bytes| create((0x61, bytes))), [Err(Errno::ENAMETOOLONG); 2]);
    let made = create(ShortName::new(b"fifteen bytes l").unwrap().words());
    assert_eq!(vfs.lookup(root, "fifteen bytes l").map(|found| found.0), made);
}

#[test]
fn a_new_vfs_mounts_again_what_the_old_one_left() {
    let images = one_image();
    let mut vfs = vfs(images.clone());
    let root = vfs.root(0);
    let file = vfs.create(root, "f", 0o100_644).unwrap();
    vfs.write(file, 0, &[1; 9000]).unwrap();
    let unlink =
        Unlink { directory: root, name: GRANT.to_word(), bytes: 1, directory_wanted: false, node: root, uses: 0 };
    assert_eq!(vfs.result(b"f", unlink.message()), Ok(0));
    vfs.endpoint = SUCCESSOR;
    let root = vfs.root(0);
    assert_eq!(vfs.lookup(root, "f"), Err(Errno::ENOENT));
    assert_eq!(vfs.result(b"", Unmount { node: root, force: false }.message()), Ok(0));
    check(&images[0].path("image"));
    assert!(is_marked_clean(&images[0].path("image")));
}

#[test]
fn a_mount_tells_that_it_is_read_only_when_it_was_not_asked() {
    let images = one_image();
    let image = images[0].path("image");
    let mut bytes = std::fs::read(&image).unwrap();
    bytes[1024 + 101] |= 4;
    std::fs::write(&image, bytes).unwrap();
    let mut vfs = vfs(images);
    assert_eq!(vfs.mount(0, 0).result(), Ok(MOUNTED_READ_ONLY));
}

/// A request of any kind about nodes that may exist, with lengths and positions at the borders.
fn random_request(random: &mut Random, root: u64) -> Message {
    let number = |random: &mut Random| match random.below(8) {
        0 => u64::MAX,
        1 => random.next(),
        2 => 1 << random.below(63),
        3 => 4096,
        4 => root,
        _ => random.below(40),
    };
    let mut request = Message::new(Sync::LABEL & !0xffff | random.below(22) as u32);
    for word in &mut request.words {
        *word = number(random);
    }
    let position = 1 + random.below(2) as usize;
    request.words[position] = if random.below(4) == 0 { request.words[position] } else { GRANT.0.into() };
    request
}

#[test]
fn random_requests_never_stop_the_server_or_break_the_volume() {
    let images = one_image();
    let mut vfs = vfs(images.clone());
    let root = vfs.root(0);
    for name in ["a", "b", "c"] {
        let file = vfs.create(root, name, 0o100_644).unwrap();
        vfs.write(file, 0, &[7; 9000]).unwrap();
    }
    let mut random = Random::new(99);
    let mut answered = 0;
    for _ in 0..50_000 {
        let content: Vec<u8> = (0..random.below(300)).map(|_| b"abcxyz./"[random.below(7) as usize]).collect();
        let request = random_request(&mut random, root);
        if request.label == Mount::LABEL || request.label == Unmount::LABEL {
            continue;
        }
        answered += u32::from(vfs.result(&content, request).is_ok());
    }
    assert!(answered > 1000, "{answered} requests made sense");
    assert_eq!(vfs.result(b"", Unmount { node: root, force: true }.message()), Ok(0));
    check(&images[0].path("image"));
}
