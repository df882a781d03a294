//! A file that is mapped shared, read and written by calls, and changed in every other way: all see one content. The file is long because it has a
//! model for calls one by one, for calls at once and for a full disk, and what each of these has shown once.

use super::mappings::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE, map, store};
use super::meanwhile::expected;
use super::services::PAGE;
use super::*;
use abi::{Errno, linux::nr};

const FILE: u64 = 0;
const OTHER: u64 = 1;
const SINK: u64 = 2;
const PAGES: u64 = 8;
const END: u64 = PAGES * PAGE;
const PUNCH: u64 = 3;

/// A file, and what has to be in it.
struct Mapped {
    world: World,
    below: Box<dyn FnMut(u64) -> u64>,
    content: Vec<u8>,
    /// vm's object while the file is mapped.
    object: Option<u64>,
    /// Calls may find no space, or too little; nobody stores, which would need some.
    is_full: bool,
}

impl Mapped {
    fn new(seed: u64, is_short: bool) -> Mapped {
        let world = World::new();
        world.vm().is_short = is_short;
        let content = expected(0..3 * PAGE + 100);
        world.make("/file", &content, 0o666, (0, 0));
        world.make("/other", &expected(0..END), 0o644, (0, 0));
        assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
        Mapped { world, below: Box::new(random(seed)), content, object: None, is_full: false }
    }

    /// How many bytes a call has moved of so many.
    fn moved(&self, result: Result<u64>, bytes: u64) -> u64 {
        match result {
            Ok(moved) if self.is_full && moved < bytes => moved,
            Err(Errno::ENOSPC) if self.is_full => 0,
            other => {
                assert_eq!(other, Ok(bytes));
                bytes
            }
        }
    }

    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    /// A part of the file, or what is behind its end.
    fn part(&mut self) -> (u64, u64) {
        let start = (self.below)(END);
        let bytes = if (self.below)(2) == 0 { PAGE } else { 1 + (self.below)(3 * PAGE) };
        let start = if (self.below)(2) == 0 { start / PAGE * PAGE } else { start };
        (start, bytes.min(END - start))
    }

    fn put(&mut self, start: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = start as usize + bytes.len();
        self.content.resize(self.content.len().max(end), 0);
        self.content[start as usize..end].copy_from_slice(bytes);
    }

    fn read(&mut self) {
        let (start, bytes) = self.part();
        let seen = self.world.pread(self.world.root, FILE, bytes as usize, start as i64).expect("is read");
        let end = self.size().min(start + bytes);
        assert!(seen == self.content[start.min(end) as usize..end as usize], "{bytes} bytes at {start}");
    }

    fn write(&mut self) {
        let (start, bytes) = self.part();
        let data = vec![(self.below)(256) as u8; bytes as usize];
        let written = self.moved(self.world.pwrite(self.world.root, FILE, &data, start as i64), bytes);
        self.put(start, &data[..written as usize]);
    }

    /// The offset of a page that vm has of the file, or can make.
    fn page(&mut self) -> Option<u64> {
        let object = self.object?;
        let pages: Vec<u64> = {
            let vm = self.world.vm();
            let file = &vm.shared[(object as usize - 1) / 2];
            let zeros = (file.zeros..file.size).step_by(PAGE as usize);
            file.filled.keys().copied().chain(zeros).collect()
        };
        pages.get((self.below)(pages.len() as u64 + 1) as usize).copied()
    }

    /// A program stores a byte, behind the end of the file too, where it is lost.
    fn store(&mut self) {
        let Some((object, page)) = self.object.zip(self.page()).filter(|_| !self.is_full) else { return };
        let (at, byte) = (page + (self.below)(PAGE), (self.below)(256) as u8);
        store(&self.world, object, at, byte);
        if at < self.size() {
            self.put(at, &[byte]);
        }
    }

    fn map(&mut self) {
        let (start, bytes) = self.part();
        let flags = MAP_SHARED | PROT_READ | if self.is_full { 0 } else { PROT_WRITE };
        let (object, error, _) = map(&self.world, FILE, start / PAGE * PAGE, bytes, flags);
        if self.is_full && Errno(error) == Errno::ENOSPC {
            return;
        }
        assert_eq!(error, 0);
        assert!(self.object.is_none_or(|known| known == object));
        self.object = Some(object);
    }

    fn unmap(&mut self) {
        let Some(object) = self.object.take() else { return };
        {
            let mut vm = self.world.vm();
            vm.shared[(object as usize - 1) / 2].mapped = false;
            vm.unmapped.push(object);
        }
        self.world.notify_from_vm();
        assert!(self.world.vm().shared[(object as usize - 1) / 2].forgotten);
    }

    /// What a program sees that maps it privately.
    fn look(&mut self) {
        let (image, error, _) = map(&self.world, FILE, 0, END, MAP_PRIVATE | PROT_READ);
        assert_eq!(error, 0);
        let seen: Vec<u8> =
            self.world.vm().images[(image as usize - 1) / 2].filled.values().flatten().copied().collect();
        assert!(seen == self.content, "a private mapping");
    }

    fn change(&mut self) {
        let (start, bytes) = self.part();
        match (self.below)(4) {
            0 => {
                assert_eq!(self.world.call(self.world.root, nr::FTRUNCATE, &[FILE, start]), Ok(0));
                self.content.resize(start as usize, 0);
            }
            1 => {
                let punched = self.world.call(self.world.root, nr::FALLOCATE, &[FILE, PUNCH, start, bytes]);
                assert_eq!(punched, Ok(0));
                let end = self.size().min(start + bytes);
                self.content[start.min(end) as usize..end as usize].fill(0);
            }
            2 => self.copy(start, bytes),
            _ => {
                let null = self.world.call(self.world.root, nr::FSYNC, &[FILE]);
                assert_eq!(null, Ok(0));
            }
        }
    }

    fn copy(&mut self, start: u64, bytes: u64) {
        let world = &self.world;
        let other = world.open(world.root, "/other", O_RDONLY, 0).expect("is there");
        world.seek(world.root, FILE, start as i64, SEEK_SET).expect("is open");
        world.seek(world.root, other, start as i64, SEEK_SET).expect("is open");
        let copied = world.call(world.root, nr::COPY_FILE_RANGE, &[other, 0, FILE, 0, bytes, 0]);
        world.close(world.root, other).expect("is open");
        self.put(start, &expected(start..start + self.moved(copied, bytes)));
    }

    fn sync(&mut self) {
        let Some(object) = self.object else { return };
        self.world.vm().syncs.push((self.world.root, object));
        self.world.notify_from_vm();
        assert_eq!(self.world.vm().synced.pop(), Some(0));
        assert!(self.world.vm().shared[(object as usize - 1) / 2].changed.is_empty());
    }

    fn act(&mut self) {
        match (self.below)(200) {
            0..70 => self.read(),
            70..110 => self.store(),
            110..140 => self.write(),
            140..160 => self.map(),
            160..170 => self.unmap(),
            170..180 => self.look(),
            180..192 => self.change(),
            192..198 => self.sync(),
            _ => self.world.restart_vfs(),
        }
        self.check();
    }

    /// Each page that vm has of the file is as it has to be.
    fn check(&mut self) {
        let Some(object) = self.object else { return };
        let vm = self.world.vm();
        let file = &vm.shared[(object as usize - 1) / 2];
        assert_eq!(file.size, self.size(), "the size that vm knows");
        for (&at, page) in &file.filled {
            let end = self.content.len().min((at + PAGE) as usize);
            let content = &self.content[at as usize..end];
            let seen = page.iter().copied().chain(core::iter::repeat(0)).take(content.len());
            assert!(seen.eq(content.iter().copied()), "the mapped page at {at}");
        }
    }
}

fn coherent(mut mapped: Mapped) {
    (0..600).for_each(|_| mapped.act());
    mapped.unmap();
    mapped.world.restart_vfs();
    assert!(mapped.world.content("/file") == mapped.content, "what is on the file system in the end");
}

/// Calls and mappings in progress at once, while the file system is away.
impl Mapped {
    fn begin(&mut self) {
        let (start, bytes) = self.part();
        let child = self.world.fork(self.world.root, 0);
        let byte = (self.below)(256) as u8;
        let world = &self.world;
        let call = match (self.below)(9) {
            0 | 1 => {
                let shared = MAP_SHARED | PROT_READ | if byte < 128 { PROT_WRITE } else { 0 };
                world.vm().wanted.push((child, FILE as i32, start / PAGE * PAGE, bytes, shared));
                return world.notify_from_vm();
            }
            2 | 3 => (nr::PREAD64, vec![FILE, DATA, bytes, start]),
            4 => (nr::COPY_FILE_RANGE, vec![OTHER, 0, FILE, 0, bytes, 0]),
            5 => (nr::SENDFILE, vec![SINK, FILE, 0, bytes]),
            _ => {
                world.data(child, &vec![byte; bytes as usize]);
                (nr::PWRITE64, vec![FILE, DATA, bytes, start])
            }
        };
        world.begin_call(child, call.0, &call.1);
    }

    fn together(&mut self) {
        let starts = [OTHER, FILE, SINK].map(|file| self.world.seek(self.world.root, file, 0, SEEK_SET));
        assert_eq!(starts, [Ok(0); 3]);
        let ext2 = self.world.ext2();
        self.world.machine.kill(ext2);
        let count = 2 + (self.below)(3);
        (0..count).for_each(|_| self.begin());
        self.world.restart_ext2();
        self.world.machine.run();
        let answers = core::mem::take(&mut self.world.vm().answered);
        for (object, error, _) in answers {
            assert_eq!(error, 0);
            self.object = Some(object);
        }
        self.content = self.whole();
        (0..3).for_each(|_| self.store());
        self.check();
        assert!(self.whole() == self.content, "after stores");
        if (self.below)(4) == 0 {
            self.world.restart_vfs();
            assert!(self.whole() == self.content, "what a successor reads");
        }
        if (self.below)(4) == 0 {
            self.unmap();
            assert!(self.whole() == self.content, "what is unmapped");
        }
    }

    fn whole(&self) -> Vec<u8> {
        let page =
            |page| self.world.pread(self.world.root, FILE, PAGE as usize, (page * PAGE) as i64).expect("is read");
        (0..=PAGES).flat_map(page).collect()
    }
}

fn with_others(seed: u64) -> Mapped {
    let mapped = Mapped::new(seed, false);
    let world = &mapped.world;
    assert_eq!(world.open(world.root, "/other", O_RDONLY, 0), Ok(OTHER));
    assert_eq!(world.open(world.root, "/sink", O_WRONLY | O_CREAT, 0o600), Ok(SINK));
    mapped
}

#[test]
fn a_copy_does_not_shorten_what_a_write_lengthens() {
    let mut mapped = with_others(1);
    let world = &mut mapped.world;
    let writer = world.fork(world.root, 0);
    assert!((0..2).all(|_| world.content("/other") == expected(0..END)), "it is known: the copy asks at once");
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    world.data(writer, b"the end");
    assert_eq!(world.begin_call(world.root, nr::COPY_FILE_RANGE, &[OTHER, 0, FILE, 0, 2 * PAGE, 0]), None);
    assert_eq!(world.begin_call(writer, nr::PWRITE64, &[FILE, DATA, 7, 5 * PAGE]), None);
    world.restart_ext2();
    assert_eq!([world.root, writer].map(|who| world.result(who)), [Some(Ok(2 * PAGE)), Some(Ok(7))]);
    assert_eq!(world.seek(world.root, FILE, 0, SEEK_END), Ok(5 * PAGE + 7));
}

#[test]
fn what_is_mapped_while_a_call_waits_for_dirty_pages_is_what_the_call_makes_of_it() {
    let write = (nr::PWRITE64, [FILE, DATA, 3 * PAGE, PAGE + 1, 0, 0]);
    let copy = (nr::COPY_FILE_RANGE, [OTHER, 0, FILE, 0, 3 * PAGE, 0]);
    for (call, is_mapped_first) in [(write, true), (write, false), (copy, true), (copy, false)] {
        let mut mapped = with_others(1);
        let world = &mut mapped.world;
        let program = world.fork(world.root, 0);
        let page = std::vec![1; PAGE as usize];
        (0..3).for_each(|_| assert_eq!(world.pwrite(world.root, FILE, &page, 0), Ok(PAGE)));
        let readable = world.open(world.root, "/file", O_RDONLY, 0).expect("is there");
        let ext2 = world.ext2();
        world.machine.kill(ext2);
        assert_eq!(world.pwrite(world.root, FILE, &page, 0), Ok(PAGE), "it is dirty");
        world.data(program, &std::vec![2; 3 * PAGE as usize]);
        let map = |world: &World| {
            world.vm().wanted.push((world.root, readable as i32, 0, 3 * PAGE, MAP_SHARED | PROT_READ));
            world.notify_from_vm();
            world.machine.run();
        };
        if is_mapped_first {
            map(world);
        }
        assert_eq!(world.begin_call(program, call.0, &call.1), None);
        if !is_mapped_first {
            map(world);
        }
        world.restart_ext2();
        assert_eq!(world.result(program), Some(Ok(3 * PAGE)), "call {}", call.0);
        mapped.object = world.vm().answered.pop().map(|(object, ..)| object);
        mapped.content = mapped.whole();
        mapped.check();
    }
}

/// The copy would go through the page cache, and waits for what that has not of the source.
#[test]
fn what_is_mapped_while_a_copy_waits_for_its_source_is_what_the_copy_makes_of_it() {
    let mut mapped = with_others(1);
    mapped.world.restart_vfs();
    let world = &mut mapped.world;
    (0..3).for_each(|_| assert!(world.pread(world.root, OTHER, 100, 0).as_deref() == Ok(&expected(0..100))));
    let (program, readable) = (world.fork(world.root, 0), world.open(world.root, "/file", O_RDONLY, 0));
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    assert_eq!(world.begin_call(program, nr::COPY_FILE_RANGE, &[OTHER, 0, FILE, 0, 3 * PAGE, 0]), None);
    let readable = readable.expect("is there") as i32;
    world.vm().wanted.push((world.root, readable, 0, 3 * PAGE, MAP_SHARED | PROT_READ));
    world.notify_from_vm();
    world.machine.run();
    world.restart_ext2();
    assert_eq!(world.result(program), Some(Ok(3 * PAGE)));
    mapped.object = world.vm().answered.pop().map(|(object, ..)| object);
    assert!(mapped.object.is_some());
    mapped.put(0, &expected(0..3 * PAGE));
    assert!(mapped.whole() == mapped.content);
    mapped.check();
}

/// The successor of a vfs that has mapped the file knows nothing of it, and takes the pages from vm as they are read.
#[test]
fn what_is_read_of_a_mapped_file_while_it_changes_is_not_there_afterwards() {
    let size = 3 * PAGE + 100;
    for bytes in [0, PAGE, PAGE + 100, 2 * PAGE + 50, 3 * PAGE + 10, 4 * PAGE + 10] {
        for page in 0..5 {
            let mut mapped = with_others(1);
            mapped.object = Some(map(&mapped.world, FILE, 0, size, MAP_SHARED | PROT_READ | PROT_WRITE).0);
            mapped.world.restart_vfs();
            let world = &mut mapped.world;
            let reader = world.fork(world.root, 0);
            let ext2 = world.ext2();
            world.machine.kill(ext2);
            assert_eq!(world.begin_call(world.root, nr::FTRUNCATE, &[FILE, bytes]), None);
            world.begin_call(reader, nr::PREAD64, &[FILE, DATA, PAGE, page * PAGE]);
            world.restart_ext2();
            assert_eq!(world.result(world.root), Some(Ok(0)));
            mapped.content.resize(bytes as usize, 0);
            (0..2).for_each(|_| assert!(mapped.whole() == mapped.content, "page {page}, {bytes} bytes"));
            assert_eq!(mapped.world.call(mapped.world.root, nr::FTRUNCATE, &[FILE, END]), Ok(0));
            mapped.content.resize(END as usize, 0);
            (0..2).for_each(|_| assert!(mapped.whole() == mapped.content, "page {page}, {bytes} bytes, longer again"));
            mapped.check();
        }
    }
}

#[test]
fn what_was_stored_behind_the_end_is_not_in_the_file_when_it_grows() {
    let mut mapped = Mapped::new(1, false);
    let flags = MAP_SHARED | PROT_READ | PROT_WRITE;
    mapped.object = Some(map(&mapped.world, FILE, 3 * PAGE, PAGE, flags).0);
    let last = |mapped: &Mapped| mapped.world.pread(mapped.world.root, FILE, 200, 3 * PAGE as i64);
    (0..3).for_each(|_| assert_eq!(last(&mapped).as_deref(), Ok(&mapped.content[3 * PAGE as usize..])));
    store(&mapped.world, mapped.object.expect("is mapped"), 3 * PAGE + 150, 9);
    mapped.unmap();
    assert_eq!(mapped.world.pwrite(mapped.world.root, FILE, b"further", 5 * PAGE as i64), Ok(7));
    (0..3).for_each(|_| {
        assert_eq!(last(&mapped).as_deref(), Ok(&[&mapped.content[3 * PAGE as usize..], &[0; 100]].concat()[..]))
    });
}

#[test]
fn a_page_that_is_mapped_during_a_write_of_another_is_one_with_that_in_the_cache() {
    let mut mapped = with_others(1);
    mapped.object = Some(map(&mapped.world, FILE, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE).0);
    (0..3).for_each(|_| assert!(mapped.whole() == mapped.content));
    let world = &mut mapped.world;
    let writer = world.fork(world.root, 0);
    let readable = world.open(world.root, "/file", O_RDONLY, 0).expect("is there");
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    world.data(writer, b"first");
    assert_eq!(world.begin_call(writer, nr::PWRITE64, &[FILE, DATA, 5, 0]), None);
    world.vm().wanted.push((world.root, readable as i32, PAGE, 2 * PAGE, MAP_SHARED | PROT_READ));
    world.notify_from_vm();
    world.restart_ext2();
    assert_eq!(world.result(writer), Some(Ok(5)));
    assert_eq!(world.vm().answered.pop().map(|(object, error, _)| (Some(object), error)), Some((mapped.object, 0)));
    mapped.content[..5].copy_from_slice(b"first");
    store(&mapped.world, mapped.object.expect("is mapped"), PAGE, 9);
    mapped.put(PAGE, &[9]);
    (0..3).for_each(|_| assert!(mapped.whole() == mapped.content));
}

/// A place in the cache that a mapped page has is used for another file only with other memory.
#[test]
fn other_files_do_not_get_the_memory_of_a_mapped_page() {
    let mut mapped = Mapped::new(1, false);
    let bytes = {
        let vm = mapped.world.vm();
        (vm.cache.end - vm.cache.start) * 3 / 4
    };
    let names = ["/large", "/larger"];
    names.iter().for_each(|name| mapped.world.make(name, &expected(0..bytes), 0o644, (0, 0)));
    let read_others = |mapped: &Mapped| {
        names.iter().for_each(|name| assert!((0..2).all(|_| mapped.world.content(name) == expected(0..bytes))));
    };
    read_others(&mapped);
    mapped.object = Some(map(&mapped.world, FILE, 0, END, MAP_SHARED | PROT_READ | PROT_WRITE).0);
    (0..3).for_each(|_| assert!(mapped.whole() == mapped.content));
    for byte in 0..3 {
        read_others(&mapped);
        store(&mapped.world, mapped.object.expect("is mapped"), PAGE, byte);
        mapped.put(PAGE, &[byte]);
        assert!(mapped.world.content(names[1]) == expected(0..bytes), "it is in the cache");
    }
    assert!(mapped.whole() == mapped.content);
}

#[test]
fn what_is_in_progress_at_once_comes_to_one_content() {
    for seed in 1..40 {
        let mut mapped = with_others(seed);
        for _ in 0..12 {
            (0..(mapped.below)(6)).for_each(|_| mapped.act());
            mapped.together();
        }
    }
}

#[test]
fn calls_and_mappings_see_one_content() {
    (1..6).for_each(|seed| coherent(Mapped::new(seed, false)));
}

#[test]
fn on_a_disk_that_is_full_they_see_what_had_space() {
    for seed in 1..6 {
        let mut mapped = Mapped::new(seed, false);
        mapped.world.fill_disk(seed);
        mapped.is_full = true;
        coherent(mapped);
    }
}

#[test]
fn without_memory_for_the_cache_too() {
    coherent(Mapped::new(7, true));
}

/// A copy of eight pages from another file, all of which is known, on a disk with space for some of them. Returns how many bytes are copied.
fn copy_some(mapped: &mut Mapped, to: u64) -> u64 {
    (0..2).for_each(|_| assert!(mapped.world.content("/other") == expected(0..END)));
    mapped.world.fill_disk(3);
    let world = &mapped.world;
    world.seek(world.root, FILE, to as i64, SEEK_SET).expect("is open");
    let copied = world.call(world.root, nr::COPY_FILE_RANGE, &[OTHER, 0, FILE, 0, END, 0]).expect("some of it");
    assert!((1..END).contains(&copied), "{copied} bytes");
    mapped.put(to, &expected(0..copied));
    copied
}

#[test]
fn a_copy_to_a_mapped_file_that_ends_early_lengthens_it_by_what_was_copied() {
    let mut mapped = with_others(1);
    mapped.object = Some(map(&mapped.world, FILE, 0, 3 * PAGE, MAP_SHARED | PROT_READ | PROT_WRITE).0);
    copy_some(&mut mapped, 3 * PAGE + 100);
    mapped.check();
    assert_eq!(mapped.world.fstat(mapped.world.root, FILE).map(|stat| stat.size), Ok(mapped.size()));
    assert!(mapped.world.content("/file") == mapped.content);
}

#[test]
fn what_is_known_of_a_hole_is_forgotten_though_the_copy_into_it_ends_early() {
    let mut mapped = with_others(1);
    let world = &mapped.world;
    assert_eq!([0, END].map(|size| world.call(world.root, nr::FTRUNCATE, &[FILE, size])), [Ok(0); 2]);
    mapped.content = vec![0; END as usize];
    (0..2).for_each(|_| assert!(mapped.world.content("/file") == mapped.content));
    copy_some(&mut mapped, 0);
    (0..2).for_each(|_| assert!(mapped.world.content("/file") == mapped.content));
}

#[test]
fn pages_of_a_mapped_file_that_are_not_mapped_are_known_when_they_were_read() {
    let mut mapped = Mapped::new(1, false);
    mapped.object = Some(map(&mapped.world, FILE, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE).0);
    (0..3).for_each(|_| assert!(mapped.whole() == mapped.content));
    let ext2 = mapped.world.ext2();
    mapped.world.machine.kill(ext2);
    let world = &mapped.world;
    assert_eq!(world.begin_call(world.root, nr::PREAD64, &[FILE, DATA, 2 * PAGE, PAGE]), Some(Ok(2 * PAGE)));
    assert!(world.machine.read(world.root, DATA, 2 * PAGE as usize) == expected(PAGE..3 * PAGE));
}

#[test]
fn what_is_stored_is_read_without_the_file_system() {
    let mut mapped = Mapped::new(1, false);
    (0..2).for_each(|_| assert!(mapped.world.content("/file") == mapped.content));
    mapped.map();
    let object = mapped.object.expect("is mapped");
    let pages: Vec<u64> = mapped.world.vm().shared[0].filled.keys().copied().collect();
    let at = pages[0];
    store(&mapped.world, object, at, 99);
    let ext2 = mapped.world.ext2();
    mapped.world.machine.kill(ext2);
    let world = &mapped.world;
    assert_eq!(world.begin_call(world.root, nr::PREAD64, &[FILE, DATA, 1, at]), Some(Ok(1)));
    assert_eq!(world.machine.read(world.root, DATA, 1), [99]);
    assert!(!world.vm().shared[0].changed.is_empty(), "and not written back");
}
