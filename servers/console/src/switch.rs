//! Whose decision it is that another terminal is shown (`VT_SETMODE`), and the signals that tell a process of it.
//!
//! A process that decides is asked with a signal before its terminal is left, and told with another when it is shown again. tty fetches the
//! signals by position and passes them to pm; each is kept until tty has asked for the next.

use abi::Errno;
use alloc::collections::VecDeque;
use recover::snapshot::{Reader, Writer};
use sys::fallible::{self, TryQueue};

/// Modes in the first byte of `struct vt_mode`.
const AUTO: u8 = 0;
const PROCESS: u8 = 1;
/// `VT_RELDISP`: the terminal may not be left; it has been drawn.
pub const REFUSED: u64 = 0;
pub const ACQUIRED: u64 = 2;
/// Limit of signals that wait for tty: one for each terminal that is left and one for each that is shown, many times over.
const SIGNALS: usize = 64;

/// Who decides whether a terminal is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Whoever asks.
    Free,
    /// A process.
    By(Decider),
}

/// A process that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decider {
    pub pid: u32,
    /// As the process has set it, to be told as it is (`VT_GETMODE`): the byte `waitv`, the signals for leaving and for showing, and the one
    /// that Linux does not use.
    mode: [u8; 8],
    /// The terminal that it is asked to leave this one for.
    asked: Option<usize>,
}

impl Decider {
    /// The terminal that it is asked to leave this one for.
    pub fn asked(&self) -> Option<usize> {
        self.asked
    }

    /// The same, asked for another one or for none.
    pub fn asking(self, asked: Option<usize>) -> Switch {
        Switch::By(Decider { asked, ..self })
    }

    /// The signal that asks to leave the terminal.
    pub fn release(&self) -> u16 {
        u16::from_le_bytes([self.mode[2], self.mode[3]])
    }

    /// The signal that tells that it is shown.
    pub fn acquire(&self) -> u16 {
        u16::from_le_bytes([self.mode[4], self.mode[5]])
    }
}

impl Switch {
    /// As the process `pid` sets it with a `struct vt_mode`.
    ///
    /// # Errors
    /// `EINVAL`: there is no such mode.
    pub fn set_by(pid: u32, mode: [u8; 8]) -> Result<Switch, Errno> {
        match mode[0] {
            AUTO => Ok(Switch::Free),
            // Linux forgets the last signal.
            PROCESS => {
                let mode = [mode[0], mode[1], mode[2], mode[3], mode[4], mode[5], 0, 0];
                Ok(Switch::By(Decider { pid, mode, asked: None }))
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// As `struct vt_mode`.
    pub fn mode(&self) -> [u8; 8] {
        match self {
            Switch::Free => [0; 8],
            Switch::By(decider) => decider.mode,
        }
    }

    /// Saves it into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        let (pid, asked) = match self {
            Switch::Free => (0, 0),
            Switch::By(decider) => (decider.pid, decider.asked.map_or(0, |index| index as u64 + 1)),
        };
        writer.numbers([u64::from(pid) | asked << 32, u64::from_le_bytes(self.mode())]);
    }

    /// Loads it from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Switch> {
        let (who, mode) = (reader.number()?, reader.number()?.to_le_bytes());
        let switch = Switch::set_by(who as u32, mode).ok()?;
        Some(match switch {
            Switch::Free => Switch::Free,
            Switch::By(decider) => Switch::By(Decider { asked: ((who >> 32) as usize).checked_sub(1), ..decider }),
        })
    }
}

/// Signals that tty has not taken, in order.
pub struct Signals {
    queue: VecDeque<u64>,
    /// How many tty had taken when it took the first of these.
    taken: u64,
}

impl Signals {
    /// None.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new() -> Result<Signals, Errno> {
        Ok(Signals { queue: fallible::queue(SIGNALS)?, taken: 0 })
    }

    /// Adds one for a process. 0 is none; what a full queue drops belongs to processes that are asked all the time.
    pub fn add(&mut self, pid: u32, signal: u16) {
        if signal != 0 && self.queue.len() < SIGNALS {
            self.queue.push_back_reserved(u64::from(pid) | u64::from(signal) << 32);
        }
    }

    /// The first one that tty has not taken, when it has taken so many. A count that fits nothing begins anew.
    pub fn after(&mut self, taken: u64) -> Option<u64> {
        let more = taken.wrapping_sub(self.taken);
        if more <= self.queue.len() as u64 {
            self.queue.drain(..more as usize);
        }
        self.taken = taken;
        self.queue.front().copied()
    }

    /// Saves them into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        writer.numbers([self.taken, self.queue.len() as u64]);
        self.queue.iter().for_each(|signal| writer.number(*signal));
    }

    /// Loads them from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Signals> {
        let mut signals = Signals::new().ok()?;
        signals.taken = reader.number()?;
        for _ in 0..reader.number()?.min(SIGNALS as u64) {
            signals.queue.push_back_reserved(reader.number()?);
        }
        Some(signals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_stays_until_tty_asks_for_the_next() {
        let mut signals = Signals::new().expect("there is memory");
        signals.add(7, 10);
        signals.add(7, 0);
        signals.add(8, 12);
        assert_eq!(
            [signals.after(0), signals.after(0), signals.after(1)],
            [7 | 10 << 32, 7 | 10 << 32, 8 | 12 << 32].map(Some)
        );
        let mut writer = Writer::default();
        signals.save(&mut writer);
        let mut successor = Signals::load(&mut Reader::new(writer.bytes())).expect("was saved");
        assert_eq!([successor.after(1), successor.after(2)], [Some(8 | 12 << 32), None]);
        successor.add(9, 1);
        assert_eq!(successor.after(77), Some(9 | 1 << 32), "tty has lost its count");
        (0..1000).for_each(|_| successor.add(1, 1));
        assert_eq!(successor.queue.len(), SIGNALS);
    }

    #[test]
    fn a_mode_is_told_as_it_was_set() {
        let mode = [1, 1, 10, 0, 12, 0, 9, 9];
        let Ok(Switch::By(mut decider)) = Switch::set_by(7, mode) else { panic!("is refused") };
        assert_eq!((decider.release(), decider.acquire(), decider.mode), (10, 12, [1, 1, 10, 0, 12, 0, 0, 0]));
        decider.asked = Some(3);
        let mut writer = Writer::default();
        Switch::By(decider).save(&mut writer);
        Switch::Free.save(&mut writer);
        let mut reader = Reader::new(writer.bytes());
        assert_eq!(
            [Switch::load(&mut reader), Switch::load(&mut reader)],
            [Some(Switch::By(decider)), Some(Switch::Free)]
        );
        assert_eq!(Switch::set_by(7, [2, 0, 0, 0, 0, 0, 0, 0]), Err(Errno::EINVAL));
    }
}
