//! The debug registers of a traced thread (`u_debugreg` of `struct user`), as data: which places are watched, and what they held.
//!
//! No register of the processor is used. While [`Watches::are_active`] the thread runs by single steps, and pm compares the places after each
//! (`trace/watch.rs`, ADR 148).

use abi::{Errno, layout};

/// DR0 to DR3.
pub const PLACES: usize = 4;
/// DR6 with no bit set that says anything.
const INITIAL_STATUS: u64 = 0xffff_0ff0;
/// BS in DR6: a single step has ended.
const STEPPED: u64 = 0x4000;
/// A place's bits in DR7: enabled, by 2; kind and length, by 4.
const ENABLED: u64 = 3;
const FIELDS_SHIFT: usize = 16;

/// What the watched places hold; `None`: the place is not watched for stores, or cannot be read.
pub type Values = [Option<u64>; PLACES];

/// A watched place holds another value.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    address: u64,
    length: usize,
    value: u64,
}

/// What happens at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Execute,
    Write,
    ReadOrWrite,
}

/// A place that was named once.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: u64,
    access: Access,
    bytes: u64,
    enabled: bool,
}

impl Place {
    /// What DR7 says of the place `n`. `EINVAL`: of ports, or no such length.
    fn decode(control: u64, n: usize, address: u64) -> Result<Place, Errno> {
        let fields = control >> (FIELDS_SHIFT + 4 * n);
        let bytes = match fields >> 2 & 3 {
            0 => 1,
            1 => 2,
            2 => 8,
            _ => 4,
        };
        let access = match fields & 3 {
            0 if bytes == 1 => Access::Execute,
            1 => Access::Write,
            3 => Access::ReadOrWrite,
            _ => return Err(Errno::EINVAL),
        };
        Place { address, access, bytes, enabled: is_enabled(control, n) }.checked()
    }

    /// `EINVAL`: it is not aligned, not of user memory, or watched for what steps do not show: loads.
    fn checked(self) -> Result<Place, Errno> {
        let is_possible = !(self.enabled && self.access == Access::ReadOrWrite);
        let is_place = self.address.is_multiple_of(self.bytes) && self.address < layout::USER_END;
        if is_possible && is_place { Ok(self) } else { Err(Errno::EINVAL) }
    }
}

fn is_enabled(control: u64, n: usize) -> bool {
    control >> (2 * n) & ENABLED != 0
}

/// The debug registers of a traced thread.
#[derive(Clone, Copy, Debug)]
pub struct Watches {
    places: [Option<Place>; PLACES],
    /// DR7, as it was set.
    control: u64,
    /// DR6.
    status: u64,
    /// What the places held before the instruction that runs; `None`: it is read before the next one.
    seen: Option<Values>,
    /// rip and rsp before that instruction.
    from: (u64, u64),
    /// The flag RF: the next instruction runs although its execution is watched.
    resumes: bool,
}

impl Watches {
    /// Nothing is watched.
    pub const NONE: Watches = Watches {
        places: [None; PLACES],
        control: 0,
        status: INITIAL_STATUS,
        seen: None,
        from: (0, 0),
        resumes: false,
    };

    /// Debug register `n` of 0 to 7.
    pub fn peek(&self, n: usize) -> u64 {
        match n {
            0..PLACES => self.places[n].map_or(0, |place| place.address),
            6 => self.status,
            7 => self.control,
            _ => 0,
        }
    }

    /// Changes debug register `n`. `EIO`: there is none; `EINVAL`: it cannot be watched so.
    pub fn poke(&mut self, n: usize, value: u64) -> Result<(), Errno> {
        match n {
            0..PLACES => self.set_address(n, value)?,
            6 => self.status = value,
            7 => self.set_control(value)?,
            _ => return Err(Errno::EIO),
        }
        self.seen = None;
        Ok(())
    }

    /// As Linux: the address must suit what DR7 said last of this place, if the place was named before.
    fn set_address(&mut self, n: usize, address: u64) -> Result<(), Errno> {
        let unnamed = Place { address, access: Access::Write, bytes: 1, enabled: false };
        let place = self.places[n].map_or(unnamed, |place| Place { address, ..place });
        self.places[n] = Some(place.checked()?);
        Ok(())
    }

    fn set_control(&mut self, control: u64) -> Result<(), Errno> {
        let mut places = self.places;
        for (n, place) in places.iter_mut().enumerate() {
            if place.is_some() || is_enabled(control, n) {
                let address = place.map_or(0, |place| place.address);
                *place = Some(Place::decode(control, n, address)?);
            }
        }
        (self.places, self.control) = (places, control);
        Ok(())
    }

    /// Whether the thread has to run by steps.
    pub fn are_active(&self) -> bool {
        self.enabled().next().is_some()
    }

    fn enabled(&self) -> impl Iterator<Item = (usize, Place)> {
        let enabled = |(n, place): (usize, Option<Place>)| Some((n, place.filter(|place| place.enabled)?));
        self.places.into_iter().enumerate().filter_map(enabled)
    }

    /// The places that are watched for stores: which, address, length.
    pub fn stores(&self) -> impl Iterator<Item = (usize, u64, usize)> {
        let stores = self.enabled().filter(|(_, place)| place.access == Access::Write);
        stores.map(|(n, place)| (n, place.address, place.bytes as usize))
    }

    /// The thread is about to run an instruction. `values`: what the places hold, where that was not known.
    pub fn begin_step(&mut self, values: Option<Values>, rip: u64, rsp: u64) {
        self.seen = values.or(self.seen);
        self.from = (rip, rsp);
    }

    /// Whether the values have to be read before the next instruction.
    pub fn is_blind(&self) -> bool {
        self.seen.is_none()
    }

    /// The thread has not merely run an instruction: it is stopped, or pm or another server has worked for it.
    pub fn forget_values(&mut self) {
        self.seen = None;
    }

    /// rip and rsp before the instruction that has run.
    pub fn step_began_at(&self) -> (u64, u64) {
        self.from
    }

    /// Which places have changed if they hold these values now: bits of DR6.
    pub fn changed(&self, values: &Values) -> u64 {
        let Some(seen) = self.seen else { return 0 };
        let has_changed = |n: usize| matches!((seen[n], values[n]), (Some(before), Some(now)) if before != now);
        (0..PLACES).filter(|n| has_changed(*n)).fold(0, |bits, n| bits | 1 << n)
    }

    /// What of these values differs from what the places held.
    pub fn stored(&self, values: &Values) -> impl Iterator<Item = Store> {
        let changed = self.changed(values);
        let stored = self.stores().filter(move |(n, ..)| changed & 1 << n != 0);
        stored.filter_map(|(n, address, length)| Some(Store { address, length, value: values[n]? }))
    }

    /// Another thread has made a store.
    pub fn learn(&mut self, store: Store) {
        let Some(mut seen) = self.seen else { return };
        for (n, address, length) in self.stores() {
            if (address, length) == (store.address, store.length) {
                seen[n] = Some(store.value);
            }
        }
        self.seen = Some(seen);
    }

    /// The instruction has run, `rip` is at the next one, and the places hold these values. `is_seen`: the tracer sees it as a single step.
    pub fn end_step(&mut self, values: Values, rip: u64, is_seen: bool) {
        self.status = INITIAL_STATUS | self.changed(&values) | if is_seen { STEPPED } else { 0 };
        self.seen = Some(values);
        // A string instruction goes on, or a report has come again since pm died: the instruction is still to run.
        self.resumes &= rip == self.from.0;
    }

    /// Whether the execution of the instruction at `rip`, which is the next, is watched. If so, it runs the next time.
    pub fn stop_before(&mut self, rip: u64) -> bool {
        let is_here = |place: &Place| place.access == Access::Execute && place.address == rip;
        let bits = self.enabled().filter(|(_, place)| is_here(place)).fold(0, |bits, (n, _)| bits | 1 << n);
        if bits == 0 || self.resumes {
            return false;
        }
        self.resumes = true;
        self.from.0 = rip;
        self.status = INITIAL_STATUS | bits;
        true
    }

    /// The flag RF of the thread.
    pub fn resumes(&self) -> bool {
        self.resumes
    }

    /// The tracer sets the flag RF.
    pub fn set_resumes(&mut self, resumes: bool) {
        self.resumes = resumes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u64 = 0x1000;

    fn watching(control: u64) -> Watches {
        let mut watches = Watches::NONE;
        for n in 0..PLACES {
            watches.poke(n, ADDRESS + 8 * n as u64).unwrap();
        }
        watches.poke(7, control).unwrap();
        watches
    }

    #[test]
    fn what_is_no_place_is_refused_and_nothing_changes() {
        let mut watches = Watches::NONE;
        assert_eq!(watches.poke(0, layout::USER_END), Err(Errno::EINVAL));
        assert_eq!(watches.poke(0, ADDRESS + 1), Ok(()));
        for (what, control) in [("ports", 0x2_0001), ("two bytes", 0x5_0001), ("four", 0xd_0001), ("loads", 0x3_0001)] {
            assert_eq!(watches.poke(7, control), Err(Errno::EINVAL), "{what}");
            assert_eq!((watches.peek(7), watches.are_active()), (0, false));
        }
        assert_eq!(watches.poke(7, 0x1_0001), Ok(()));
        assert_eq!((watches.poke(4, 0), watches.poke(5, 0)), (Err(Errno::EIO), Err(Errno::EIO)));
    }

    #[test]
    fn a_place_that_was_never_named_may_be_described_in_any_way_while_it_is_off() {
        let mut watches = Watches::NONE;
        assert_eq!(watches.poke(7, 0x2_0000), Ok(()));
        watches.poke(0, ADDRESS).unwrap();
        assert_eq!(watches.poke(7, 0x2_0000), Err(Errno::EINVAL));
    }

    #[test]
    fn a_changed_value_is_told_once_and_an_unknown_one_never() {
        let mut watches = watching(0x1999_0055);
        let values = |first| [Some(first), Some(0), None, Some(0)];
        watches.begin_step(Some(values(1)), 0, 0);
        for (now, bits) in [(values(1), 0), (values(2), 1), ([Some(2), Some(0), Some(9), None], 0), (values(2), 0)] {
            assert_eq!(watches.changed(&now), bits);
            watches.end_step(now, 0, false);
            assert_eq!(watches.peek(6), INITIAL_STATUS | bits);
        }
        watches.end_step(values(3), 0, true);
        assert_eq!(watches.peek(6), INITIAL_STATUS | STEPPED | 1);
    }

    #[test]
    fn an_instruction_that_is_watched_stops_once() {
        let mut watches = watching(0x4);
        assert!(!watches.stop_before(ADDRESS));
        assert!(watches.stop_before(ADDRESS + 8));
        assert_eq!(watches.peek(6), INITIAL_STATUS | 2);
        assert!(!watches.stop_before(ADDRESS + 8), "RF");
        watches.end_step([None; PLACES], ADDRESS + 8, false);
        assert!(!watches.stop_before(ADDRESS + 8), "it has not run");
        watches.end_step([None; PLACES], ADDRESS + 9, false);
        assert!(watches.stop_before(ADDRESS + 8));
    }
}
