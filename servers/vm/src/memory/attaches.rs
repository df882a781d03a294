//! Who maps a System V segment, and who did last.

/// The mappings of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attaches {
    /// How many there are.
    pub count: u64,
    /// When one came last, in seconds since 1970.
    pub attached_s: u64,
    /// When one went last.
    pub detached_s: u64,
    /// The process that made or removed one last.
    pub process: u32,
}

impl Attaches {
    /// One has come (`more`) or gone.
    pub fn changed(self, more: bool, process: u32, now_s: u64) -> Attaches {
        match more {
            true => Attaches { count: self.count + 1, attached_s: now_s, process, ..self },
            false => Attaches { count: self.count - 1, detached_s: now_s, process, ..self },
        }
    }
}
