//! What the library of a member asks that exchanges messages by the kernel's primitives (`abi::m3ipc::own`).

use crate::server::{Caller, Handled, M3ipc, Step};
use crate::system::System;
use crate::threads::{Place, Wait};
use abi::Endpoint;
use abi::m3ipc::own;
use m3ipc::call::Call;
use m3ipc::endpoint::Endpoint as Name;
use m3ipc::error::Error;
use m3ipc::limits::{FOREVER, SLOT_BITS};
use m3ipc::rendezvous::Activity;

impl<S: System> M3ipc<S> {
    /// A call of the library.
    pub fn own_call(&mut self, thread: Endpoint, words: &[u64; 7]) -> Handled {
        let [number, a, b, c, ..] = *words;
        let caller = self.caller(thread)?;
        let place = caller.bound()?;
        match number {
            own::MODE => self.mode(&caller, place, a),
            own::RESOLVE => self.resolve(&caller, place, Name::from_raw(a as i32)),
            own::NAME => self.name_of_thread(place, Endpoint(a as u32)),
            own::FETCH => self.fetch(&caller, place, Name::from_raw(a as i32), b, c != 0),
            own::RESUME => self.resume(&caller, place, a, Name::from_raw(b as i32), c),
            own::LIMIT => self.limit(&caller, a as i64),
            _ => Err(Error::NotImplemented),
        }
    }

    fn mode(&mut self, caller: &Caller, place: Place, counter: u64) -> Handled {
        if !self.is_direct(caller, place)? {
            return Ok(Step::Done(0));
        }
        let member = self.member(place)?;
        member.counter = counter;
        Ok(Step::Done((member.binding << SLOT_BITS | place.number.index() as u64) as i64))
    }

    fn is_direct(&mut self, caller: &Caller, place: Place) -> Result<bool, Error> {
        let member = self.member(place)?;
        Ok(member.is_direct && member.thread == caller.thread)
    }

    fn resolve(&mut self, caller: &Caller, place: Place, name: Name) -> Handled {
        let is_direct = self.is_direct(caller, place)?;
        let container = self.container_of(place)?;
        let number = container.machine.locate(name)?;
        if number == place.number {
            return Err(Error::BadPeer);
        }
        let Some(peer) = container.members.get_mut(number).filter(|peer| peer.is_direct && is_direct) else {
            return Ok(Step::Done(0));
        };
        peer.known_to.insert(place.number);
        Ok(Step::Done((own::FOUND | u64::from(peer.thread.0)) as i64))
    }

    fn name_of_thread(&mut self, place: Place, thread: Endpoint) -> Handled {
        let container = self.container_of(place)?;
        let members = &container.members;
        // A sender may end as soon as its message is received.
        let number = members.of_thread(thread).or_else(|| members.last_of_thread(thread)).ok_or(Error::NotBound)?;
        let name = container.machine.last_name(number);
        if let Some(peer) = container.members.get_mut(number) {
            peer.known_to.insert(place.number);
        }
        Ok(Step::Done((own::FOUND | u64::from(name.raw() as u32)) as i64))
    }

    fn fetch(&mut self, caller: &Caller, place: Place, from: Name, address: u64, messages_only: bool) -> Handled {
        if !self.is_direct(caller, place)? {
            return Ok(Step::Done(own::REDO as i64));
        }
        let step = if messages_only {
            self.receive_request(caller, address, 0)
        } else {
            self.receive(caller, from.raw(), address, 0)
        }?;
        let has_more =
            self.member(place)?.undelivered.is_some() || self.container_of(place)?.machine.may_have_more(place.number);
        // What is noted for a call that is made again is 0: then the caller looks once more.
        Ok(if step == Step::Done(0) && !has_more { Step::Done(own::LAST as i64) } else { step })
    }

    fn resume(&mut self, caller: &Caller, place: Place, call: u64, name: Name, address: u64) -> Handled {
        if call == Call::SendReceive as u64 {
            if let Some(step) = self.undelivered(caller, place, name, address)? {
                return Ok(step);
            }
            // Its request was received while the primitives were ours.
            if matches!(self.container_of(place)?.machine.activity(place.number), Activity::Receiving(_)) {
                self.member(place)?.caller = caller.thread;
                return self.wait(caller, Wait::Message { address }, FOREVER);
            }
        }
        if self.is_direct(caller, place)? && name != Name::ANY {
            self.check_peer(place, call, name)?;
        }
        Ok(Step::Done(own::REDO as i64))
    }

    /// Checks that the peer of a primitive that failed is alive.
    fn check_peer(&mut self, place: Place, call: u64, name: Name) -> Result<(), Error> {
        let number = self.container_of(place)?.machine.locate(name);
        let peer = number.and_then(|number| self.member(Place { number, ..place }).map(|peer| peer.thread));
        if peer.is_ok_and(|peer| self.system.state(peer).is_none()) {
            self.look_for_ends();
        }
        let located = self.container_of(place)?.machine.locate(name);
        located.map(drop).map_err(|error| match error {
            Error::DestinationDied if call == Call::Receive as u64 => Error::SourceDied,
            Error::DestinationDied if call == Call::SendReceive as u64 => Error::PeerDied,
            other => other,
        })
    }

    fn limit(&mut self, caller: &Caller, limit_ms: i64) -> Handled {
        let deadline_ns = match limit_ms {
            ..0 => 0,
            limit => self.system.now_ns().saturating_add((limit as u64).saturating_mul(1_000_000)),
        };
        self.threads.set_deadline(caller.thread, deadline_ns);
        Ok(Step::Done(0))
    }
}
