//! Objects: memory that several regions may show. An *image* is the cached content of a file, filled by vfs; an *anonymous*
//! object is shared memory without a file (MAP_SHARED, a service's preserved memory), filled with zeros on demand, and so is a
//! System V *segment*, whose mappings are counted one by one.
//!
//! The *cache* of vfs belongs to no file as far as vm knows: `cache` tells more.
//!
//! A *shared file* is the content of a file as seen by all its shared mappings; it changes, and `shared_file` tells how.
//!
//! An object lives while a region shows it (counted in pages, so that cutting and joining regions changes nothing), while somebody holds it (vfs an image
//! it opened, see `claims`; vm preserved memory), and, an image, while memory is not short and its file is as it was. Every frame of an object has the object
//! as its one user, except those that the cache of vfs has, too, and where a private copy begins as the shared tail of a program (`loaded`).

mod claims;

pub use crate::memory::content::{Content, FileId};

use crate::memory::attaches::Attaches;
use crate::memory::frames::{Frame, Frames, Run};
use crate::memory::marks::Marks;
use crate::memory::pages::Pages;
use crate::memory::window::Window;
use abi::{Errno, layout::PAGE_BYTES, vm::ALL_INODES};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use elf::{MAX_SEGMENTS, Program};
use sys::{fallible::TryVec, space::Space};

/// An object: its place in the table and the count of its predecessors there. 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId(pub u64);

const INDEX_BITS: u32 = 32;

impl ObjectId {
    fn index(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

/// What vm knows of an image that has been executed.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its headers.
    pub program: Program,
    /// For each segment whose file part ends within a page that goes on with zeros: a frame with that page.
    pub tails: [Option<Frame>; MAX_SEGMENTS],
}

/// An object.
#[derive(Debug)]
pub struct Object {
    /// What it shows.
    pub content: Content,
    /// The present pages, all owned.
    pub pages: Pages,
    /// Set when it has been executed.
    pub loaded: Option<Box<Loaded>>,
    /// Of a shared file: which pages differ from the file.
    pub marks: Marks,
    /// Of a System V segment.
    pub attaches: Attaches,
    /// Frames for all of its pages, while it is being filled: so they are neighbours. Those of pages that are there are in use.
    reserve: Option<Run>,
    mapped_pages: u64,
    holds: u32,
    /// An image that is for nobody new.
    forgotten: bool,
    /// Path that its file was opened by first; empty: not known.
    name: Box<[u8]>,
    /// When it was last asked for; orders images by age.
    used: u64,
}

impl Object {
    /// Sets frames aside for all pages of an image. No page is present yet.
    pub fn set_reserve(&mut self, run: Run) {
        self.reserve = Some(run);
    }

    /// The frames set aside for these pages.
    pub fn reserved(&self, first: u64, pages: u64) -> Option<Run> {
        self.reserve.map(|run| Run { first: run.first.plus(first), frames: pages })
    }

    /// Frames set aside for pages that are not there.
    pub fn unused_reserve(&self) -> impl Iterator<Item = Frame> {
        let frames = self.reserve.into_iter().flat_map(|run| run.iter().zip(0..));
        frames.filter(|&(_, page)| self.pages.frame(page).is_none()).map(|(frame, _)| frame)
    }

    /// Sets the length of the file, and drops the pages beyond it.
    pub fn resize(&mut self, frames: &mut Frames, bytes: u64) {
        let end = bytes.div_ceil(PAGE_BYTES);
        self.content.set_file_bytes(bytes);
        self.marks.cut(end);
        let reserve = self.reserve;
        self.pages.take(end, u64::MAX, frames, |frames, _, frame| {
            // A frame that was set aside goes back with the others.
            if reserve.is_none_or(|run| !run.iter().any(|own| own == frame)) {
                frames.release(frame);
            }
        });
    }

    fn release_reserve(&mut self, frames: &mut Frames) {
        self.unused_reserve().for_each(|frame| frames.release(frame));
        self.reserve = None;
    }

    /// True when a region shows it.
    pub fn is_mapped(&self) -> bool {
        self.mapped_pages > 0
    }

    /// The path of its file, if that is known.
    pub fn name(&self) -> Option<&[u8]> {
        Some(&*self.name).filter(|name| !name.is_empty())
    }

    /// Sets the path of its file. `EEXIST`: it has one.
    pub fn set_name(&mut self, name: Vec<u8>) -> Result<(), Errno> {
        if self.name().is_some() {
            return Err(Errno::EEXIST);
        }
        self.name = name.into_boxed_slice();
        Ok(())
    }

    /// What `close` has done when vm dies between its steps.
    #[cfg(test)]
    pub fn begin_close(&mut self) {
        self.holds = 0;
    }

    fn is_idle(&self) -> bool {
        self.mapped_pages == 0 && self.holds == 0
    }

    fn is_cached(&self) -> bool {
        self.content.is_image() && !self.forgotten
    }

    /// Gives all frames back.
    fn release_frames(&mut self, frames: &mut Frames) {
        self.release_reserve(frames);
        core::mem::take(&mut self.pages).release_all(frames);
        self.loaded
            .take()
            .into_iter()
            .flat_map(|loaded| loaded.tails)
            .flatten()
            .for_each(|frame| frames.release(frame));
    }
}

#[derive(Debug, Default)]
struct Entry {
    predecessors: u32,
    object: Option<Box<Object>>,
}

/// All objects.
#[derive(Debug, Default)]
pub struct Objects {
    table: Vec<Entry>,
    vacant: Vec<u32>,
    by_file: BTreeMap<FileId, ObjectId>,
    /// The cache of vfs, if it is still there.
    cache: Option<ObjectId>,
    clock: u64,
    /// Shared files that nobody maps any more, for vfs.
    unmapped: VecDeque<ObjectId>,
    /// There is one more.
    news: bool,
}

impl Objects {
    /// The object with this number.
    pub fn get(&self, id: ObjectId) -> Option<&Object> {
        let entry = self.table.get(id.index())?;
        let is_it = id.0 >> INDEX_BITS == u64::from(entry.predecessors);
        entry.object.as_deref().filter(|_| is_it)
    }

    /// The object, mutably.
    pub fn get_mut(&mut self, id: ObjectId) -> Option<&mut Object> {
        let entry = self.table.get_mut(id.index())?;
        let is_it = id.0 >> INDEX_BITS == u64::from(entry.predecessors);
        entry.object.as_deref_mut().filter(|_| is_it)
    }

    /// A new anonymous object, held once.
    pub fn add_anonymous(&mut self) -> ObjectId {
        self.add(Content::Anonymous)
    }

    /// The System V segment with this number.
    pub fn segment(&self, number: u64) -> Option<ObjectId> {
        let is_it =
            |object: &Object| matches!(object.content, Content::Segment { number: known, .. } if known == number);
        let index = self.table.iter().position(|entry| entry.object.as_deref().is_some_and(is_it))?;
        Some(self.id_at(index))
    }

    /// A new System V segment, held by pm.
    pub fn add_segment(&mut self, number: u64, pages: u64) -> ObjectId {
        self.add(Content::Segment { number, pages })
    }

    /// A new window, held once.
    pub fn add_window(&mut self, window: Window) -> ObjectId {
        self.add(Content::Window(window))
    }

    /// A new cache of vfs, held once.
    pub fn add_cache(&mut self, space: Space, address: u64) -> ObjectId {
        let id = self.add(Content::Cache { space, address });
        self.cache = Some(id);
        id
    }

    /// The cache of vfs.
    pub fn cache(&self) -> Option<ObjectId> {
        self.cache.filter(|&id| self.get(id).is_some())
    }

    /// Whether it is a window.
    pub fn is_window(&self, id: ObjectId) -> bool {
        self.get(id).is_some_and(|object| matches!(object.content, Content::Window(_)))
    }

    /// The first window of the driver in `slot` at or after place `next` of the table, which is then behind it.
    pub fn next_window(&self, next: &mut usize, slot: usize) -> Option<(ObjectId, Window)> {
        let (index, window) =
            (*next..self.table.len()).find_map(|index| match self.table[index].object.as_deref()?.content {
                Content::Window(window) if window.slot == slot && !window.is_lost => Some((index, window)),
                _ => None,
            })?;
        *next = index + 1;
        Some((self.id_at(index), window))
    }

    /// Counts a mapping of a System V segment that has come (`more`) or gone.
    pub fn count_attach(&mut self, id: ObjectId, more: bool, process: u32, now_s: u64) {
        if let Some(object) = self.get_mut(id) {
            object.attaches = object.attaches.changed(more, process, now_s);
        }
    }

    /// After a death: counts a mapping that there was already.
    pub fn recount_attach(&mut self, id: ObjectId) {
        if let Some(object) = self.get_mut(id) {
            object.attaches.count += 1;
        }
    }

    /// The image of a file, held once more; a new one when there is none or an old version.
    pub fn open_image(&mut self, frames: &mut Frames, file: FileId, version: u64, bytes: u64) -> ObjectId {
        let content = Content::File { file, version, bytes, zeros: bytes.div_ceil(PAGE_BYTES) };
        if let Some(&id) = self.by_file.get(&file) {
            if self.get(id).is_some_and(|image| image.content == content) {
                self.hold(id);
                return id;
            }
            self.forget_image(frames, file);
        }
        let id = self.add(content);
        self.by_file.insert(file, id);
        id
    }

    /// Makes the image of this file, if there is one, for nobody new.
    pub fn forget_image(&mut self, frames: &mut Frames, file: FileId) {
        if let Some(id) = self.by_file.remove(&file) {
            if let Some(image) = self.get_mut(id) {
                image.forgotten = true;
            }
            self.drop_if_idle(frames, id);
        }
    }

    /// The first image of this file, or of all of the device, at or after place `next` of the table, which is then behind it. Old ones too.
    pub fn next_image(&self, next: &mut usize, of: FileId) -> Option<ObjectId> {
        let is_it = |file: FileId| file.device == of.device && [file.inode, ALL_INODES].contains(&of.inode);
        let index = (*next..self.table.len()).find(|&index| match self.table[index].object.as_deref() {
            Some(&Object { content: Content::File { file, .. }, .. }) => is_it(file),
            _ => false,
        })?;
        *next = index + 1;
        Some(self.id_at(index))
    }

    /// Whether vfs or a program has an image of this file.
    pub fn is_image_in_use(&self, file: FileId) -> bool {
        let mut next = 0;
        let mut images = core::iter::from_fn(|| self.next_image(&mut next, file));
        images.any(|id| self.get(id).is_some_and(|image| !image.is_idle()))
    }

    /// Takes the file, or all of the device, from its images: another one may get its number.
    pub fn orphan_images(&mut self, frames: &mut Frames, of: FileId) {
        let mut next = 0;
        while let Some(id) = self.next_image(&mut next, of) {
            let Some(Object { content: Content::File { file, .. }, .. }) = self.get_mut(id) else { continue };
            let file = core::mem::replace(file, FileId::GONE);
            if self.by_file.get(&file) == Some(&id) {
                self.forget_image(frames, file);
            }
        }
    }

    /// Takes back one hold. `EINVAL`: there is no such object, or nobody holds it.
    pub fn close(&mut self, frames: &mut Frames, id: ObjectId) -> Result<(), Errno> {
        let object = self.get_mut(id).filter(|object| object.holds > 0).ok_or(Errno::EINVAL)?;
        object.holds -= 1;
        if object.holds == 0 {
            object.release_reserve(frames);
        }
        self.drop_if_idle(frames, id);
        Ok(())
    }

    /// Counts pages that a region now shows.
    pub fn map(&mut self, id: ObjectId, pages: u64) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(object) = self.get_mut(id) {
            object.mapped_pages += pages;
            object.used = clock;
        }
    }

    /// Counts pages that a region no longer shows.
    pub fn unmap(&mut self, frames: &mut Frames, id: ObjectId, pages: u64) {
        if let Some(object) = self.get_mut(id) {
            object.mapped_pages -= pages;
        }
        self.report_unmapped(id);
        self.drop_if_idle(frames, id);
    }

    /// Tells vfs of a shared file if nobody maps it.
    #[expect(clippy::disallowed_methods, reason = "one entry of each object: from the heap's reserve")]
    pub fn report_unmapped(&mut self, id: ObjectId) {
        let is_it = self.get(id).is_some_and(|object| object.content.is_shared_file() && !object.is_mapped());
        if is_it && !self.unmapped.contains(&id) {
            self.unmapped.push_back(id);
            self.news = true;
        }
    }

    /// True when vfs has to be notified of a shared file that nobody maps.
    pub fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.news)
    }

    /// A shared file that nobody maps.
    pub fn next_unmapped(&mut self) -> Option<ObjectId> {
        loop {
            let id = self.unmapped.pop_front()?;
            if self.get(id).is_some_and(|object| !object.is_mapped()) {
                return Some(id);
            }
        }
    }

    /// The shared file with the number next to `after`.
    pub fn next_shared(&self, after: ObjectId) -> Option<(ObjectId, FileId)> {
        let first = if after.0 == 0 { 0 } else { after.index() + 1 };
        (first..self.table.len()).find_map(|index| match self.table[index].object.as_deref()?.content {
            Content::Shared { file, .. } => Some((self.id_at(index), file)),
            _ => None,
        })
    }

    /// The shared file of this file, held by vfs; a new one when there is none.
    pub fn open_shared(&mut self, file: FileId, bytes: u64) -> ObjectId {
        let mut after = ObjectId(0);
        while let Some((id, known)) = self.next_shared(after) {
            if known == file {
                return id;
            }
            after = id;
        }
        self.add(Content::Shared { file, bytes, zeros: bytes.div_ceil(PAGE_BYTES) })
    }

    /// Whether the path of its file is known.
    pub fn has_name(&self, id: ObjectId) -> bool {
        self.get(id).is_some_and(|object| object.name().is_some())
    }

    fn id_at(&self, index: usize) -> ObjectId {
        ObjectId(u64::from(self.table[index].predecessors) << INDEX_BITS | index as u64)
    }

    /// Drops the image nobody has used for longest. False: all are in use.
    pub fn drop_oldest(&mut self, frames: &mut Frames) -> bool {
        let idle = self.by_file.iter().filter_map(|(&file, &id)| Some((self.get(id)?, file)));
        let idle = idle.filter(|(image, _)| image.is_idle());
        let Some(file) = idle.min_by_key(|(image, _)| image.used).map(|(_, file)| file) else { return false };
        self.forget_image(frames, file);
        true
    }

    /// Pages of images, and of vfs's cache those that no image shows, that could be dropped or read again.
    pub fn cached_pages(&self, frames: &Frames) -> u64 {
        let images: u64 = self.by_file.values().filter_map(|&id| self.get(id)).map(|image| image.pages.count()).sum();
        images + self.cache.and_then(|id| self.get(id)).map_or(0, |cache| cache.pages_alone(frames))
    }

    /// All objects that exist.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        self.table.iter().filter_map(|entry| entry.object.as_deref())
    }

    /// After a death: recounts the pages that regions show, from none.
    pub fn begin_recount(&mut self) {
        self.vacant.clear();
        core::mem::forget(core::mem::take(&mut self.unmapped));
        // It may have been in the middle of a change: its memory is leaked.
        core::mem::forget(core::mem::take(&mut self.by_file));
        for (index, entry) in self.table.iter_mut().enumerate() {
            let Some(object) = &mut entry.object else {
                self.vacant.push_reserved(index as u32);
                continue;
            };
            object.mapped_pages = 0;
            object.attaches.count = 0;
            if !object.marks.is_whole() {
                object.marks.change_all(&object.pages);
            }
            if let Content::File { file, .. } = object.content
                && !object.forgotten
            {
                let id = ObjectId(u64::from(entry.predecessors) << INDEX_BITS | index as u64);
                self.by_file.insert(file, id);
            }
        }
    }

    /// Drops the objects that the predecessor was about to drop.
    pub fn end_recount(&mut self, frames: &mut Frames) {
        for index in 0..self.table.len() {
            let id = self.id_at(index);
            self.report_unmapped(id);
            self.drop_if_idle(frames, id);
        }
    }

    fn hold(&mut self, id: ObjectId) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(object) = self.get_mut(id) {
            object.holds += 1;
            object.used = clock;
        }
    }

    #[expect(clippy::disallowed_methods, reason = "`ensure_heap` has made room")]
    fn add(&mut self, content: Content) -> ObjectId {
        self.clock += 1;
        let object = Object {
            content,
            pages: Pages::default(),
            loaded: None,
            marks: Marks::default(),
            attaches: Attaches::default(),
            reserve: None,
            mapped_pages: 0,
            holds: 1,
            forgotten: false,
            name: Box::default(),
            used: self.clock,
        };
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.table.push(Entry::default());
            // A place for each object: giving it back allocates nothing.
            self.vacant.reserve(self.table.len() - self.vacant.len());
            self.table.len() as u32 - 1
        });
        let entry = &mut self.table[index as usize];
        entry.predecessors = entry.predecessors.wrapping_add(1).max(1);
        entry.object = Some(Box::new(object));
        ObjectId(u64::from(entry.predecessors) << INDEX_BITS | u64::from(index))
    }

    fn drop_if_idle(&mut self, frames: &mut Frames, id: ObjectId) {
        if self.get(id).is_none_or(|object| !object.is_idle() || object.is_cached()) {
            return;
        }
        if let Some(mut object) = self.table[id.index()].object.take() {
            object.release_frames(frames);
            self.vacant.push_reserved(id.index() as u32);
        }
    }
}
