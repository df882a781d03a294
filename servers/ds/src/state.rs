//! The state of ds: services, their subscribers, and the values that services have stored.

use abi::{Endpoint, Errno, Name};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};
use sys::Result;
use sys::fallible::{self, TryVec};

/// Longest value.
pub const VALUE_BYTES: usize = 1024;
/// Most keys of one service.
const KEYS: usize = 32;
/// Most names one service may subscribe to.
const SUBSCRIPTIONS: usize = 64;

/// A name or key as it is kept.
type Text = [u8; 16];

/// The name that stands for every service.
const ANY: Text = [0; 16];

/// What is known of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its endpoint, or when it is down whom to expect.
    pub endpoint: u32,
    /// It is up.
    pub up: bool,
}

/// A subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Subscriber {
    endpoint: u32,
    wanted: Vec<Text>,
    /// Services that have changed since this subscriber asked last, the earliest first.
    pending: Vec<Text>,
    /// It has been told that there is something.
    told: bool,
}

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    services: BTreeMap<Text, Known>,
    /// By slot.
    subscribers: BTreeMap<u32, Subscriber>,
    /// By slot and key.
    values: BTreeMap<(u32, Text), Vec<u8>>,
}

/// Where a state is written: a vector that grows fallibly.
struct Output<'a>(&'a mut Vec<u8>);

impl Flavor for Output<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.try_push(byte).map_err(|_| postcard::Error::SerializeBufferFull)
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.try_extend_from_slice(bytes).map_err(|_| postcard::Error::SerializeBufferFull)
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

impl State {
    /// Writes the state into `bytes`, in place of what they were.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn encode(&self, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.clear();
        postcard::serialize_with_flavor(self, Output(bytes)).map_err(|_| Errno::ENOMEM)
    }

    /// From bytes; subscribers with pending events are told again.
    pub fn decode(bytes: &[u8]) -> Option<State> {
        let mut state: State = postcard::from_bytes(bytes).ok()?;
        state.subscribers.values_mut().for_each(|subscriber| subscriber.told = false);
        Some(state)
    }

    /// A service has come up or gone down. Nothing happens when that was known.
    #[expect(clippy::disallowed_methods, reason = "bounded by the number of services: from the heap's reserve")]
    pub fn changed(&mut self, name: Name, known: Known) {
        if self.services.insert(name.0, known) == Some(known) {
            return;
        }
        for subscriber in self.subscribers.values_mut() {
            if subscriber.wanted.iter().any(|wanted| *wanted == name.0 || *wanted == ANY) {
                subscriber.pending.retain(|other| *other != name.0);
                subscriber.pending.push(name.0);
            }
        }
    }

    /// Tells every subscriber that has events and does not know yet; `tell` gives false when it is dead.
    pub fn notify(&mut self, mut tell: impl FnMut(Endpoint) -> bool) {
        self.subscribers.retain(|_, subscriber| {
            let news = !subscriber.pending.is_empty() && !subscriber.told;
            subscriber.told |= news;
            !news || tell(Endpoint(subscriber.endpoint))
        });
    }

    /// The endpoint of a service.
    ///
    /// # Errors
    /// `ENOENT`: nobody knows it; `EAGAIN`: it is down now.
    pub fn lookup(&self, name: Name) -> Result<Endpoint> {
        match self.services.get(&name.0) {
            None => Err(Errno::ENOENT),
            Some(known) if known.up => Ok(Endpoint(known.endpoint)),
            Some(_) => Err(Errno::EAGAIN),
        }
    }

    /// The endpoint of a service that is up or will be.
    ///
    /// # Errors
    /// `ENOENT`: there is none.
    pub fn expected(&self, name: Name) -> Result<Endpoint> {
        let known = self.services.get(&name.0).map(|known| Endpoint(known.endpoint));
        known.filter(|endpoint| *endpoint != Endpoint::NONE).ok_or(Errno::ENOENT)
    }

    /// From now on events of this service are kept for the subscriber. What its predecessor wanted is forgotten.
    ///
    /// # Errors
    /// `ENOSPC`: too many names; `ENOMEM`.
    pub fn subscribe(&mut self, who: Endpoint, name: Name) -> Result<()> {
        let subscriber = self.subscribers.entry(who.slot() as u32).or_default();
        if subscriber.endpoint != who.0 {
            *subscriber = Subscriber { endpoint: who.0, ..Subscriber::default() };
        }
        if subscriber.wanted.contains(&name.0) {
            return Ok(());
        }
        if subscriber.wanted.len() == SUBSCRIPTIONS {
            return Err(Errno::ENOSPC);
        }
        subscriber.wanted.try_push(name.0)
    }

    /// Takes the next event for a subscriber: a service, and how it stands now.
    pub fn next_event(&mut self, who: Endpoint) -> Option<(Name, Known)> {
        let subscriber =
            self.subscribers.get_mut(&(who.slot() as u32)).filter(|subscriber| subscriber.endpoint == who.0)?;
        if subscriber.pending.is_empty() {
            subscriber.told = false;
            return None;
        }
        let name = subscriber.pending.remove(0);
        let known = self.services.get(&name)?;
        Some((Name(name), *known))
    }

    /// Keeps a value under a key of the service in `slot`.
    ///
    /// # Errors
    /// `ENOSPC`: too many keys; `EINVAL`: too long a value; `ENOMEM`.
    pub fn store(&mut self, slot: usize, key: Name, value: &[u8]) -> Result<()> {
        let slot = slot as u32;
        if value.len() > VALUE_BYTES {
            return Err(Errno::EINVAL);
        }
        let is_new = !self.values.contains_key(&(slot, key.0));
        if is_new && self.values.range((slot, ANY)..=(slot, [0xff; 16])).count() >= KEYS {
            return Err(Errno::ENOSPC);
        }
        self.values.insert((slot, key.0), fallible::copied(value)?);
        Ok(())
    }

    /// What is kept under a key.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn retrieve(&self, slot: usize, key: Name) -> Result<&[u8]> {
        self.values.get(&(slot as u32, key.0)).map(Vec::as_slice).ok_or(Errno::ENOENT)
    }

    /// Forgets a key.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn delete(&mut self, slot: usize, key: Name) -> Result<()> {
        self.values.remove(&(slot as u32, key.0)).map(drop).ok_or(Errno::ENOENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VFS: Endpoint = Endpoint::new(8, 1);

    fn name(text: &str) -> Name {
        Name::new(text).expect("is a name")
    }

    fn up(generation: u32) -> Known {
        Known { endpoint: Endpoint::new(20, generation).0, up: true }
    }

    fn down() -> Known {
        Known { endpoint: Endpoint::current(20).0, up: false }
    }

    fn told(state: &mut State) -> Vec<Endpoint> {
        let mut told = Vec::new();
        state.notify(|who| {
            told.push(who);
            true
        });
        told
    }

    #[test]
    fn a_name_is_found_while_its_service_is_up() {
        let mut state = State::default();
        assert_eq!(state.lookup(name("uart")), Err(Errno::ENOENT));
        state.changed(name("uart"), up(1));
        assert_eq!(state.lookup(name("uart")), Ok(Endpoint::new(20, 1)));
        state.changed(name("uart"), down());
        assert_eq!(state.lookup(name("uart")), Err(Errno::EAGAIN));
    }

    #[test]
    fn a_service_that_restarts_is_expected_and_one_that_is_given_up_is_not() {
        let mut state = State::default();
        assert_eq!(state.expected(name("uart")), Err(Errno::ENOENT));
        state.changed(name("uart"), down());
        assert_eq!(state.expected(name("uart")), Ok(Endpoint::current(20)));
        state.changed(name("uart"), up(1));
        assert_eq!(state.expected(name("uart")), Ok(Endpoint::new(20, 1)));
        state.changed(name("uart"), Known { endpoint: Endpoint::NONE.0, up: false });
        assert_eq!(state.expected(name("uart")), Err(Errno::ENOENT));
    }

    #[test]
    fn a_subscriber_hears_of_its_services_only() {
        let mut state = State::default();
        state.subscribe(VFS, name("uart")).expect("there is room");
        state.changed(name("rtc"), up(1));
        assert_eq!(told(&mut state), []);
        state.changed(name("uart"), up(1));
        assert_eq!(told(&mut state), [VFS]);
        assert_eq!(state.next_event(VFS), Some((name("uart"), up(1))));
        assert_eq!(state.next_event(VFS), None);
    }

    #[test]
    fn a_subscriber_to_everything_hears_everything() {
        let mut state = State::default();
        state.subscribe(VFS, Name::default()).expect("there is room");
        state.changed(name("rtc"), up(1));
        assert_eq!(state.next_event(VFS), Some((name("rtc"), up(1))));
    }

    #[test]
    fn a_subscriber_is_told_once_until_it_has_fetched_all() {
        let mut state = State::default();
        state.subscribe(VFS, name("uart")).expect("there is room");
        state.changed(name("uart"), up(1));
        assert_eq!(told(&mut state), [VFS]);
        state.changed(name("uart"), down());
        assert_eq!(told(&mut state), []);
        // What it fetches is how things stand now, once.
        assert_eq!(state.next_event(VFS), Some((name("uart"), down())));
        assert_eq!(state.next_event(VFS), None);
        state.changed(name("uart"), up(2));
        assert_eq!(told(&mut state), [VFS]);
    }

    #[test]
    fn what_is_known_already_is_no_event() {
        let mut state = State::default();
        state.subscribe(VFS, name("uart")).expect("there is room");
        state.changed(name("uart"), up(1));
        state.next_event(VFS);
        state.changed(name("uart"), up(1));
        assert_eq!(state.next_event(VFS), None);
    }

    #[test]
    fn a_successor_starts_without_the_subscriptions_of_its_predecessor() {
        let mut state = State::default();
        let successor = Endpoint::new(8, 2);
        state.subscribe(VFS, name("uart")).expect("there is room");
        state.subscribe(successor, name("rtc")).expect("there is room");
        state.changed(name("uart"), up(1));
        state.changed(name("rtc"), up(1));
        assert_eq!(state.next_event(VFS), None);
        assert_eq!(state.next_event(successor), Some((name("rtc"), up(1))));
        assert_eq!(state.next_event(successor), None);
    }

    #[test]
    fn the_dead_are_not_subscribers_any_more() {
        let mut state = State::default();
        state.subscribe(VFS, name("uart")).expect("there is room");
        state.changed(name("uart"), up(1));
        state.notify(|_| false);
        assert!(state.subscribers.is_empty());
    }

    #[test]
    fn a_killed_ds_tells_again_what_was_not_fetched() {
        let mut state = State::default();
        state.subscribe(VFS, name("uart")).expect("there is room");
        state.changed(name("uart"), up(1));
        told(&mut state);
        let mut bytes = Vec::new();
        state.encode(&mut bytes).expect("there is memory");
        let mut successor = State::decode(&bytes).expect("is what was encoded");
        assert_eq!(told(&mut successor), [VFS]);
        assert_eq!(successor.next_event(VFS), Some((name("uart"), up(1))));
    }

    #[test]
    fn values_belong_to_the_slot_and_are_limited() {
        let mut state = State::default();
        for at in 0..KEYS {
            state.store(20, Name::from_words(at as u64 + 1, 0), b"x").expect("there is room");
        }
        assert_eq!(state.store(20, name("more"), b"x"), Err(Errno::ENOSPC));
        state.store(20, Name::from_words(1, 0), b"new").expect("a key that exists may change");
        state.store(21, name("more"), b"y").expect("another service has its own");
        assert_eq!(state.retrieve(20, Name::from_words(1, 0)), Ok(&b"new"[..]));
        assert_eq!(state.retrieve(20, name("more")), Err(Errno::ENOENT));
        assert_eq!(state.store(22, name("long"), &[0; VALUE_BYTES + 1]), Err(Errno::EINVAL));
        state.delete(21, name("more")).expect("is there");
        assert_eq!(state.delete(21, name("more")), Err(Errno::ENOENT));
    }
}
