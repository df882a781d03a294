//! What a process may call, and whom it may send to: `struct priv` of M3-IPC.

use crate::{
    endpoint::Number,
    error::Error,
    limits::{SLOTS, SYSTEM_PROCESSES},
};

/// A set of slots.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotSet([u64; SLOTS / 64]);

impl SlotSet {
    /// No slot.
    pub const NONE: SlotSet = SlotSet([0; SLOTS / 64]);
    /// Every slot.
    pub const ALL: SlotSet = SlotSet([!0; SLOTS / 64]);

    /// Returns the set with these bits, by index.
    pub const fn from_bits(bits: [u64; SLOTS / 64]) -> SlotSet {
        SlotSet(bits)
    }

    /// Returns its bits, by index.
    pub const fn bits(self) -> [u64; SLOTS / 64] {
        self.0
    }

    /// Whether the slot is in it.
    pub fn contains(&self, slot: Number) -> bool {
        self.0[slot.index() / 64] & 1 << (slot.index() % 64) != 0
    }

    /// Adds a slot. Returns whether it is new.
    pub fn insert(&mut self, slot: Number) -> bool {
        let is_new = !self.contains(slot);
        self.0[slot.index() / 64] |= 1 << (slot.index() % 64);
        is_new
    }

    /// Takes a slot out. Returns whether it was there.
    pub fn remove(&mut self, slot: Number) -> bool {
        let was_there = self.contains(slot);
        self.0[slot.index() / 64] &= !(1 << (slot.index() % 64));
        was_there
    }

    /// Whether every slot of it is in the other one too.
    pub fn is_subset_of(&self, other: &SlotSet) -> bool {
        self.0.iter().zip(other.0).all(|(own, others)| own & !others == 0)
    }

    /// Returns the first slot.
    pub fn first(&self) -> Option<Number> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(Number::at(word * 64 + self.0[word].trailing_zeros() as usize))
    }

    /// Returns its slots, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = Number> + use<> {
        let mut left = *self;
        core::iter::from_fn(move || {
            let first = left.first()?;
            left.remove(first);
            Some(first)
        })
    }
}

impl core::fmt::Debug for SlotSet {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_set().entries(self.iter().map(Number::get)).finish()
    }
}

/// What a process is: the higher, the more it may do for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Level {
    /// An ordinary process.
    User = 0,
    /// A server.
    Server = 1,
    /// A driver.
    Task = 2,
    /// A part of a kernel.
    System = 3,
    /// What stands for the kernel itself.
    Kernel = 4,
    /// What connects this node with another.
    Proxy = 5,
}

/// Calls that a process may be denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Trap {
    /// `send`.
    Send = 1,
    /// `receive`, `rcvrqst`.
    Receive = 2,
    /// `sendrec`.
    SendReceive = 3,
    /// `notify`.
    Notify = 4,
    /// `reply`.
    Reply = 5,
    /// `vcopy`.
    Copy = 6,
}

/// The rights of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rights {
    /// Below [`SYSTEM_PROCESSES`]: it may notify and be told of notifications while it does not wait.
    pub id: u16,
    /// What it is.
    pub level: Level,
    /// Calls that it may make: bit `n` for the [`Trap`] with that number.
    pub traps: u32,
    /// Slots that it may send to.
    pub sends_to: SlotSet,
    /// Slots that it may receive from.
    pub receives_from: SlotSet,
}

impl Rights {
    /// Returns the rights of a process that has just been bound: every call, and everybody in the container.
    pub fn of_new(slot: Number) -> Rights {
        let level = if slot.get() < 0 {
            Level::Task
        } else if slot.is_system() {
            Level::Server
        } else {
            Level::User
        };
        let id = if slot.get() < 0 { slot.index() } else { slot.get() as usize };
        Rights { id: id as u16, level, traps: !0, sends_to: SlotSet::ALL, receives_from: SlotSet::ALL }
    }

    /// Checks that it may make this call.
    ///
    /// # Errors
    /// `CallDenied`.
    pub fn check_trap(&self, trap: Trap) -> Result<(), Error> {
        if self.traps & 1 << trap as u32 != 0 { Ok(()) } else { Err(Error::CallDenied) }
    }

    /// Whether it may notify.
    pub fn is_system(&self) -> bool {
        usize::from(self.id) < SYSTEM_PROCESSES
    }

    /// Whether it may do everything that a new process may: then its messages need no check.
    pub fn are_full(&self) -> bool {
        self.traps == !0 && self.sends_to == SlotSet::ALL && self.receives_from == SlotSet::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_slots() {
        let mut set = SlotSet::NONE;
        let [low, high] = [-35, 220].map(|number| Number::new(number).unwrap());
        assert_eq!(set.first(), None);
        assert_eq!([set.insert(high), set.insert(low), set.insert(low)], [true, true, false]);
        assert_eq!((set.first(), set.remove(low), set.first()), (Some(low), true, Some(high)));
        assert_eq!(std::format!("{set:?}"), "{220}");
        assert!((0..SLOTS).all(|index| SlotSet::ALL.contains(Number::at(index))));
        assert!(!set.remove(low));
    }

    #[test]
    fn new_processes_may_call_everybody_and_only_system_processes_notify() {
        let rights = |number| Rights::of_new(Number::new(number).unwrap());
        assert!([-35, 0, 63, 64, 220].map(rights).iter().all(|new| new.are_full()));
        assert_eq!([-35, -1, 0, 63, 64].map(|number| rights(number).is_system()), [true, true, true, true, false]);
        let muted = Rights { traps: !(1 << Trap::Send as u32), ..rights(3) };
        assert_eq!(muted.check_trap(Trap::Send), Err(Error::CallDenied));
        assert_eq!(muted.check_trap(Trap::Receive), Ok(()));
    }
}
