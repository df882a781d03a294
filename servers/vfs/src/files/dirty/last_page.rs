//! The last page of a file that grows, which its file system has not heard of.
//!
//! It is the file's only dirty page. What is appended to it stays here as long as it lies in the page; what is appended behind it has it written first.
//! The file system has room for it for certain (`room`). It ends with its file.

use super::{
    super::{
        room::{self, Question},
        stat::STATFS_BYTES,
    },
    DirtyRecord, Files, LAST_PAGE, NodeRef, Page, is_fit, parts,
};
use crate::memory::buffer::Piece;
use abi::{Endpoint, fs, layout::PAGE_BYTES};
use sys::{
    fallible::filled,
    grant::{Access, GrantedBuffer},
    time,
};

/// Bytes of a `struct statfs` word, and where it has the size of a block and how many are free for everybody.
const WORD: usize = 8;
const BLOCK_BYTES_AT: usize = 8;
const FREE_BLOCKS_AT: usize = 32;

/// The only dirty page of a file whose last name is being removed, as a successor of this vfs would know it.
pub(in crate::files) struct Leaving(DirtyRecord);

impl Files {
    /// Takes what a program appends to a file into its last page, which is dirty then, for a user who is charged for it. False: nothing has been done, and
    /// the file system has to be asked.
    pub fn append(&self, node: &NodeRef, position: u64, from: Endpoint, piece: Piece, user: u32) -> bool {
        let end = position.saturating_add(piece.bytes);
        if position != node.size() || end > LAST_PAGE || position / PAGE_BYTES != (end - 1) / PAGE_BYTES {
            return false;
        }
        let is_done = match node.known_stat().new_size() {
            0 => self.begin_last_page(node, position, from, piece, user),
            _ => self.lengthen_last_page(node, position, from, piece),
        };
        if is_done {
            node.set_size(end);
            node.known_stat().has_grown(end);
        }
        is_done
    }

    /// The first that is appended. A whole page is written at once, unless it is all that a new file has: who writes whole pages mostly writes many. False: the
    /// file system may not have room for the page later, or has a content that would be gone before this one is there.
    fn begin_last_page(&self, node: &NodeRef, position: u64, from: Endpoint, piece: Piece, user: u32) -> bool {
        let may_wait = match position {
            0 => node.dirty().is_blank.get() || node.mount().is_in_memory(),
            _ => piece.bytes < PAGE_BYTES,
        };
        if !may_wait || !is_fit(node) {
            return false;
        }
        let room = node.file_system().room();
        if let Some(question) = room.ask() {
            self.ask_for_room(node, question);
        }
        let is_done = room.has(PAGE_BYTES)
            && self.has_room(node.dirty(), user, 1)
            && self.fill(node, parts(position, piece), from, user);
        if is_done {
            room.keep_page(room::page_bytes(position + piece.bytes));
            // It stays the only dirty page.
            node.dirty().is_admitted.set(false);
        }
        is_done
    }

    /// What is appended to the page that [`Files::begin_last_page`] has begun. False: that page is full, is being written back, or ends with its name.
    fn lengthen_last_page(&self, node: &NodeRef, position: u64, from: Endpoint, piece: Piece) -> bool {
        let dirty = node.dirty();
        let is_free = node.known_stat().unchanging().is_some() && !dirty.is_leaving.get() && !node.is_unlinked();
        let is_its = |page: &Page| is_free && u64::from(page.number) == position / PAGE_BYTES;
        let Some(page) = dirty.pages.borrow().last().copied().filter(is_its) else { return false };
        let store = &self.dirty.store;
        if store.fetch_dirty(page.place, page.end.into(), piece.bytes as usize, from, piece.address).is_err() {
            return false;
        }
        let end = page.end + piece.bytes as u16;
        store.lengthen_dirty(page.place, end);
        dirty.lengthen_last(end);
        let now_ns = time::real_ns();
        store.set_dirty_time(page.place, now_ns);
        self.was_filled(node, now_ns);
        true
    }

    /// Has the file system of a node tell how much room it has.
    #[cold]
    fn ask_for_room(&self, node: &NodeRef, question: Question) {
        let (file_system, peers, number) = (node.file_system().clone(), self.peers.clone(), node.number());
        let lent = filled(0, STATFS_BYTES)
            .and_then(|room| GrantedBuffer::new(room, file_system.service().endpoint(), Access::Write));
        let Ok(lent) = lent else { return };
        self.peers.run(async move {
            let request = fs::StatFs { node: number, grant: lent.id() };
            if peers.ask(file_system.service(), request.message()).await.is_ok() {
                let told = lent.take();
                let word = |at: usize| told[at..at + WORD].try_into().map_or(0, u64::from_le_bytes);
                let free_bytes = word(FREE_BLOCKS_AT).saturating_mul(word(BLOCK_BYTES_AT));
                file_system.room().learn(question, free_bytes);
            }
        });
    }

    /// Whether nobody needs the dirty page of a file when its name is removed: it is its only dirty one, and the file was found by that name and nothing else.
    pub fn ends_with_its_name(&self, node: &NodeRef) -> bool {
        const CALL_AND_NAME: usize = 2;
        let is_last = node.links() == 1 && !node.has_pages() && !node.dirty().is_leaving.get();
        let is_last = is_last && node.file_system().room().spares_pages(0);
        node.known_stat().new_size() > 0 && is_last && node.is_held_by(CALL_AND_NAME)
    }

    /// The name of a file is about to be removed, which the caller alone has in use. Its page is not written back from now on, nor by a successor:
    /// the file system may give its number to another file. `None`: it has none.
    pub(in crate::files) fn begin_leaving(&self, node: &NodeRef) -> Option<Leaving> {
        let place = node.dirty().pages.borrow().first()?.place;
        node.dirty().is_leaving.set(true);
        self.dirty.store.forget_dirty(place).map(Leaving)
    }

    /// The name `is_removed`, or not. The page ends, unless somebody has got the file meanwhile.
    pub(in crate::files) fn end_leaving(&self, node: &NodeRef, Leaving(record): Leaving, is_removed: bool) {
        let dirty = node.dirty();
        dirty.is_leaving.set(false);
        let Some(Page { number, place, .. }) = dirty.pages.borrow().first().copied() else { return };
        if !is_removed || !node.is_held_by(1) {
            return self.dirty.store.remember_dirty(place, &record);
        }
        dirty.remove(number);
        self.dirty.store.release_dirty(place);
        self.is_clean(node);
    }

    /// Whether the last page of a file is full, and its file system has not heard of it.
    pub fn is_last_page_full(&self, node: &NodeRef) -> bool {
        let size = node.known_stat().new_size();
        size > 0 && size.is_multiple_of(PAGE_BYTES)
    }
}
