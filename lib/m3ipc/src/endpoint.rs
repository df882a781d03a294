//! Slots of a container, and the names of those who occupy them.
//!
//! An endpoint is `generation * DISTANCE + number`: its slot's number, and how often the slot had been bound before. So the endpoint of a
//! process that has ended names nobody, even when its slot has a new occupant. Slots of tasks and system processes stay in generation 0:
//! there a name means a service, whichever process provides it.

use crate::{
    error::Error,
    limits::{PROCESSES, SLOTS, SYSTEM_PROCESSES, TASKS},
};

/// Distance of the endpoints of two successive occupants of a slot.
pub const DISTANCE: i32 = TASKS as i32 + 0x8ace + 1;

/// The last generation before a slot begins with 1 again.
pub const LAST_GENERATION: u32 = ((i32::MAX - PROCESSES as i32) / DISTANCE) as u32;

/// The number of a slot: from -35, for the tasks, to 220. It is kept as the index in a table of all slots, which thus needs no check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(u8);

const _: () = assert!(SLOTS == u8::MAX as usize + 1);

impl core::fmt::Debug for Number {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        write!(f, "Number({})", self.get())
    }
}

impl Number {
    /// Returns the slot with this number.
    ///
    /// # Errors
    /// `Range`: there is none.
    pub fn new(number: i32) -> Result<Number, Error> {
        let is_slot = (-(TASKS as i32)..PROCESSES as i32).contains(&number);
        if is_slot { Ok(Number((number + TASKS as i32) as u8)) } else { Err(Error::Range) }
    }

    /// Returns the slot at this index.
    ///
    /// # Panics
    /// When there is none.
    pub fn at(index: usize) -> Number {
        assert!(index < SLOTS, "a container has no slot at index {index}");
        Number(index as u8)
    }

    /// Returns the index in a table of all slots.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// Returns the number as programs know it.
    pub fn get(self) -> i32 {
        i32::from(self.0) - TASKS as i32
    }

    /// Whether it is a slot of a task or system process.
    pub fn is_system(self) -> bool {
        self.index() < TASKS + SYSTEM_PROCESSES
    }
}

/// The name of a process in its container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint(i32);

impl Endpoint {
    /// Nobody.
    pub const NONE: Endpoint = Endpoint(0x6ace);
    /// Anybody, for `receive`.
    pub const ANY: Endpoint = Endpoint(0x7ace);
    /// The caller.
    pub const SELF: Endpoint = Endpoint(0x8ace);

    /// Returns the endpoint with this value, whether it names somebody or not.
    pub const fn from_raw(value: i32) -> Endpoint {
        Endpoint(value)
    }

    /// Returns the value that programs know it by.
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// Returns the name of the occupant of this generation of a slot.
    pub fn new(number: Number, generation: u32) -> Endpoint {
        let generation = if number.is_system() { 0 } else { generation.min(LAST_GENERATION) as i32 };
        Endpoint(generation * DISTANCE + number.get())
    }

    /// Returns how often the slot that it names had been bound; 0 for slots of the system.
    pub fn generation(self) -> u32 {
        self.0.saturating_add(TASKS as i32).div_euclid(DISTANCE).max(0).cast_unsigned()
    }

    /// Returns the slot that it names.
    ///
    /// # Errors
    /// `BadPeer`: it names no single process. `StaleEndpoint`: it has not the form of an endpoint.
    pub fn number(self) -> Result<Number, Error> {
        if [Endpoint::NONE, Endpoint::ANY, Endpoint::SELF].contains(&self) {
            return Err(Error::BadPeer);
        }
        let number = self.0.checked_add(TASKS as i32).ok_or(Error::StaleEndpoint)?.rem_euclid(DISTANCE) - TASKS as i32;
        Number::new(number).map_err(|_| Error::StaleEndpoint)
    }
}

/// Returns the generation of a slot's next occupant.
pub fn next_generation(number: Number, last: u32) -> u32 {
    match last {
        _ if number.is_system() => 0,
        LAST_GENERATION.. => 1,
        _ => last + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i32) -> Number {
        Number::new(value).unwrap()
    }

    #[test]
    fn the_published_formula() {
        assert_eq!(DISTANCE, 35_570);
        assert_eq!(Endpoint::new(number(100), 3).raw(), 106_810);
        assert_eq!(Endpoint::new(number(-35), 0).raw(), -35);
    }

    #[test]
    fn every_occupant_of_every_slot_has_its_own_name() {
        for index in 0..SLOTS {
            let slot = Number::at(index);
            assert_eq!(slot.index(), index);
            for generation in [0, 1, 2, LAST_GENERATION - 1, LAST_GENERATION] {
                let endpoint = Endpoint::new(slot, generation);
                assert_eq!(endpoint.number(), Ok(slot), "{endpoint:?}");
                assert_eq!(slot.is_system(), endpoint == Endpoint::new(slot, 7), "{endpoint:?}");
            }
        }
    }

    #[test]
    fn generations_begin_with_one_and_wrap_to_one() {
        let generations = |slot, last| next_generation(number(slot), last);
        assert_eq!([generations(64, 0), generations(64, 1), generations(64, LAST_GENERATION)], [1, 2, 1]);
        assert_eq!([generations(63, 0), generations(-1, 0)], [0, 0]);
    }

    #[test]
    fn what_names_nobody() {
        for endpoint in [Endpoint::NONE, Endpoint::ANY, Endpoint::SELF] {
            assert_eq!(endpoint.number(), Err(Error::BadPeer));
        }
        for value in [221, 0x6acd, 35_570 + 221, i32::MAX, 0x7acf] {
            assert_eq!(Endpoint::from_raw(value).number(), Err(Error::StaleEndpoint), "{value}");
        }
        assert_eq!(Number::new(221), Err(Error::Range));
        assert_eq!(Number::new(-36), Err(Error::Range));
    }
}
