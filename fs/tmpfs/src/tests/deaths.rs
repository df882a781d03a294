//! The process is killed between any two stores into its preserved memory, in the middle of every kind of request. A successor goes on with that memory
//! and gets the request again. What then is in the files, what is in use, and what was answered must be what it is without the death.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec::Vec;

use abi::fs::{
    ALLOCATE_FILL, ALLOCATE_PUNCH, ALLOCATE_ZERO, Allocate, ChMod, CopyRange, Create, GetDents, Link, Lookup, Mount,
    Put, RENAME_EXCHANGE, RENAME_WHITEOUT, Read, RemoveXattr, Rename, SetUses, SetXattr, Symlink, Truncate, Unlink,
    Unmount, Write,
};
use abi::{Errno, Message, Word};
use fs::file_system::FileSystem;
use fs::preserve::{Preserved, VolumeMemory};
use fs::server::{MountRequest, Server};
use sys::StartKind;
use sys::keep::{Keep, Parts};

use super::check::check;
use super::grants::{Buffer, Fake, GRANT, VFS, name_words};
use super::model::{Content, Model};
use super::{LAYOUT, OPTIONS, Random, amount, words};
use crate::inode::Inode;
use crate::plan::{PAGE, Plan};
use crate::volume::{Format, Tmpfs};

const PLAN: Plan = Plan::of_pages(450);
const UNLIMITED: u64 = u64::MAX;

/// Everything that outlives the process.
struct World {
    memory: &'static [AtomicU64],
    buffer: Buffer,
    next_tag: u64,
}

/// A request: what the granted buffer holds, and the message.
type Ask<'a> = (&'a [u8], Message);

impl World {
    fn new() -> Self {
        let buffer = Buffer::default();
        sys::host::install(Fake(buffer.clone()));
        let world = World { memory: words(PLAN), buffer, next_tag: 0x100 };
        drop(world.start(StartKind::Fresh, UNLIMITED));
        world
    }

    /// A process that is killed after so many stores, and what tells how many are left.
    fn start(
        &self,
        kind: StartKind,
        stores: u64,
    ) -> (Parts, Server<Tmpfs, impl FnMut(&MountRequest, Option<VolumeMemory>) -> Result<Tmpfs, Errno> + use<>>) {
        let parts = Parts::new(Keep::simulated(self.memory, UNLIMITED));
        parts.kill_after(stores);
        let of_mount = parts.clone();
        let mount = move |request: &MountRequest, memory: Option<VolumeMemory>| {
            let area = of_mount.lend(LAYOUT.bytes()..of_mount.len()).unwrap();
            let undo = memory.unwrap().cache.undo;
            match request.memo {
                None => Ok(Tmpfs::mount(area, 0, undo, OPTIONS, Format { plan: PLAN, identity: 1, seed: 5 })),
                Some(memo) => Tmpfs::resume(area, undo, OPTIONS, memo),
            }
        };
        (parts.clone(), Server::resuming(mount, Preserved::open_parts(parts, LAYOUT, kind)))
    }

    fn save(&self) -> Vec<u64> {
        self.memory.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    fn restore(&self, moment: &[u64]) {
        self.memory.iter().zip(moment).for_each(|(word, &value)| word.store(value, Ordering::Relaxed));
    }

    /// Lets a process that lives for `stores` answer the request. Returns the reply and what the buffer holds then, and the stores it took;
    /// `None` when it died.
    fn ask(&self, ask: Ask, tag: u64, stores: u64) -> Option<(Message, Vec<u8>, u64)> {
        let answer = || {
            let (parts, mut server) = self.start(StartKind::Restarted, stores);
            *self.buffer.borrow_mut() = ask.0.to_vec();
            let mut request = ask.1;
            request.source = VFS;
            request.words[6] = tag;
            let reply = server.answer(&request).expect("no request waits");
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
        let (after, uses) = (self.save(), self.uses());
        self.look(model);
        self.restore(&after);
        // Every death of a short request, a sample of a longer one.
        let step = (stores / amount(100, 2000)).max(1);
        let mut random = Random::new(tag);
        for (count, death) in (0..stores).step_by(step as usize).enumerate() {
            self.restore(&before);
            let death = death + random.below(step);
            let died = self.ask(ask, tag, death).is_none();
            assert!(died || death >= stores, "{what} did not die after {death} of {stores} stores");
            if count % 4 == 3 {
                // The successor dies while it opens the memory.
                let opened =
                    catch_unwind(AssertUnwindSafe(|| drop(self.start(StartKind::Restarted, random.below(40)))));
                drop(opened);
            }
            let (again, content_again, _) = self.ask(ask, tag, UNLIMITED).unwrap();
            assert_eq!(again, reply, "{what}, killed after {death} of {stores} stores");
            assert!(content_again == content, "{what}, killed after {death} of {stores} stores: another content");
            assert_eq!(self.uses(), uses, "{what}, killed after {death} of {stores} stores");
            self.look(model);
        }
        self.restore(&after);
        reply
    }

    /// Calls `act` with the volume, if there is one; what it does is not kept.
    fn with_volume<R: Default>(&self, act: impl FnOnce(&mut Tmpfs) -> R) -> R {
        let parts = Parts::new(Keep::simulated(self.memory, UNLIMITED));
        let preserved = Preserved::open_parts(parts.clone(), LAYOUT, StartKind::Restarted);
        let Some(record) = preserved.mount_place(0).unwrap().get() else { return R::default() };
        let area = parts.lend(LAYOUT.bytes()..parts.len()).unwrap();
        act(&mut Tmpfs::resume(area, preserved.undo.clone(), OPTIONS, record.memo).unwrap())
    }

    /// Uses of nodes.
    fn uses(&self) -> BTreeMap<u32, u32> {
        self.with_volume(|volume| {
            let memory = &volume.memory;
            let used = Inode::all(memory).map(|inode| (inode.number(), inode.uses(memory)));
            used.filter(|(_, uses)| *uses > 0).collect()
        })
    }

    /// Looks at everything in the volume.
    fn look(&self, model: &Model) {
        self.with_volume(|volume| {
            check(volume);
            let root = volume.root();
            model.compare(volume, 0, root);
        });
    }

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

    fn rename(&mut self, model: &Model, dirs: [(usize, u64); 2], names: [&str; 2], flags: u64) {
        let [old_directory, new_directory] = dirs.map(|dir| dir.1);
        let [old_bytes, new_bytes] = names.map(|name| name.len() as u64);
        let rename = Rename { old_directory, new_directory, grant: GRANT, old_bytes, new_bytes, flags };
        // A whiteout's owner follows.
        self.done(model, "rename", &[names.concat().as_bytes(), &[0; 8]].concat(), rename.message());
    }
}

/// Deaths are many, and no news.
fn silence_deaths() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(std::boxed::Box::new(move |info| {
        if info.payload_as_str().unwrap_or_default() != "killed here" {
            usual(info);
        }
    }));
}

/// A world in which a file system is mounted, its model, and its root.
fn mounted() -> (World, Model, (usize, u64)) {
    silence_deaths();
    let mut world = World::new();
    let model = Model::new();
    let mount = Mount { grant: GRANT, bytes: 0, minor: 0, flags: 0 }.message();
    let reply = world.survive("mount", (b"", mount), &model);
    let root = Mount::results(&reply).unwrap().0;
    (world, model, (0, root))
}

#[test]
fn names_come_and_go_once() {
    let (mut world, mut model, root) = mounted();
    let file = world.make(&mut model, root, "file", 0o100_644);
    let dir = world.make(&mut model, root, "dir", 0o40_755);
    let long = "a name that does not fit into its entry, but has a second part elsewhere";
    model.link(dir.0, long.as_bytes(), file.0).unwrap();
    let link = Link { directory: dir.1, grant: GRANT, bytes: long.len() as u64, node: file.1 };
    world.done(&model, "link", long.as_bytes(), link.message());
    for (name, bytes) in [("symbolic", 200), ("short", 20)] {
        let target = std::vec![b't'; bytes];
        model.add(root.0, name.as_bytes(), Content::Link(target.clone())).unwrap();
        let (name_bytes, target_bytes) = (name.len() as u64, bytes as u64);
        let symlink = Symlink { directory: root.1, grant: GRANT, name_bytes, target_bytes, ids: 0 };
        world.done(&model, "symlink", &[name.as_bytes(), &target].concat(), symlink.message());
    }
    world.make(&mut model, dir, "inner", 0o40_755);
    model.rename(root.0, b"dir", root.0, b"moved").unwrap();
    world.rename(&model, [root, root], ["dir", "moved"], 0);
    let other = world.make(&mut model, root, "other", 0o100_600);
    world.write(&mut model, other, 0, &[5; 3000]);
    model.rename(root.0, b"file", root.0, b"other").unwrap();
    world.rename(&model, [root, root], ["file", "other"], 0);
    world.done(&model, "put of what has no name", b"", Put { node: other.1, count: 1 }.message());
    let lookup = Lookup { directory: root.1, grant: GRANT, bytes: 5, room: 0 };
    let reply = world.survive("lookup", (b"other", lookup.message()), &model);
    assert_eq!(Lookup::results(&reply).unwrap().0, file.1);
    world.done(&model, "chmod", b"", ChMod { node: file.1, mode: 0o600 }.message());
    let listing = GetDents { node: root.1, grant: GRANT, position: 0, bytes: 500 };
    assert!(world.survive("getdents", (&[0; 500], listing.message()), &model).result().unwrap() > 0);
    world.unlink(&mut model, root, "other");
    world.unlink(&mut model, dir, long);
    world.unlink(&mut model, root, "symbolic");
    model.remove_dir(dir.0, b"inner").unwrap();
    let (directory, bytes) = (dir.1, 5);
    let remove = Unlink { directory, name: GRANT.to_word(), bytes, directory_wanted: true, node: directory, uses: 0 };
    world.done(&model, "rmdir", b"inner", remove.message());
    world.done(&model, "put of two uses", b"", Put { node: file.1, count: 2 }.message());
    world.done(&model, "unmount", b"", Unmount { node: root.1, force: true }.message());
}

#[test]
fn uses_end_once_with_the_name() {
    let (mut world, mut model, root) = mounted();
    let unused = world.uses();
    let file = world.make(&mut model, root, "file", 0o100_644);
    world.write(&mut model, file, 0, &[1; 9000]);
    world.unlink_unused(&mut model, root, "file", file.1, 1);
    assert_eq!(world.uses(), unused);
    let held = world.make(&mut model, root, "held", 0o100_644);
    let lookup = Lookup { directory: root.1, grant: GRANT, bytes: 4, room: 0 };
    assert!(world.survive("lookup", (b"held", lookup.message()), &model).result().is_ok());
    world.unlink_unused(&mut model, root, "held", held.1, 1);
    world.write(&mut model, held, 0, &[2; 3000]);
    world.done(&model, "put of the last use", b"", Put { node: held.1, count: 1 }.message());
    assert_eq!(world.uses(), unused);
}

#[test]
fn names_are_moved_and_swapped_once() {
    let (mut world, mut model, root) = mounted();
    let dir = world.make(&mut model, root, "dir", 0o40_755);
    let inner = world.make(&mut model, dir, "in", 0o40_755);
    let file = world.make(&mut model, root, "file", 0o100_644);
    world.make(&mut model, inner, "x", 0o100_644);
    for (first, second, names) in
        [(root, root, ["dir", "file"]), (root, dir, ["dir", "in"]), (dir, root, ["in", "dir"])]
    {
        model.exchange(first.0, names[0].as_bytes(), second.0, names[1].as_bytes()).unwrap();
        world.rename(&model, [first, second], names, RENAME_EXCHANGE);
    }
    // A file is called dir now. The model knows no whiteouts: it has an empty file instead.
    model.rename(dir.0, b"in", root.0, b"out").unwrap();
    world.rename(&model, [dir, root], ["in", "out"], 0);
    model.rename(root.0, b"out", dir.0, b"in").unwrap();
    world.rename(&model, [root, dir], ["out", "in"], 0);
    let over = world.make(&mut model, dir, "over", 0o40_755);
    world.done(&model, "put", b"", Put { node: over.1, count: 1 }.message());
    model.rename(dir.0, b"in", dir.0, b"over").unwrap();
    world.rename(&model, [dir, dir], ["in", "over"], 0);
    let whiteouts = |world: &mut World, names: [&str; 2]| {
        let before = world.save();
        let [old_bytes, new_bytes] = names.map(|name| name.len() as u64);
        let (old_directory, new_directory) = (root.1, dir.1);
        let rename =
            Rename { old_directory, new_directory, grant: GRANT, old_bytes, new_bytes, flags: RENAME_WHITEOUT };
        let content = [names.concat().as_bytes(), &[0; 8]].concat();
        for death in 0.. {
            world.restore(&before);
            let died = world.ask((&content, rename.message()), 0x999, death).is_none();
            let (reply, ..) = world.ask((&content, rename.message()), 0x999, UNLIMITED).unwrap();
            assert_eq!(reply.result(), Ok(0));
            world.with_volume(|volume| {
                check(volume);
                let white = volume.lookup(volume.root(), names[0].as_bytes()).unwrap();
                assert_eq!(volume.attributes(white).unwrap().mode, 0o20_000);
            });
            if !died {
                break;
            }
        }
    };
    let name = model.entries(root.0).iter().find(|(_, node)| **node == file.0);
    let name = name.map(|(name, _)| std::string::String::from_utf8(name.clone()).unwrap()).unwrap();
    whiteouts(&mut world, [&name, "new"]);
}

#[test]
fn a_file_without_a_name_is_made_once_and_gets_one_once() {
    let (mut world, mut model, root) = mounted();
    let create = Create { directory: root.1, name: GRANT.to_word(), bytes: 0, mode: 0o100_600, ids: 0, device: 0 };
    let nodes = [(); 2].map(|()| {
        let reply = world.survive("create without a name", (b"", create.message()), &model);
        Create::results(&reply).unwrap().0
    });
    for node in nodes {
        let write = Write { node, grant: GRANT, position: 0, bytes: 5000, ids: 0, written_ns: 0 }.message();
        assert_eq!(world.survive("write", (&[3; 5000], write), &model).result(), Ok(5000));
    }
    let named = model.add(0, b"named", Content::File(Vec::new())).unwrap();
    model.write(named, 0, &[3; 5000]);
    let link = Link { directory: root.1, grant: GRANT, bytes: 5, node: nodes[0] };
    world.done(&model, "first link", b"named", link.message());
    world.done(&model, "put of what has got a name", b"", Put { node: nodes[0], count: 1 }.message());
    world.done(&model, "put of what has none", b"", Put { node: nodes[1], count: 1 }.message());
    world.done(&model, "unmount", b"", Unmount { node: root.1, force: false }.message());
}

#[test]
fn attributes_are_set_and_removed_once() {
    let (mut world, mut model, root) = mounted();
    let file = world.make(&mut model, root, "file", 0o100_644);
    for (name, value) in [("user.a", "one"), ("user.b", "two"), ("user.a", "a longer value"), ("user.b", "")] {
        let (name_bytes, value_bytes) = (name.len() as u64, value.len() as u64);
        let set = SetXattr { node: file.1, grant: GRANT, name_bytes, value_bytes, flags: 0, ids: 0 };
        world.done(&model, "set attribute", std::format!("{name}{value}").as_bytes(), set.message());
    }
    for name in ["user.b", "user.a"] {
        let remove = RemoveXattr { node: file.1, grant: GRANT, bytes: 6 };
        world.done(&model, "remove attribute", name.as_bytes(), remove.message());
    }
}

#[test]
fn content_is_written_once_and_cut_off_whole() {
    let (mut world, mut model, root) = mounted();
    let mut random = Random::new(1);
    let file = world.make(&mut model, root, "file", 0o100_644);
    world.write(&mut model, file, 0, &random.bytes(100));
    world.write(&mut model, file, 100, &random.bytes(5000));
    world.write(&mut model, file, 1000, &random.bytes(3000));
    world.write(&mut model, file, 300_000, &random.bytes(3000));
    let read = Read { node: file.1, grant: GRANT, position: 50, bytes: 6000, kept: false };
    assert_eq!(world.survive("read", (&[0; 6000], read.message()), &model).result(), Ok(6000));
    for (offset, bytes, mode) in
        [(500, 700, ALLOCATE_ZERO), (3000, 298_000, ALLOCATE_PUNCH), (2000, 200_000, ALLOCATE_FILL)]
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
    let (mut world, mut model, root) = mounted();
    let mut random = Random::new(2);
    let file = world.make(&mut model, root, "file", 0o100_644);
    world.write(&mut model, file, 500, &random.bytes(700_000));
    model.data_mut(file.0)[1000..640_000].fill(0);
    let punch = Allocate { node: file.1, offset: 1000, bytes: 639_000, mode: ALLOCATE_PUNCH };
    world.done(&model, "punch", b"", punch.message());
    let copy = world.make(&mut model, root, "copy", 0o100_644);
    let content = model.data_mut(file.0)[300..640_300].to_vec();
    model.write(copy.0, 100, &content);
    let (from, to, bytes) = (file.1, copy.1, 640_000);
    let request = CopyRange { from, from_position: 300, to, to_position: 100, bytes, ids: 0 }.message();
    assert_eq!(world.survive("copy", (b"", request), &model).result(), Ok(bytes));
    world.unlink(&mut model, root, "copy");
    world.done(&model, "put of a large file without name", b"", Put { node: copy.1, count: 1 }.message());
    world.write(&mut model, file, 0, &random.bytes(60 * PAGE));
    world.done(&model, "put", b"", Put { node: file.1, count: 1 }.message());
    world.unlink(&mut model, root, "file");
}

#[test]
fn uses_are_set_anew_and_a_reply_given_again_counts() {
    let (mut world, mut model, root) = mounted();
    let kept = world.make(&mut model, root, "kept", 0o100_644);
    let gone = world.make(&mut model, root, "gone", 0o100_644);
    world.write(&mut model, gone, 0, &[1; 20_000]);
    world.unlink(&mut model, root, "gone");
    let lookup = Lookup { directory: root.1, grant: GRANT, bytes: 4, room: 0 }.message();
    let before = world.survive("lookup", (b"kept", lookup), &model);
    let lookup_tag = world.next_tag;
    let uses = [root.1, 1, kept.1, 7].map(u64::to_le_bytes).concat();
    world.done(&model, "set uses", &uses, SetUses { grant: GRANT, bytes: uses.len() as u64 }.message());
    assert_eq!(world.uses(), BTreeMap::from([(root.1 as u32, 1), (kept.1 as u32, 7)]));
    for _ in 0..2 {
        let (again, ..) = world.ask((b"kept", lookup), lookup_tag, UNLIMITED).unwrap();
        assert_eq!(again, before);
        assert_eq!(world.uses()[&(kept.1 as u32)], 8);
    }
}
