//! Contexts of asynchronous I/O in preserved memory: what each is, its ring of completed requests, and how far each io_submit has come.
//!
//! A context owns a run of the table of completions, with a place for each request that it was made for. What is in a place counts while it is
//! among the `completed` ones from `head` on. Who uses these: `aio`.

use super::{
    Kept, Store,
    records::{CompletionRecord, ContextRecord, SubmissionRecord},
};
use abi::Errno;
use alloc::rc::Rc;
use server::quota::Share;

impl Store {
    /// Charges a user for the requests of a context. `EAGAIN`: beyond the user's share.
    pub fn charge_requests(&self, user: u32, requests: u32) -> Result<Share, Errno> {
        self.requests.take(user, requests as usize).map_err(|refusal| refusal.errno(Errno::EAGAIN, Errno::EAGAIN))
    }

    /// Charges a user for the requests of a context that a predecessor has left.
    pub fn restore_requests(&self, user: u32, requests: u32) -> Option<Share> {
        self.requests.restore(user, requests as usize).ok()
    }

    /// How many requests contexts have been made for.
    pub fn requests(&self) -> usize {
        self.requests.total()
    }

    /// Makes a context; the first place of its ring is filled in. `EAGAIN`: no room, or the user has the share.
    pub fn new_context(self: &Rc<Self>, mut record: ContextRecord) -> Result<Kept<ContextRecord>, Errno> {
        let turn = self.turn();
        record.first = self.rings.take(record.requests, record.user, turn).ok_or(Errno::EAGAIN)?;
        let Some(place) = self.contexts.pool.take(record.user, turn) else {
            self.rings.release(record.first, turn);
            return Err(Errno::EAGAIN);
        };
        let kept = Kept::new(self, place as u32, record);
        kept.set(record);
        Ok(kept)
    }

    /// Removes the record of a context that has ended.
    pub fn clear_context(&self, place: u32) {
        self.contexts.table.clear(&self.recover, place as usize);
    }

    /// Sets what is at this place of a ring.
    pub fn set_completion(&self, place: u32, record: &CompletionRecord) {
        self.completions.set(&self.recover, place as usize, record);
    }

    /// What is at this place of a ring.
    pub fn completion(&self, place: u32) -> Option<CompletionRecord> {
        self.completions.get(&self.recover, place as usize).record()
    }

    /// All contexts.
    pub fn contexts(&self) -> impl Iterator<Item = (u32, ContextRecord)> + '_ {
        self.contexts.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u32, entry.record()?)))
    }

    /// After a restart: a context is in use, with its ring. False: the record is inconsistent.
    pub fn claim_context(&self, place: u32, record: &ContextRecord) -> bool {
        let is_sound = record.head < record.requests && record.completed <= record.requests;
        let is_claimed = is_sound && self.rings.claim(record.first, record.requests);
        if is_claimed {
            self.contexts.pool.claim(place as usize, record.user);
        }
        is_claimed
    }

    /// How many requests of the io_submit with this number the thread in a slot has carried out.
    pub fn submitted(&self, slot: usize, number: u64) -> u64 {
        let known = self.submissions.get(&self.recover, slot).record();
        known.filter(|known| known.number == number).map_or(0, |known| known.done)
    }

    /// Sets how many requests of the io_submit with this number the thread in a slot has carried out.
    pub fn set_submitted(&self, slot: usize, number: u64, done: u64) {
        self.submissions.set(&self.recover, slot, &SubmissionRecord { number, done });
    }
}
