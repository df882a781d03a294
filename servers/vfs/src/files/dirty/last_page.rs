//! The last pages of a file that grows, which its file system has not heard of.
//!
//! They are the file's only dirty pages, a run of at most [`RUN_PAGES`] with one record: so the size of the file is one number here, and one to a
//! successor. What is appended to them stays here as long as the run has a place for it; what is appended behind them has them written first.
//! The file system has room for them for certain (`room`). They end with their file.

use super::{
    super::{
        room::{self, Question},
        stat::STATFS_BYTES,
    },
    DirtyRecord, Files, LAST_PAGE, NodeRef, Run, is_fit, parts,
};
use crate::memory::buffer::Piece;
use abi::{Endpoint, fs, layout::PAGE_BYTES};
use sys::{
    fallible::filled,
    grant::{Access, GrantedBuffer},
    time,
};

/// Pages of a run: what one request writes.
const RUN_PAGES: u16 = 8;

/// Bytes of a `struct statfs` word, and where it has the size of a block and how many are free for everybody.
const WORD: usize = 8;
const BLOCK_BYTES_AT: usize = 8;
const FREE_BLOCKS_AT: usize = 32;

/// The dirty pages of a file whose last name is being removed, as a successor of this vfs would know them.
pub(in crate::files) struct Leaving(DirtyRecord);

impl Files {
    /// Takes what a program appends to a file into its last pages, which are dirty then, for a user who is charged for it. False: nothing has been done, and
    /// the file system has to be asked.
    pub fn append(&self, node: &NodeRef, position: u64, from: Endpoint, piece: Piece, user: u32) -> bool {
        let end = position.saturating_add(piece.bytes);
        if position != node.size() || end > LAST_PAGE {
            return false;
        }
        let is_done = match node.known_stat().new_size() {
            0 if position / PAGE_BYTES == (end - 1) / PAGE_BYTES => self.begin_run(node, position, from, piece, user),
            0 => false,
            _ => self.lengthen_run(node, position, from, piece),
        };
        if is_done {
            node.set_size(end);
            node.known_stat().has_grown(end);
        }
        is_done
    }

    /// The first that is appended. A whole page is written at once, unless it is all that a new file has: who writes whole pages mostly writes many. False: the
    /// file system may not have room for the page later, or has a content that would be gone before this one is there.
    fn begin_run(&self, node: &NodeRef, position: u64, from: Endpoint, piece: Piece, user: u32) -> bool {
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
            let bytes = room::pages_bytes((position / PAGE_BYTES) as u32, 1);
            room.keep_pages(bytes);
            node.dirty().kept_bytes.set(bytes);
            // They stay the only dirty pages.
            node.dirty().is_admitted.set(false);
        }
        is_done
    }

    /// What is appended to the pages that [`Files::begin_run`] has begun. False: it is a whole page or more, there is no place for it, or the pages are being
    /// written back, or end with their name.
    fn lengthen_run(&self, node: &NodeRef, position: u64, from: Endpoint, piece: Piece) -> bool {
        let dirty = node.dirty();
        let is_free = node.known_stat().unchanging().is_some() && !dirty.is_leaving.get() && !node.is_unlinked();
        let Some(mut run) = dirty.last().filter(|_| is_free && piece.bytes < PAGE_BYTES) else { return false };
        debug_assert_eq!(run.file_end(), position, "the file ends with them");
        let (store, start) = (&self.dirty.store, usize::from(run.end));
        let end = start + piece.bytes as usize;
        if end > usize::from(run.pages) * PAGE_BYTES as usize && !self.add_page(node, &mut run)
            || store.fetch_dirty(run.place, start, piece.bytes as usize, from, piece.address).is_err()
        {
            return false;
        }
        run.end = end as u16;
        dirty.set_last(run);
        store.lengthen_dirty(run.place, run.end);
        let now_ns = time::real_ns();
        store.set_dirty_time(run.place, now_ns);
        self.was_filled(node, now_ns);
        true
    }

    /// Takes a place for one page more of a run. False: it is as long as one may be, another file has the place behind it, or the file system may not have room for the
    /// page later.
    fn add_page(&self, node: &NodeRef, run: &mut Run) -> bool {
        let (dirty, room) = (node.dirty(), node.file_system().room());
        let last = run.place + u32::from(run.pages) - 1;
        if run.pages == RUN_PAGES || !room.has(PAGE_BYTES) || !self.dirty.store.take_next_dirty(last) {
            return false;
        }
        run.pages += 1;
        dirty.set_last(*run);
        let bytes = room::pages_bytes(run.number, run.pages.into());
        room.keep_pages(bytes - dirty.kept_bytes.replace(bytes));
        true
    }

    /// Makes room behind the last pages of a file, of which its file system has not heard, if they are full. False: there is none, nothing can be appended to them.
    pub fn make_room_behind_run(&self, node: &NodeRef) -> bool {
        let size = node.known_stat().new_size();
        let is_full = |run: &Run| run.file_end() == size && u64::from(run.end) == u64::from(run.pages) * PAGE_BYTES;
        let full = node.dirty().last().filter(|run| size > 0 && is_full(run));
        full.is_none_or(|mut run| self.add_page(node, &mut run))
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

    /// Whether nobody needs the dirty pages of a file when its name is removed: they are its last ones, and the file was found by that name and nothing else.
    pub fn ends_with_its_name(&self, node: &NodeRef) -> bool {
        const CALL_AND_NAME: usize = 2;
        let is_last = node.links() == 1 && !node.has_pages() && !node.dirty().is_leaving.get();
        let is_last = is_last && node.file_system().room().spares_pages(0);
        node.known_stat().new_size() > 0 && is_last && node.is_held_by(CALL_AND_NAME)
    }

    /// The name of a file is about to be removed, which the caller alone has in use. Its pages are not written back from now on, nor by a successor:
    /// the file system may give its number to another file. `None`: it has none.
    pub(in crate::files) fn begin_leaving(&self, node: &NodeRef) -> Option<Leaving> {
        let place = node.dirty().last()?.place;
        node.dirty().is_leaving.set(true);
        self.dirty.store.forget_dirty(place).map(Leaving)
    }

    /// The name `is_removed`, or not. The pages end, unless somebody has got the file meanwhile.
    pub(in crate::files) fn end_leaving(&self, node: &NodeRef, Leaving(record): Leaving, is_removed: bool) {
        let dirty = node.dirty();
        dirty.is_leaving.set(false);
        let Some(Run { number, place, pages, .. }) = dirty.last() else { return };
        if !is_removed || !node.is_held_by(1) {
            return self.dirty.store.remember_dirty(place, &record);
        }
        dirty.remove(number);
        self.dirty.store.release_dirty(place, pages.into());
        self.is_clean(node);
    }
}
