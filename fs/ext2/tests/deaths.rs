//! The process is killed between any two ordered stores into its preserved memory, in the middle of every kind of request. A successor goes on
//! with that memory and gets the request again. What then is on the disk, what is in use, and what was answered must be what it is
//! without the death; e2fsck and a model in memory tell. The file is long because every kind of request is there.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::grants::{Buffer, Fake, GRANT, VFS, name_words};
use crate::common::model::{Content, Model};
use crate::common::{FileDevice, Random, Scratch, amount, check, mount, options, words};
use abi::fs::{
    ALLOCATE_FILL, ALLOCATE_PUNCH, ALLOCATE_ZERO, Allocate, ChMod, CopyRange, Create, GetDents, GetXattr, Link, Lookup,
    Mount, Put, RENAME_EXCHANGE, Read, RemoveXattr, Rename, SetUses, SetXattr, Symlink, Sync, Truncate, Unlink,
    Unmount, Write,
};
use abi::{Errno, Message, Word};
use ext2::{Ext2, Memo, Options};
use fs::file_system::FileSystem;
use fs::preserve::uses::Uses;
use fs::preserve::{Layout, Preserved, VolumeMemory};
use fs::server::{MountRequest, Server};
use sys::StartKind;
use sys::keep::{Keep, Parts};

const LAYOUT: Layout = Layout { volumes: 1, cache_bytes: 96 * 1024 };
const UNLIMITED: u64 = u64::MAX;
/// Deaths after which e2fsck looks at the disk.
const CHECKED: u64 = 12;

const PLAIN: &[&str] = &["-b", "1024", "-N", "64"];
const JOURNALED: &[&str] = &["-b", "1024", "-N", "64", "-j", "-J", "size=1"];

/// Everything that outlives the process.
struct World {
    scratch: Scratch,
    memory: &'static [AtomicU64],
    buffer: Buffer,
    next_tag: u64,
}

/// A moment of the world.
#[derive(Clone)]
struct Moment {
    memory: Vec<u64>,
    image: Vec<u8>,
}

/// A request: what the granted buffer holds, and the message.
type Ask<'a> = (&'a [u8], Message);

impl World {
    fn new(arguments: &[&str]) -> Self {
        let scratch = Scratch::new();
        scratch.image(4096, arguments);
        let buffer = Buffer::default();
        sys::host::install(Fake(buffer.clone()));
        let world = World { scratch, memory: words(LAYOUT), buffer, next_tag: 0x100 };
        drop(world.start(StartKind::Fresh, UNLIMITED));
        world
    }

    fn image(&self) -> PathBuf {
        self.scratch.path("image")
    }

    /// A process that is killed after so many stores, and what tells how many are left.
    fn start(
        &self,
        kind: StartKind,
        stores: u64,
    ) -> (
        Parts,
        Server<Ext2<FileDevice>, impl FnMut(&MountRequest, Option<VolumeMemory>) -> Result<Ext2<FileDevice>, Errno>>,
    ) {
        let parts = Parts::new(Keep::simulated(self.memory, UNLIMITED));
        parts.kill_after(stores);
        let image = self.image();
        let mount = move |request: &MountRequest, memory: Option<VolumeMemory>| {
            let device = FileDevice::open(&image);
            let options = Options { read_only: request.read_only, ..options() };
            match request.memo {
                None => Ext2::mount(device, options, memory.unwrap()),
                Some(memo) => Ext2::resume(device, options, memory.unwrap(), Memo::from_words(memo).unwrap()),
            }
        };
        let server = Server::resuming(mount, Preserved::open_parts(parts.clone(), LAYOUT, kind));
        (parts, server)
    }

    fn save(&self) -> Moment {
        let memory = self.memory.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        Moment { memory, image: std::fs::read(self.image()).unwrap() }
    }

    fn restore(&self, moment: &Moment) {
        for (word, &value) in self.memory.iter().zip(&moment.memory) {
            word.store(value, Ordering::Relaxed);
        }
        std::fs::write(self.image(), &moment.image).unwrap();
    }

    /// Lets a process that lives for `stores` answer the request. → the reply and what the buffer holds then, and the stores it took;
    /// `None` when it died.
    fn ask(&self, ask: Ask, tag: u64, stores: u64) -> Option<(Message, Vec<u8>, u64)> {
        let answer = || {
            let (parts, mut server) = self.start(StartKind::Restarted, stores);
            *self.buffer.borrow_mut() = ask.0.to_vec();
            let mut request = ask.1;
            request.source = VFS;
            request.words[6] = tag;
            let reply = server.answer(&request).expect("the device does not let requests wait");
            (reply, self.buffer.borrow().clone(), stores - parts.points_left())
        };
        catch_unwind(AssertUnwindSafe(answer)).ok()
    }

    /// Asks without deaths, after having asked with all of them.
    fn survive(&mut self, what: &str, ask: Ask, model: &Model) -> Message {
        self.next_tag += 1;
        let tag = self.next_tag;
        let before = self.save();
        let (reply, content, stores) = self.ask(ask, tag, UNLIMITED).unwrap();
        let after = self.save();
        let uses = self.uses();
        // Every death of a short request, a sample of a longer one.
        let deaths = amount(30, 150);
        let step = (stores / deaths).max(1);
        let mut random = Random::new(tag);
        for (count, death) in (0..stores).step_by(step as usize).enumerate() {
            self.restore(&before);
            let death = death + random.below(step);
            let died = self.ask(ask, tag, death).is_none();
            assert!(died || death >= stores, "{what} did not die after {death} of {stores} stores");
            if count % 4 == 3 {
                // The successor dies while it opens the memory.
                let opened =
                    catch_unwind(AssertUnwindSafe(|| drop(self.start(StartKind::Restarted, random.below(20)))));
                drop(opened);
            }
            let (again, content_again, _) = self.ask(ask, tag, UNLIMITED).unwrap();
            assert_eq!(again, reply, "{what}, killed after {death} of {stores} stores");
            assert!(content_again == content, "{what}, killed after {death} of {stores} stores: another content");
            assert_eq!(self.uses(), uses, "{what}, killed after {death} of {stores} stores");
            if (count as u64).is_multiple_of((stores.min(deaths) / CHECKED).max(1)) {
                self.look(what, death, model);
            }
        }
        self.restore(&after);
        reply
    }

    /// Uses of nodes.
    fn uses(&self) -> BTreeMap<u32, u32> {
        let keep = Keep::simulated(self.memory, UNLIMITED);
        let preserved = Preserved::open(keep, LAYOUT, StartKind::Restarted);
        let uses = Uses::open(preserved.volume(0).unwrap().uses, preserved.undo.clone());
        uses.nodes().collect()
    }

    /// Ends the use of the volume and looks at what is on the disk.
    fn look(&self, what: &str, death: u64, model: &Model) {
        let unmount = Unmount { node: 2, force: true }.message();
        let (reply, ..) = self.ask((b"", unmount), 1, UNLIMITED).unwrap();
        assert!([Ok(0), Err(Errno::ESTALE)].contains(&reply.result()), "{what}, killed after {death}: {reply:?}");
        check(&self.image());
        let mut volume = mount(&self.image());
        let root = volume.root();
        model.compare(&mut volume, 0, root);
    }
}

/// Deaths are many, and no news.
fn silence_deaths() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or_default();
        if text != "killed here" {
            usual(info);
        }
    }));
}

fn name(text: &str) -> u64 {
    text.len() as u64
}

/// A world in which a file system without journal is mounted, and its model.
fn mounted() -> (World, Model, u64) {
    mounted_of(PLAIN)
}

/// A world in which the file system that mke2fs makes with these arguments is mounted, and its model.
fn mounted_of(arguments: &[&str]) -> (World, Model, u64) {
    silence_deaths();
    let mut world = World::new(arguments);
    let mut model = Model::new();
    model.nodes[0].links = 3;
    let mount = Mount { grant: GRANT, bytes: 4, minor: 0, flags: 0 }.message();
    let reply = world.survive("mount", (b"disk", mount), &model);
    let root = Mount::results(&reply).unwrap().0;
    (world, model, root)
}

impl World {
    fn make(&mut self, model: &mut Model, dir: (usize, u64), text: &str, mode: u64) -> (usize, u64) {
        let content = if mode >> 12 == 4 { Content::Directory(BTreeMap::new()) } else { Content::File(Vec::new()) };
        let node = model.add(dir.0, text.as_bytes(), content).unwrap();
        let ids = 1000 | 100 << 32;
        let (name, bytes) = name_words(text);
        let request = Create { directory: dir.1, name, bytes, mode, ids, device: 0 }.message();
        let reply = self.survive("create", (text.as_bytes(), request), model);
        (node, Create::results(&reply).unwrap().0)
    }

    fn write(&mut self, model: &mut Model, file: (usize, u64), position: u64, data: &[u8]) {
        model.write(file.0, position as usize, data);
        let request =
            Write { node: file.1, grant: GRANT, position, bytes: data.len() as u64, ids: 0, written_ns: 0 }.message();
        let reply = self.survive("write", (data, request), model);
        assert_eq!(reply.result(), Ok(data.len() as u64));
    }

    fn done(&mut self, model: &Model, what: &str, content: &[u8], request: Message) {
        assert_eq!(self.survive(what, (content, request), model).result(), Ok(0), "{what}");
    }

    fn unlink(&mut self, model: &mut Model, dir: (usize, u64), text: &str) {
        self.unlink_unused(model, dir, text, dir.1, 0);
    }

    /// Unlinks a name of a node, of which vfs gives so many uses back.
    fn unlink_unused(&mut self, model: &mut Model, dir: (usize, u64), text: &str, node: u64, uses: u64) {
        model.unlink(dir.0, text.as_bytes()).unwrap();
        let ((name, bytes), directory_wanted) = (name_words(text), false);
        let request = Unlink { directory: dir.1, name, bytes, directory_wanted, node, uses };
        self.done(model, "unlink", text.as_bytes(), request.message());
    }
}

#[test]
fn names_come_and_go_once() {
    let_names_come_and_go(PLAIN);
}

#[test]
fn names_come_and_go_once_with_a_journal() {
    let_names_come_and_go(JOURNALED);
}

fn let_names_come_and_go(arguments: &[&str]) {
    let (mut world, mut model, root) = mounted_of(arguments);
    let root = (0, root);
    let file = world.make(&mut model, root, "file", 0o100_644);
    let dir = world.make(&mut model, root, "dir", 0o40_755);
    model.link(dir.0, b"second", file.0).unwrap();
    let link = Link { directory: dir.1, grant: GRANT, bytes: 6, node: file.1 };
    world.done(&model, "link", b"second", link.message());
    model.add(root.0, b"symbolic", Content::Link(vec![b't'; 200])).unwrap();
    let symlink = Symlink { directory: root.1, grant: GRANT, name_bytes: 8, target_bytes: 200, ids: 0 };
    world.done(&model, "symlink", &[&b"symbolic"[..], &[b't'; 200]].concat(), symlink.message());
    world.make(&mut model, dir, "inner", 0o40_755);
    model.rename(root.0, b"dir", root.0, b"moved").unwrap();
    let rename =
        Rename { old_directory: root.1, new_directory: root.1, grant: GRANT, old_bytes: 3, new_bytes: 5, flags: 0 };
    world.done(&model, "rename", b"dirmoved", rename.message());
    let other = world.make(&mut model, root, "other", 0o100_600);
    world.write(&mut model, other, 0, &[5; 3000]);
    model.rename(root.0, b"file", root.0, b"other").unwrap();
    let rename =
        Rename { old_directory: root.1, new_directory: root.1, grant: GRANT, old_bytes: 4, new_bytes: 5, flags: 0 };
    world.done(&model, "rename over a file", b"fileother", rename.message());
    world.done(&model, "put of what has no name", b"", Put { node: other.1, count: 1 }.message());
    let lookup = Lookup { directory: root.1, grant: GRANT, bytes: 5, room: 0 };
    let reply = world.survive("lookup", (b"other", lookup.message()), &model);
    assert_eq!(Lookup::results(&reply).unwrap().0, file.1);
    world.done(&model, "sync", b"", Sync {}.message());
    world.done(&model, "chmod", b"", ChMod { node: file.1, mode: 0o600 }.message());
    let listing = GetDents { node: root.1, grant: GRANT, position: 0, bytes: 500 };
    assert!(world.survive("getdents", (&[0; 500], listing.message()), &model).result().unwrap() > 0);
    world.unlink(&mut model, root, "other");
    world.unlink(&mut model, dir, "second");
    model.remove_dir(dir.0, b"inner").unwrap();
    let remove =
        Unlink { directory: dir.1, name: GRANT.to_word(), bytes: 5, directory_wanted: true, node: dir.1, uses: 0 };
    world.done(&model, "rmdir", b"inner", remove.message());
    world.done(&model, "put of two uses", b"", Put { node: file.1, count: 2 }.message());
    world.done(&model, "unmount", b"", Unmount { node: root.1, force: true }.message());
}

#[test]
fn a_file_without_a_name_is_made_once_and_gets_one_once() {
    make_files_without_names(PLAIN);
}

#[test]
fn a_file_without_a_name_is_made_once_with_a_journal() {
    make_files_without_names(JOURNALED);
}

fn make_files_without_names(arguments: &[&str]) {
    let (mut world, mut model, root) = mounted_of(arguments);
    let create = Create { directory: root, name: GRANT.to_word(), bytes: 0, mode: 0o100_600, ids: 0, device: 0 };
    let nodes = [(); 2].map(|()| {
        let reply = world.survive("create without a name", (b"", create.message()), &model);
        Create::results(&reply).unwrap().0
    });
    for node in nodes {
        let write = Write { node, grant: GRANT, position: 0, bytes: 5000, ids: 0, written_ns: 0 }.message();
        assert_eq!(world.survive("write", (&[3; 5000], write), &model).result(), Ok(5000));
    }
    world.done(&model, "sync", b"", Sync {}.message());
    let named = model.add(0, b"named", Content::File(Vec::new())).unwrap();
    model.write(named, 0, &[3; 5000]);
    let link = Link { directory: root, grant: GRANT, bytes: 5, node: nodes[0] };
    world.done(&model, "first link", b"named", link.message());
    world.done(&model, "put of what has got a name", b"", Put { node: nodes[0], count: 1 }.message());
    world.done(&model, "put of what has none", b"", Put { node: nodes[1], count: 1 }.message());
    world.done(&model, "unmount", b"", Unmount { node: root, force: false }.message());
}

#[test]
fn uses_end_once_with_the_name() {
    end_uses_with_names(PLAIN);
}

#[test]
fn uses_end_once_with_the_name_with_a_journal() {
    end_uses_with_names(JOURNALED);
}

fn end_uses_with_names(arguments: &[&str]) {
    let (mut world, mut model, root) = mounted_of(arguments);
    let root = (0, root);
    let unused = world.uses();
    let small = world.make(&mut model, root, "small", 0o100_644);
    world.write(&mut model, small, 0, &[1; 3000]);
    world.unlink_unused(&mut model, root, "small", small.1, 1);
    let large = world.make(&mut model, root, "large", 0o100_644);
    (0..3).for_each(|part| world.write(&mut model, large, part * 200_000, &[2; 200_000]));
    world.unlink_unused(&mut model, root, "large", large.1, 1);
    assert_eq!(world.uses(), unused, "both are freed");

    let held = world.make(&mut model, root, "held", 0o100_644);
    let lookup = Lookup { directory: root.1, grant: GRANT, bytes: 4, room: 0 };
    assert!(world.survive("lookup", (b"held", lookup.message()), &model).result().is_ok());
    let absent =
        Unlink { directory: root.1, name: GRANT.to_word(), bytes: 4, directory_wanted: false, node: held.1, uses: 2 };
    assert_eq!(world.survive("unlink of no name", (b"none", absent.message()), &model).result(), Err(Errno::ENOENT));
    world.unlink_unused(&mut model, root, "held", held.1, 1);
    let write = Write { node: held.1, grant: GRANT, position: 0, bytes: 3000, ids: 0, written_ns: 0 }.message();
    assert_eq!(world.survive("write", (&[3; 3000], write), &model).result(), Ok(3000), "it has a user left");
    world.done(&model, "put of the last use", b"", Put { node: held.1, count: 1 }.message());
    assert_eq!(world.uses(), unused);
    world.done(&model, "unmount", b"", Unmount { node: root.1, force: true }.message());
}

#[test]
fn names_are_swapped_once() {
    let (mut world, mut model, root) = mounted();
    let root = (0, root);
    let dir = world.make(&mut model, root, "dir", 0o40_755);
    let inner = world.make(&mut model, dir, "in", 0o40_755);
    let file = world.make(&mut model, root, "file", 0o100_644);
    world.write(&mut model, file, 0, &[5; 3000]);
    world.make(&mut model, inner, "x", 0o100_644);
    // In one sector, then between directories: a file for a directory, and back.
    for (first, second, names) in
        [(root, root, ["dir", "file"]), (root, dir, ["dir", "in"]), (dir, root, ["in", "dir"])]
    {
        model.exchange(first.0, names[0].as_bytes(), second.0, names[1].as_bytes()).unwrap();
        let [old_bytes, new_bytes] = names.map(name);
        let (old_directory, new_directory, flags) = (first.1, second.1, RENAME_EXCHANGE);
        let exchange = Rename { old_directory, new_directory, grant: GRANT, old_bytes, new_bytes, flags };
        world.done(&model, "exchange", names.concat().as_bytes(), exchange.message());
    }
}

#[test]
fn attributes_are_set_and_removed_once() {
    let (mut world, mut model, root) = mounted();
    let file = world.make(&mut model, (0, root), "file", 0o100_644);
    let set = |name: &str, value: &str, flags| {
        let (name_bytes, value_bytes) = (name.len() as u64, value.len() as u64);
        SetXattr { node: file.1, grant: GRANT, name_bytes, value_bytes, flags, ids: 0 }.message()
    };
    let (create, replace) = (1, 2);
    for (name, value, flags) in
        [("user.a", "one", create), ("user.b", "two", create), ("user.a", "longer value", replace), ("user.b", "", 0)]
    {
        world.done(&model, "set attribute", format!("{name}{value}").as_bytes(), set(name, value, flags));
    }
    for name in ["user.b", "user.a"] {
        let remove = RemoveXattr { node: file.1, grant: GRANT, bytes: name.len() as u64 };
        world.done(&model, "remove attribute", name.as_bytes(), remove.message());
        let get = GetXattr { node: file.1, grant: GRANT, name_bytes: 6 }.message();
        let value = world.survive("get attribute", (b"user.a-room for the value-", get), &model).result();
        assert_eq!(value, if name == "user.b" { Ok(12) } else { Err(Errno::ENODATA) });
    }
    world.done(&model, "set attribute", b"user.clast", set("user.c", "last", create));
    world.done(&model, "put", b"", Put { node: file.1, count: 1 }.message());
    world.unlink(&mut model, (0, root), "file");
    world.done(&model, "unmount", b"", Unmount { node: root, force: false }.message());
}

#[test]
fn data_is_written_once_and_cut_off_whole() {
    let (mut world, mut model, root) = mounted();
    let root = (0, root);
    let mut random = Random::new(1);
    let file = world.make(&mut model, root, "file", 0o100_644);
    world.write(&mut model, file, 0, &random.bytes(100));
    world.write(&mut model, file, 100, &random.bytes(5000));
    world.write(&mut model, file, 1000, &random.bytes(3000));
    world.write(&mut model, file, 300_000, &random.bytes(3000));
    let read = Read { node: file.1, grant: GRANT, position: 50, bytes: 6000, kept: false };
    assert_eq!(world.survive("read", (&[0; 6000], read.message()), &model).result(), Ok(6000));
    world.done(&model, "sync", b"", Sync {}.message());
    for (offset, bytes, mode) in
        [(500, 700, ALLOCATE_ZERO), (3000, 298_000, ALLOCATE_PUNCH), (2000, 20_000, ALLOCATE_FILL)]
    {
        if mode != ALLOCATE_FILL {
            model.data_mut(file.0)[offset..offset + bytes].fill(0);
        }
        let (offset, bytes) = (offset as u64, bytes as u64);
        world.done(&model, "allocate", b"", Allocate { node: file.1, offset, bytes, mode }.message());
    }
    for size in [300_100, 4500, 9000, 0] {
        model.data_mut(file.0).resize(size, 0);
        world.done(&model, "truncate", b"", Truncate { node: file.1, size: size as u64 }.message());
    }
}

#[test]
fn long_requests_are_whole_in_each_part() {
    make_long_requests(PLAIN);
}

#[test]
fn long_requests_are_whole_in_each_part_with_a_journal() {
    make_long_requests(JOURNALED);
}

fn make_long_requests(arguments: &[&str]) {
    let (mut world, mut model, root) = mounted_of(arguments);
    let root = (0, root);
    let mut random = Random::new(2);
    let file = world.make(&mut model, root, "file", 0o100_644);
    world.write(&mut model, file, 500, &random.bytes(700_000));
    let read = Read { node: file.1, grant: GRANT, position: 0, bytes: 701_000, kept: false };
    assert_eq!(world.survive("read", (&[0; 701_000], read.message()), &model).result(), Ok(700_500));
    world.write(&mut model, file, 100_000, &random.bytes(650_000));
    model.data_mut(file.0)[1000..640_000].fill(0);
    let punch = Allocate { node: file.1, offset: 1000, bytes: 639_000, mode: ALLOCATE_PUNCH };
    world.done(&model, "punch", b"", punch.message());
    model.data_mut(file.0).truncate(700);
    world.done(&model, "truncate", b"", Truncate { node: file.1, size: 700 }.message());
    world.write(&mut model, file, 500, &random.bytes(650_000));
    let copy = world.make(&mut model, root, "copy", 0o100_644);
    let content = model.data_mut(file.0)[300..640_300].to_vec();
    model.write(copy.0, 100, &content);
    let (from, to, bytes) = (file.1, copy.1, 640_000);
    let request = CopyRange { from, from_position: 300, to, to_position: 100, bytes, ids: 0 }.message();
    assert_eq!(world.survive("copy", (b"", request), &model).result(), Ok(bytes));
    world.done(&model, "put", b"", Put { node: copy.1, count: 1 }.message());
    world.unlink(&mut model, root, "copy");
    world.unlink(&mut model, root, "file");
    world.done(&model, "put of a large file without name", b"", Put { node: file.1, count: 1 }.message());
    let file = world.make(&mut model, root, "file", 0o100_644);
    world.write(&mut model, file, 0, &random.bytes(600_000));
    world.done(&model, "put", b"", Put { node: file.1, count: 1 }.message());
    world.unlink(&mut model, root, "file");
    world.done(&model, "unmount", b"", Unmount { node: root.1, force: false }.message());
}

#[test]
fn uses_are_set_anew_and_a_reply_given_again_counts() {
    let (mut world, mut model, root) = mounted();
    let root = (0, root);
    let kept = world.make(&mut model, root, "kept", 0o100_644);
    let gone = world.make(&mut model, root, "gone", 0o100_644);
    world.write(&mut model, gone, 0, &[1; 20_000]);
    world.unlink(&mut model, root, "gone");
    let lookup = Lookup { directory: root.1, grant: GRANT, bytes: 4, room: 0 }.message();
    let before = world.survive("lookup", (b"kept", lookup), &model);
    let lookup_tag = world.next_tag;
    let uses: Vec<u8> = [(root.1, 1), (kept.1, 7)]
        .iter()
        .flat_map(|&(node, count): &(u64, u64)| [node, count])
        .flat_map(u64::to_le_bytes)
        .collect();
    world.done(&model, "set uses", &uses, SetUses { grant: GRANT, bytes: uses.len() as u64 }.message());
    assert_eq!(world.uses(), BTreeMap::from([(root.1 as u32, 1), (kept.1 as u32, 7)]));
    for _ in 0..2 {
        let (again, ..) = world.ask((b"kept", lookup), lookup_tag, UNLIMITED).unwrap();
        assert_eq!(again, before);
        assert_eq!(world.uses()[&(kept.1 as u32)], 8);
    }
}

#[test]
fn a_request_that_kills_twice_gets_eio_and_has_not_happened() {
    let (mut world, mut model, root) = mounted();
    let create =
        Create { directory: root, name: GRANT.to_word(), bytes: 1, mode: 0o100_644, ids: 0, device: 0 }.message();
    for _ in 0..2 {
        let before = world.save();
        let (_, _, stores) = world.ask((b"a", create), 0x77, UNLIMITED).unwrap();
        world.restore(&before);
        assert!(world.ask((b"a", create), 0x77, stores - 10).is_none());
    }
    let (reply, ..) = world.ask((b"a", create), 0x77, UNLIMITED).unwrap();
    assert_eq!(reply.result(), Err(Errno::EIO));
    world.make(&mut model, (0, root), "a", 0o100_644);
}

#[test]
fn what_is_preserved_is_not_used_after_a_fresh_start() {
    let (world, _, root) = mounted();
    drop(world.start(StartKind::Fresh, UNLIMITED));
    let lookup = Lookup { directory: root, grant: GRANT, bytes: 1, room: 0 }.message();
    let (reply, ..) = world.ask((b"a", lookup), 0x77, UNLIMITED).unwrap();
    assert_eq!(reply.result(), Err(Errno::ESTALE));
}
