//! What the emulator counts beside instructions while a benchmark runs, of any kernel in the upper half of the addresses: how often it is
//! entered, and how often it loads a page table.
//!
//! The programs of user/bench mark, by instructions that do nothing (user/bench/ticks.h), where they read the time-stamp counter and where they
//! report a row. A row is what lies between the last two readings before its report, so only one process at a time may measure.

/// Addresses from here on are the kernel's.
pub const UPPER_HALF: u64 = 1 << 63;

/// `nopl K(%rax,%rax)` with these last three bytes of the displacement is a mark; K says which.
const MARK: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
const MARK_END: [u8; 3] = [0x5a, 0x5a, 0x51];
const READS: u8 = 1;
const REPORTS: u8 = 2;

/// An instruction that is counted or that marks something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// Loads a page table.
    LoadsPageTable,
    /// The program is about to read the time-stamp counter.
    Reads,
    /// The program is about to report what lies between the last two readings.
    Reports,
}

impl Event {
    /// What the instruction with these bytes is, if it is any of them.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            // mov %reg, %cr3, with or without a prefix for the upper registers.
            [0x0f, 0x22, 0xd8..=0xdf] | [0x40..=0x4f, 0x0f, 0x22, 0xd8..=0xdf] => Some(Self::LoadsPageTable),
            [start @ .., kind, a, b, c] if start == MARK && [*a, *b, *c] == MARK_END => match *kind {
                READS => Some(Self::Reads),
                REPORTS => Some(Self::Reports),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// How often a page table was loaded.
    pub loads: u64,
    /// How often the kernel ran after an instruction of a program.
    pub entries: u64,
}

/// The counts at the last two readings, and the rows.
#[derive(Default)]
pub struct Counter {
    before: Counts,
    last: Counts,
    rows: Vec<Counts>,
}

impl Counter {
    /// A program reads the time-stamp counter when so much has been counted.
    pub fn reads(&mut self, now: Counts) {
        self.before = std::mem::replace(&mut self.last, now);
    }

    /// A program reports a row.
    pub fn reports(&mut self) {
        let (last, before) = (self.last, self.before);
        self.rows.push(Counts { loads: last.loads - before.loads, entries: last.entries - before.entries });
    }

    /// A line "LOADS ENTRIES" for each row.
    pub fn text(&self) -> String {
        self.rows.iter().map(|row| format!("{} {}\n", row.loads, row.entries)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loads_of_cr3_and_marks_are_events() {
        assert_eq!(Event::of(&[0x0f, 0x22, 0xd8]), Some(Event::LoadsPageTable));
        assert_eq!(Event::of(&[0x41, 0x0f, 0x22, 0xdf]), Some(Event::LoadsPageTable));
        assert_eq!(Event::of(&[0x0f, 0x22, 0xe0]), None, "cr4");
        assert_eq!(Event::of(&[0x0f, 0x20, 0xd8]), None, "from cr3");
        assert_eq!(Event::of(&[0x0f, 0x1f, 0x84, 0x00, 1, 0x5a, 0x5a, 0x51]), Some(Event::Reads));
        assert_eq!(Event::of(&[0x0f, 0x1f, 0x84, 0x00, 2, 0x5a, 0x5a, 0x51]), Some(Event::Reports));
        assert_eq!(Event::of(&[0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0]), None, "a compiler's");
        assert_eq!(Event::of(&[]), None);
    }

    #[test]
    fn a_row_lies_between_the_last_two_readings() {
        let mut counter = Counter::default();
        for (loads, entries) in [(1, 10), (5, 30), (5, 31), (9, 41)] {
            counter.reads(Counts { loads, entries });
        }
        counter.reports();
        assert_eq!(counter.text(), "4 10\n");
    }
}
