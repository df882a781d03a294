//! ds, the data store: names of services, events for those who depend on them, and small state that restarted services get back.
//!
//! `state` is what ds knows and decides; a snapshot of it lies in preserved memory, so that ds itself can be killed at any instant;
//! this file speaks with rs and the requesters. A change that was asked for is preserved before it is acknowledged; an event is forgotten
//! only after it was handed over, so that at worst it comes twice.
//!
//! ds waits for nobody but rs, which answers at once and never waits for ds, pm or anybody who may wait for ds.
//!
//! Start kinds: `Fresh` begins with nothing; `Restarted` and `Updated` begin with the last snapshot, whose form (`state`, by postcard) a new
//! program therefore has to understand; one that it does not counts as none.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod state;

use abi::ds::{Delete, Expect, Lookup, NextEvent, Request, Retrieve, Store, Subscribe};
use abi::endpoint::slot;
use abi::rs::NextChange;
use abi::{Endpoint, Errno, Message, Name};
use alloc::vec::Vec;
use recover::snapshot::Snapshots;
use server::{Service, SyncStep};
use state::{Known, State, VALUE_BYTES};
use sys::keep::Keep;
use sys::{Result, StartKind, copy, ipc};

/// `keep_bytes` of ds in the system file.
const KEEP_BYTES: usize = 1 << 20;
/// Changes when the bytes of a snapshot change their meaning.
const LAYOUT: u64 = 2;
/// The one part of the snapshot.
const WHOLE: usize = 0;
/// Bytes in which a snapshot tells the length of the state.
const LENGTH_BYTES: usize = 8;

sys::program!(main);

fn main(start: sys::Start) {
    let keep = Keep::take(KEEP_BYTES).expect("the preserved memory is taken once");
    let (snapshots, _) = Snapshots::open(keep, LAYOUT, 1);
    let preserved =
        if start.kind == StartKind::Fresh { None } else { snapshots.load(WHOLE, |bytes| State::decode(bytes.run()?)) };
    let state = preserved.unwrap_or_default();
    let mut ds = Ds { state, snapshots, saved: Vec::new(), spare: Vec::new(), unsaved: true, begin_again: true };
    ds.fetch();
    server::run(&mut ds)
}

struct Ds {
    state: State,
    snapshots: Snapshots,
    /// The state as it was preserved last.
    saved: Vec<u8>,
    /// Where the next one is written.
    spare: Vec<u8>,
    /// The state has changed since it was preserved.
    unsaved: bool,
    /// Everything has to be fetched from rs, not only what is new.
    begin_again: bool,
}

impl Service for Ds {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        self.save();
        if self.unsaved {
            return SyncStep::Done(message.reply(Err(Errno::ENOMEM)));
        }
        SyncStep::Done(self.answer(message).unwrap_or_else(|error| message.reply(Err(error))))
    }

    fn notified(&mut self, from: Endpoint) {
        if from.slot() == slot::RS {
            self.fetch();
        }
    }
}

impl Ds {
    /// Fetches from rs what has changed, and notifies the subscribers.
    fn fetch(&mut self) {
        loop {
            let request = NextChange { restart: self.begin_again };
            match ipc::call(Endpoint::RS, &request.message()).and_then(|reply| NextChange::results(&reply)) {
                Ok((low, high, endpoint, up)) => {
                    self.begin_again = false;
                    self.state.changed(Name::from_words(low, high), Known { endpoint: endpoint.0, up });
                    self.unsaved = true;
                }
                Err(Errno::ENOENT) => break,
                Err(error) => panic!("rs does not tell what has changed: {error}"),
            }
        }
        self.save();
        self.state.notify(|subscriber| ipc::notify(subscriber) != Err(Errno::EDEADSRCDST));
    }

    /// Preserves what has changed without a request. What fails is tried again before the next request.
    fn save(&mut self) {
        if self.unsaved {
            self.unsaved = self.preserve().is_err();
        }
    }

    /// Preserves a state that a request has changed, before that is acknowledged; or takes the change back.
    fn commit(&mut self) -> Result<()> {
        let result = self.preserve();
        if result.is_err() {
            // The memory of the state is given back first, so that there is enough for the one before it.
            self.state = State::default();
            self.state = State::decode(&self.saved).expect("is what was encoded");
        }
        result
    }

    fn preserve(&mut self) -> Result<()> {
        self.state.encode(&mut self.spare)?;
        if self.spare.len() + LENGTH_BYTES > self.snapshots.capacity() {
            return Err(Errno::ENOSPC);
        }
        core::mem::swap(&mut self.saved, &mut self.spare);
        let state = &self.saved;
        self.snapshots.save([WHOLE].into_iter(), |_, writer| writer.run((state, &[])));
        Ok(())
    }

    fn answer(&mut self, message: &Message) -> Result<Message> {
        let from = message.source;
        if !from.is_service() {
            return Err(Errno::EPERM);
        }
        match Request::decode(message).ok_or(Errno::ENOSYS)? {
            Request::Lookup(Lookup { name_low, name_high }) => {
                let endpoint = self.state.lookup(Name::from_words(name_low, name_high))?;
                Ok(Lookup::reply(message, 0, endpoint))
            }
            Request::Expect(Expect { name_low, name_high }) => {
                let endpoint = self.state.expected(Name::from_words(name_low, name_high))?;
                Ok(Expect::reply(message, 0, endpoint))
            }
            Request::Subscribe(Subscribe { name_low, name_high }) => {
                self.state.subscribe(from, Name::from_words(name_low, name_high))?;
                self.commit()?;
                Ok(message.reply(Ok(0)))
            }
            Request::NextEvent(NextEvent {}) => {
                let (name, known) = self.state.next_event(from).ok_or(Errno::ENOENT)?;
                self.unsaved = true;
                let (low, high) = name.to_words();
                Ok(NextEvent::reply(message, 0, low, high, Endpoint(known.endpoint), known.up))
            }
            Request::Store(Store { key_low, key_high, grant, bytes }) => {
                let mut value = [0; VALUE_BYTES];
                let value = value.get_mut(..bytes as usize).ok_or(Errno::EINVAL)?;
                copy::from_grant(from, grant, 0, value)?;
                self.state.store(from.slot(), Name::from_words(key_low, key_high), value)?;
                self.commit()?;
                Ok(message.reply(Ok(0)))
            }
            Request::Retrieve(Retrieve { key_low, key_high, grant, bytes }) => {
                let value = self.state.retrieve(from.slot(), Name::from_words(key_low, key_high))?;
                let length = value.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
                copy::to_grant(from, grant, 0, &value[..length])?;
                Ok(message.reply(Ok(length as u64)))
            }
            Request::Delete(Delete { key_low, key_high }) => {
                self.state.delete(from.slot(), Name::from_words(key_low, key_high))?;
                self.commit()?;
                Ok(message.reply(Ok(0)))
            }
        }
    }
}
