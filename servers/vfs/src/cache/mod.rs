//! The page cache: content of regular files that vfs has read, so that a read of it again is one message.
//!
//! The pages are vm's, which may take them back without asking (`sys::page_cache`); which page is where is in `slots`. All of it is clean: it
//! dies with this process. Whole pages that a program writes go through the cache to the file system, and stay (`staged`); what is written otherwise is forgotten.
//!
//! Invariant: what is found is what the file system would reply. It holds for the reason for which attributes are known
//! (`files::known`): a file changes through vfs alone. Nothing is found while a request that may change the file is in progress, nor until the
//! file system has heard of one read more, which sets the time of last access then, as it does when it hears of one after an hour (if the pages are not known, that read goes past the
//! cache: a file that changes often would only cost a copy); and what such a request has changed is forgotten before it ends, or replaced.
//! Of a file that is mapped shared, a page that vm has is here only by the same frame, so that what programs store is found.
//! Neighbours: `objects::regular` (which reads), `mappings` and `files::nodes` (which change files).

mod slots;
mod staged;

pub use staged::{STAGED_BYTES, Staged};

use crate::{files::vnode::NodeRef, memory::buffer::Piece, peers::Peers};
use abi::{Endpoint, Errno, GrantId, fs, layout::PAGE_BYTES, vm::CACHE_BATCH};
use alloc::rc::Rc;
use core::{
    cell::{Cell, RefCell},
    ops::Range,
};
use slots::{Key, Slots};
use sys::{grant::Access, page_cache::PageCache as Pages};

/// Pages that a file system is asked for at a time when a file is read from page to page.
const AHEAD_PAGES: u64 = 32;
/// At most so many bytes are found at a time, so that other requests get in between.
const FOUND_BYTES: u64 = AHEAD_PAGES * PAGE_BYTES;
/// A change of more pages makes all of the file unknown.
const FEW_PAGES: u64 = 64;
/// Times of last access may be late by this.
const HOUR_NS: u64 = 3_600_000_000_000;

/// See the head of the file.
pub struct PageCache {
    peers: Rc<Peers>,
    /// `None`: there is none for it.
    memory: Option<Memory>,
    /// The number of the last content that got one.
    contents: Cell<u64>,
    /// Counts hours, from 1: each of them a file system hears of the first read of a file.
    hour: Cell<u64>,
}

/// The pages, and what is in them: a slot for each.
struct Memory {
    pages: Pages,
    slots: RefCell<Slots>,
}

/// Slots that are being filled. Dropping them gives them back.
struct Filling<'a> {
    memory: &'a Memory,
    slots: Range<usize>,
}

impl Filling<'_> {
    /// The slots, which stay taken.
    fn into_slots(self) -> Range<usize> {
        core::mem::ManuallyDrop::new(self).slots.clone()
    }

    /// The first of the slots, which stay taken.
    fn split_off_first(&mut self, slots: usize) -> Range<usize> {
        let Range { start, end } = self.slots.clone();
        self.slots = end.min(start + slots)..end;
        start..self.slots.start
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        self.memory.slots.borrow_mut().give_back(self.slots.clone());
    }
}

impl PageCache {
    /// A cache of at most so many pages, empty.
    pub fn new(peers: Rc<Peers>, limit: usize) -> PageCache {
        let memory = Memory::new(limit);
        if let Err(error) = &memory {
            sys::log!("there is no page cache, and each read asks a file system: {error}");
        }
        PageCache { peers, memory: memory.ok(), contents: Cell::new(0), hour: Cell::new(1) }
    }

    /// Copies what is known of a file from `position` on to memory of a program. Returns how many bytes: fewer than there is room for when the rest
    /// is not known, or at the end of the file, or when it cannot be written to that memory.
    #[inline]
    pub fn read(&self, node: &NodeRef, position: u64, owner: Endpoint, room: Piece) -> u64 {
        match self.known(node) {
            Some((content, memory)) => {
                let wanted = room.bytes.min(FOUND_BYTES).min(node.size().saturating_sub(position));
                memory.copy(content, position, owner, Piece { bytes: wanted, ..room })
            }
            None => 0,
        }
    }

    /// The content of a file, and the memory that may have pages of it, if the file system need not hear of another read.
    #[inline(always)] // As `Slots::find`.
    fn known(&self, node: &NodeRef) -> Option<(u64, &Memory)> {
        match (node.content(), &self.memory) {
            (Some(content), Some(memory)) if node.known_stat().is_read_in(self.hour.get()) => Some((content, memory)),
            _ => None,
        }
    }

    /// How many bytes of a file are known from `position` on, up to `most`. Nobody moves them: for whom their number is all that matters.
    pub fn known_bytes(&self, node: &NodeRef, position: u64, most: u64) -> u64 {
        self.known(node).map_or(0, |(content, memory)| {
            let found = memory.slots.borrow_mut().find(content, position, most);
            found.end - found.start
        })
    }

    /// As [`PageCache::known_bytes`], after asking the file system if nothing is known.
    pub async fn make_known(&self, node: &NodeRef, position: u64, most: u64) -> u64 {
        match self.known_bytes(node, position, most) {
            0 if self.fill(node, position, most).await => self.known_bytes(node, position, most),
            known => known,
        }
    }

    /// Whether the page of a file at `position` is there.
    pub fn has(&self, node: &NodeRef, position: u64) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.has(node, position))
    }

    /// Makes known what a request is about to copy from a file whose page at `position` is there: what follows it of `bytes` bytes, a read ahead at most. False: not
    /// even that page is known afterwards, or is there.
    pub async fn complete(&self, node: &NodeRef, position: u64, bytes: u64) -> bool {
        if !self.has(node, position) {
            return false;
        }
        let known = || self.known_bytes(node, position, bytes);
        if known() == 0 && !self.fill(node, position, bytes).await {
            return false;
        }
        let there = known();
        let rest = position + there;
        if there < bytes && rest < node.size() && !self.has(node, rest) {
            self.fill(node, rest, bytes - there).await;
        }
        known() > 0
    }

    /// Has an image show what is known of its file from the start of a page on, asking the file system if nothing is. Returns how many bytes: whole pages, or up to the end of the file; none: the
    /// image has to be filled.
    pub async fn show(&self, node: &NodeRef, image: u64, position: u64, bytes: u64) -> u64 {
        let is_known = self.make_known(node, position, bytes).await > 0;
        let known = self.known(node).filter(|_| is_known);
        known.map_or(0, |(content, memory)| memory.show(content, image, position, bytes, node.size()))
    }

    /// A file was read past the cache, as the file system has replied: `accessed_ns` as of `fs::Read`. `version`: before it was asked, if the
    /// file was not changing. Returns whether it has been the same since.
    pub fn was_read(&self, node: &NodeRef, version: Option<u64>, source: Endpoint, accessed_ns: u64) -> bool {
        let known = node.known_stat();
        match version {
            Some(version) => known.was_read_since(version, self.hour.get(), source, accessed_ns),
            None => known.was_read(None, source, accessed_ns),
        }
    }

    /// Asks the file system for the page at `position` and what follows it of `bytes` bytes, or more when the file is read from page to page; if the page
    /// is there, the file system only hears of the read. False: it is not known afterwards.
    pub async fn fill(&self, node: &NodeRef, position: u64, bytes: u64) -> bool {
        let Some(memory) = &self.memory else { return false };
        if node.mount().is_volatile() || node.dirty().is_any() {
            return false;
        }
        // A page of which the file system has heard, and which cannot be read, is one that vm has taken back.
        let wants_to_be_heard = !node.known_stat().is_read_in(self.hour.get());
        let is_there = wants_to_be_heard && memory.has(node, position) || self.adopt(memory, node, position, bytes);
        let filled = match is_there {
            true if wants_to_be_heard => self.tell_of_read(node, position).await,
            true => Ok(true),
            // A file that has just been changed may be changed again.
            false if node.known_stat().is_changed() => Ok(false),
            false => self.ask(memory, node, position, bytes).await,
        };
        filled.unwrap_or(false)
    }

    /// A program passes over a part of a file in memory, of which nobody needs a byte: its file system only hears of it.
    pub async fn pass_over(&self, node: &NodeRef, position: u64) -> Result<(), Errno> {
        match node.known_stat().is_read_in(self.hour.get()) {
            true => Ok(()),
            false => self.tell_of_read(node, position).await.map(drop),
        }
    }

    async fn tell_of_read(&self, node: &NodeRef, position: u64) -> Result<bool, Errno> {
        let version = node.known_stat().unchanging();
        let request = fs::Read { node: node.number(), grant: GrantId::NONE, position, bytes: 0, kept: false };
        let reply = self.peers.ask(node.service(), request.message()).await?;
        Ok(self.was_read(node, version, reply.source, fs::Read::results(&reply)?))
    }

    async fn ask(&self, memory: &Memory, node: &NodeRef, position: u64, bytes: u64) -> Result<bool, Errno> {
        let version = node.known_stat().unchanging();
        let first = self.key(node, position)?;
        let filling = memory.take(memory.worth(node, first, position, bytes))?;
        let slots = filling.slots.clone();
        let service = node.service();
        let (offset, bytes) = (slots.start as u64 * PAGE_BYTES, slots.len() as u64 * PAGE_BYTES);
        let grant = memory.pages.grant(offset, bytes, service.endpoint(), Access::Write)?;
        let position = first.offset();
        let request = fs::Read { node: node.number(), grant: grant.id(), position, bytes, kept: true };
        let reply = match self.peers.ask(service, request.message()).await {
            Ok(reply) => reply,
            Err(error) => {
                if error == Errno::EFAULT {
                    memory.slots.borrow_mut().set_present(slots, false);
                }
                return Err(error);
            }
        };
        let is_known = self.was_read(node, version, reply.source, fs::Read::results(&reply)?);
        if is_known {
            let slots = filling.into_slots();
            memory.slots.borrow_mut().keep(slots.clone(), first, reply.words[0].min(bytes));
            if let Some(object) = node.shared_object() {
                memory.join(object, slots, first);
            }
        }
        Ok(is_known)
    }

    /// Puts pages that vm has of a file, if that is mapped shared, into the cache: the one at `position`, and what follows it of `bytes` bytes. Returns whether the first is there.
    fn adopt(&self, memory: &Memory, node: &NodeRef, position: u64, bytes: u64) -> bool {
        let Some(object) = node.shared_object() else { return false };
        let Ok(first) = self.key(node, position) else { return false };
        if node.known_stat().unchanging().is_none() {
            // Its size may be another one in the end.
            return false;
        }
        let wanted = memory.worth(node, first, position, bytes);
        let slots = memory.slots.borrow_mut().take(wanted as usize);
        if slots.is_empty() {
            return false;
        }
        let mut filling = Filling { memory, slots };
        let shown = memory.show_shared(object, filling.slots.clone(), first).map_or(0, |(shown, _)| shown);
        let kept = filling.split_off_first(shown.trailing_ones() as usize);
        let is_there = !kept.is_empty();
        memory.slots.borrow_mut().keep(kept, first, node.size().saturating_sub(first.offset()));
        is_there
    }

    /// The page of a file at `position`. `EFBIG`.
    fn key(&self, node: &NodeRef, position: u64) -> Result<Key, Errno> {
        let page = u32::try_from(position / PAGE_BYTES).map_err(|_| Errno::EFBIG)?;
        Ok(Key { content: self.content(node), page })
    }

    /// The number of a file's content.
    fn content(&self, node: &NodeRef) -> u64 {
        node.content().unwrap_or_else(|| {
            let next = self.contents.get() + 1;
            self.contents.set(next);
            node.set_content(Some(next));
            next
        })
    }

    /// It is so late on the monotonic clock.
    pub fn set_time(&self, now_ns: u64) {
        self.hour.set(now_ns / HOUR_NS + 1);
    }

    /// A part of a file is, or may be, not as it was.
    pub fn changed(&self, node: &NodeRef, position: u64, bytes: u64) {
        let (Some(content), Some(memory)) = (node.content(), &self.memory) else { return };
        let pages = position / PAGE_BYTES..position.saturating_add(bytes).div_ceil(PAGE_BYTES);
        if pages.end - pages.start > FEW_PAGES || pages.end > u64::from(u32::MAX) {
            return node.set_content(None);
        }
        let mut slots = memory.slots.borrow_mut();
        pages.for_each(|page| slots.forget(Key { content, page: page as u32 }));
    }
}

impl Memory {
    fn new(limit: usize) -> Result<Memory, Errno> {
        let slots = RefCell::new(Slots::new(limit)?);
        Ok(Memory { pages: Pages::open(limit as u64)?, slots })
    }

    fn copy(&self, content: u64, position: u64, owner: Endpoint, room: Piece) -> u64 {
        let mut moved = 0;
        while moved < room.bytes {
            let (address, left) = (room.address.wrapping_add(moved), room.bytes - moved);
            // The kernel is faster when the end of a page is not in between, as long as that does not happen often (ADR 57).
            let most = if left <= 2 * PAGE_BYTES { left.min(PAGE_BYTES - address % PAGE_BYTES) } else { left };
            let found = self.slots.borrow_mut().find(content, position + moved, most);
            let bytes = found.end - found.start;
            if bytes == 0 {
                break;
            }
            if self.pages.copy_to(found.start, owner, address, bytes).is_err() {
                // Either the program has no such memory, or vm has taken a page back: then it is asked for, and kept in another place.
                break;
            }
            moved += bytes;
        }
        moved
    }

    /// Copies what is known of a file from a position on to a range of the cache that is being filled. Returns how many bytes.
    /// `EFAULT`: vm has taken pages back.
    fn copy_within(&self, content: u64, mut from: u64, to: Range<u64>) -> Result<u64, Errno> {
        let mut at = to.start;
        while at < to.end {
            let found = self.slots.borrow_mut().find(content, from, to.end - at);
            let bytes = found.end - found.start;
            if bytes == 0 {
                break;
            }
            self.pages.copy_within(found.start, at, bytes).inspect_err(|_| self.forget_slots(&found))?;
            (from, at) = (from + bytes, at + bytes);
        }
        Ok(at - to.start)
    }

    /// vm may have taken the pages of a range back.
    fn forget_slots(&self, range: &Range<u64>) {
        let slots = (range.start / PAGE_BYTES) as usize..range.end.div_ceil(PAGE_BYTES) as usize;
        let mut known = self.slots.borrow_mut();
        known.retake(slots.clone());
        slots.for_each(|slot| known.remove(slot));
    }

    /// Has an image show the first of what is known from `position` on of a file of this size.
    fn show(&self, content: u64, image: u64, position: u64, bytes: u64, size: u64) -> u64 {
        let found = self.slots.borrow_mut().find(content, position, bytes);
        let bytes = found.end - found.start;
        let bytes = if position + bytes < size { bytes - bytes % PAGE_BYTES } else { bytes };
        let slots = (found.start / PAGE_BYTES) as usize..(found.start + bytes).div_ceil(PAGE_BYTES) as usize;
        if bytes == 0 {
            return 0;
        }
        // An error may come after some of them.
        self.slots.borrow_mut().retake(slots.clone());
        let shown = self.pages.show(slots.start as u64, image, position, bytes);
        shown.inspect_err(|_| self.forget_slots(&found)).map_or(0, |()| bytes)
    }

    /// Puts pages of a file that is mapped shared, from `first` on, into these slots, as far as vm has them. Returns which are there, and which are zeros that vm has not made yet.
    fn show_shared(&self, object: u64, slots: Range<usize>, first: Key) -> Result<(u64, u64), Errno> {
        let shown = self.pages.show_shared(object, first.offset(), slots.start as u64, slots.len() as u64);
        // After an error some of them may be there.
        let theirs = shown.map_or(u64::MAX, |(shown, _)| shown);
        each_of(slots, theirs, |slot| self.slots.borrow_mut().retake(slot..slot + 1));
        shown
    }

    /// These slots have what the file system has of a file that is mapped shared, from `first` on: what vm has of it takes its place. Of what may be made by vm alone nothing is known.
    fn join(&self, object: u64, slots: Range<usize>, first: Key) {
        let unknown = self.show_shared(object, slots.clone(), first).map_or(u64::MAX, |(_, zeros)| zeros);
        each_of(slots, unknown, |slot| self.slots.borrow_mut().remove(slot));
    }

    /// Whether the page at `position` is there.
    fn has(&self, node: &NodeRef, position: u64) -> bool {
        let page = u32::try_from(position / PAGE_BYTES);
        let key = node.content().zip(page.ok()).map(|(content, page)| Key { content, page });
        key.is_some_and(|key| self.slots.borrow().has(key))
    }

    /// How many pages it is worth asking for.
    fn worth(&self, node: &NodeRef, first: Key, position: u64, bytes: u64) -> u64 {
        let end = (position % PAGE_BYTES + bytes).div_ceil(PAGE_BYTES).min(AHEAD_PAGES);
        let before = first.page.checked_sub(1).map(|page| Key { page, ..first });
        let is_next = before.is_some_and(|before| self.slots.borrow().has(before));
        let pages = if is_next { AHEAD_PAGES } else { end };
        let left = node.size().div_ceil(PAGE_BYTES).saturating_sub(first.page.into());
        pages.min(left).max(1)
    }

    /// Slots with memory, to be filled.
    fn take(&self, most: u64) -> Result<Filling<'_>, Errno> {
        let slots = self.slots.borrow_mut().take(most as usize);
        if slots.is_empty() {
            return Err(Errno::ENOMEM);
        }
        let filling = Filling { memory: self, slots: slots.clone() };
        if !self.slots.borrow().are_present(slots.clone()) {
            self.prepare(slots)?;
        }
        Ok(filling)
    }

    /// Has vm give memory for slots: as far as it has plenty for the next ones too, which costs little more than for one.
    fn prepare(&self, slots: Range<usize>) -> Result<(), Errno> {
        let more = self.slots.borrow().to_prepare(slots.clone(), CACHE_BATCH as usize);
        let take = |slots: &Range<usize>| self.pages.take(slots.start as u64, slots.len() as u64);
        let taken = match take(&more) {
            Err(_) if more != slots => take(&slots).map(|()| slots.clone()),
            taken => taken.map(|()| more),
        };
        let mut known = self.slots.borrow_mut();
        match &taken {
            Ok(taken) => known.prepare(taken.clone()),
            Err(_) => known.set_present(slots, false),
        }
        taken.map(drop)
    }
}

/// Does something with each of these slots that is in a set, whose lowest bit is the first.
fn each_of(slots: Range<usize>, set: u64, act: impl FnMut(usize)) {
    slots.zip(0..).filter(|(_, bit)| set >> bit & 1 != 0).map(|(slot, _)| slot).for_each(act);
}
