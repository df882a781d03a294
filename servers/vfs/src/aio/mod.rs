//! Contexts of asynchronous I/O (io_setup(2)): which there are, and the completed requests of each.
//!
//! A request is carried out inside the io_submit that submits it (`calls::aio`), which then completes it here. Its completion waits in
//! the context's ring, in preserved memory (`keep::contexts`), until an io_getevents collects it: so one is neither lost nor told twice when vfs
//! dies. Invariant: completed and reserved requests together are at most as many as the ring has places.

use crate::{
    callers::lives::Identity,
    events::Watchers,
    keep::{
        Kept, Store,
        records::{CompletionRecord, ContextRecord},
    },
};
use abi::{Errno, Word};
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};
use server::quota::Share;
use sys::fallible::TryVec;

/// Bytes of a `struct io_event`.
pub const EVENT_BYTES: usize = 32;
/// Events that are copied to a program at a time.
const CHUNK: usize = 16;

/// One context.
#[derive(Debug)]
pub struct Context {
    record: Kept<ContextRecord>,
    /// Requests in progress: each needs a place when it completes.
    reserved: Cell<u32>,
    ended: Cell<bool>,
    watchers: Watchers,
    /// What its user is charged for its requests.
    _charge: Share,
}

/// A request in progress.
#[derive(Debug)]
pub struct Reservation(Rc<Context>);

impl Context {
    /// Makes a context for so many requests. `EAGAIN`: no room, or the user has the share.
    pub fn new(
        store: &Rc<Store>,
        identity: Identity,
        requests: u32,
        user: u32,
        address: u64,
    ) -> Result<Rc<Context>, Errno> {
        let charge = store.charge_requests(user, requests)?;
        let identity = identity.to_word();
        let record = ContextRecord { identity, address, first: 0, requests, head: 0, completed: 0, user };
        Ok(Rc::new(Context::with(store.new_context(record)?, charge)))
    }

    fn with(record: Kept<ContextRecord>, charge: Share) -> Context {
        let (reserved, ended) = (Cell::new(0), Cell::new(false));
        Context { record, reserved, ended, watchers: Watchers::default(), _charge: charge }
    }

    /// Its id.
    pub fn address(&self) -> u64 {
        self.record.get().address
    }

    /// How many requests it was made for.
    pub fn requests(&self) -> u64 {
        self.record.get().requests.into()
    }

    /// How many completed requests wait.
    pub fn completed(&self) -> u64 {
        self.record.get().completed.into()
    }

    /// Whether it was destroyed.
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Fire when a request has completed, or the context has ended.
    pub fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    fn key(&self) -> (u64, u64) {
        let record = self.record.get();
        (record.identity, record.address)
    }

    /// Reserves the place of a request. `EAGAIN`: all are in use.
    pub fn reserve(self: &Rc<Self>) -> Result<Reservation, Errno> {
        let ContextRecord { requests, completed, .. } = self.record.get();
        if completed + self.reserved.get() >= requests {
            return Err(Errno::EAGAIN);
        }
        self.reserved.set(self.reserved.get() + 1);
        Ok(Reservation(self.clone()))
    }

    /// Hands up to `most` completed requests over, oldest first: `store` gets the number of the first one and the bytes of some, and is called until
    /// there are no more. Returns how many. An error of `store`: none was handed over.
    pub fn collect(&self, most: u64, store: impl Fn(u64, &[u8]) -> Result<(), Errno>) -> Result<u64, Errno> {
        let mut count = 0;
        while count < most && self.completed() > 0 {
            let (bytes, length) = self.next_events(most - count);
            match store(count, bytes[..length].as_flattened()) {
                Ok(()) => self.remove(length as u32),
                Err(_) if count > 0 => break,
                Err(error) => return Err(error),
            }
            count += length as u64;
        }
        Ok(count)
    }

    /// The first completed requests as the program is told of them, and how many.
    fn next_events(&self, most: u64) -> ([[u8; EVENT_BYTES]; CHUNK], usize) {
        let length = self.completed().min(most).min(CHUNK as u64) as usize;
        let mut events = [[0; EVENT_BYTES]; CHUNK];
        for (index, event) in events[..length].iter_mut().enumerate() {
            // One that something has written into is lost; the program gets its event all the same.
            let lost = CompletionRecord { data: 0, object: 0, result: Word::to_word(Err(Errno::EIO)) };
            let known = self.record.store().completion(self.place(index as u32)).unwrap_or(lost);
            let words = [known.data, known.object, known.result, 0];
            event.copy_from_slice(words.map(u64::to_le_bytes).as_flattened());
        }
        (events, length)
    }

    /// The place of the completed request with this number.
    fn place(&self, index: u32) -> u32 {
        let ContextRecord { first, requests, head, .. } = self.record.get();
        first + (head + index) % requests
    }

    fn remove(&self, count: u32) {
        self.record.update(|record| {
            record.head = (record.head + count) % record.requests;
            record.completed -= count;
        });
    }

    fn end(&self) {
        self.ended.set(true);
        self.record.store().clear_context(self.record.place());
        self.watchers.fire();
    }
}

impl Reservation {
    /// Completes the request. What a context that has ended is told is told to nobody.
    pub fn complete(self, record: &CompletionRecord) {
        let context = &self.0;
        if context.has_ended() {
            return;
        }
        context.record.store().set_completion(context.place(context.record.get().completed), record);
        context.record.update(|record| record.completed += 1);
        context.watchers.fire();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.reserved.set(self.0.reserved.get() - 1);
    }
}

/// All contexts, by process and id.
#[derive(Debug, Default)]
pub struct Contexts(RefCell<Vec<Rc<Context>>>);

impl Contexts {
    fn find(&self, identity: Identity, address: u64) -> Result<usize, usize> {
        self.0.borrow().binary_search_by_key(&(identity.to_word(), address), |context| context.key())
    }

    /// The context of a process with this id. `EINVAL`.
    pub fn get(&self, identity: Identity, address: u64) -> Result<Rc<Context>, Errno> {
        let index = self.find(identity, address).map_err(|_| Errno::EINVAL)?;
        Ok(self.0.borrow()[index].clone())
    }

    /// Enters a context. One that has its id ends: the program has unmapped its page. `ENOMEM`.
    pub fn add(&self, context: Rc<Context>) -> Result<(), Errno> {
        let (identity, address) = context.key();
        let identity = Identity::from_word(identity);
        let _ = self.end(identity, address);
        let index = self.find(identity, address).unwrap_or_else(|index| index);
        let added = self.0.borrow_mut().try_insert(index, context.clone());
        added.inspect_err(|_| context.end())
    }

    /// Ends the context of a process with this id. `EINVAL`.
    pub fn end(&self, identity: Identity, address: u64) -> Result<(), Errno> {
        let index = self.find(identity, address).map_err(|_| Errno::EINVAL)?;
        let context = self.0.borrow_mut().remove(index);
        context.end();
        Ok(())
    }

    /// Ends all contexts of a process.
    pub fn end_all(&self, identity: Identity) {
        let first_of_it = |context: &Rc<Context>| context.key().0 == identity.to_word();
        loop {
            let index = self.0.borrow().iter().position(first_of_it);
            let Some(index) = index else { return };
            let context = self.0.borrow_mut().remove(index);
            context.end();
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Takes over a context that a predecessor has left. False: the record is inconsistent, or memory is exhausted.
    pub fn restore(&self, store: &Rc<Store>, place: u32, record: ContextRecord) -> bool {
        if !store.claim_context(place, &record) {
            return false;
        }
        let Some(charge) = store.restore_requests(record.user, record.requests) else { return false };
        let context = Rc::new(Context::with(Kept::new(store, place, record), charge));
        self.add(context).is_ok()
    }
}
