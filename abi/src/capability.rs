//! Capabilities (capabilities(7)): the rights into which Linux divides those of root. pm keeps those of each process and tells vfs; each checks
//! them in the calls that it implements.

use crate::Word;

/// A capability that some call asks for, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Capability {
    Chown = 0,
    DacOverride = 1,
    DacReadSearch = 2,
    FileOwner = 3,
    FileSetId = 4,
    Kill = 5,
    SetGid = 6,
    SetUid = 7,
    SetCapabilities = 8,
    LinuxImmutable = 9,
    NetAdmin = 12,
    IpcLock = 14,
    IpcOwner = 15,
    SysChroot = 18,
    SysPtrace = 19,
    SysAdmin = 21,
    SysBoot = 22,
    SysNice = 23,
    SysResource = 24,
    SysTime = 25,
    MakeNode = 27,
    Lease = 28,
    SetFileCapabilities = 31,
    MacOverride = 32,
    SysLog = 34,
}

/// A set of capabilities, one bit each; all of Linux 6.1, also those that no call here asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilitySet(u64);

impl CapabilitySet {
    /// Number of the last capability.
    pub const LAST: u64 = 40;
    /// None.
    pub const EMPTY: CapabilitySet = CapabilitySet(0);
    /// Every one that Linux 6.1 knows.
    pub const ALL: CapabilitySet = CapabilitySet((1 << (Self::LAST + 1)) - 1);
    /// Those for accesses to files, which follow `setfsuid`.
    pub const OF_FILES: CapabilitySet = CapabilitySet::of(&[
        Capability::Chown,
        Capability::DacOverride,
        Capability::DacReadSearch,
        Capability::FileOwner,
        Capability::FileSetId,
        Capability::LinuxImmutable,
        Capability::MakeNode,
        Capability::MacOverride,
    ]);

    /// These.
    pub const fn of(capabilities: &[Capability]) -> CapabilitySet {
        let mut bits = 0;
        let mut at = 0;
        while at < capabilities.len() {
            bits |= 1 << capabilities[at] as u64;
            at += 1;
        }
        CapabilitySet(bits)
    }

    /// The set with these bits; what is no capability is left out, as on Linux.
    pub const fn from_bits(bits: u64) -> CapabilitySet {
        CapabilitySet(bits & Self::ALL.0)
    }

    /// The one capability with this number, if there is such a one.
    pub const fn numbered(number: u64) -> Option<CapabilitySet> {
        if number <= Self::LAST { Some(CapabilitySet(1 << number)) } else { None }
    }

    /// One bit for each.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether it contains this one.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u64 != 0
    }

    /// Whether it contains all of another one.
    pub const fn contains(self, other: CapabilitySet) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether it contains none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is in either.
    #[must_use]
    pub const fn union(self, other: CapabilitySet) -> CapabilitySet {
        CapabilitySet(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn intersection(self, other: CapabilitySet) -> CapabilitySet {
        CapabilitySet(self.0 & other.0)
    }

    /// What is not in the other one.
    #[must_use]
    pub const fn without(self, other: CapabilitySet) -> CapabilitySet {
        CapabilitySet(self.0 & !other.0)
    }
}

impl Word for CapabilitySet {
    fn to_word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Self {
        CapabilitySet::from_bits(word)
    }
}
