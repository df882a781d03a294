//! What each open file wants to be recorded.

use abi::Errno;
use abi::trace::{MIN_PERIOD_NS, TraceSettings, event};

/// Open files at the same time. Only root has any.
const MAX_OPEN: usize = 16;
/// Number of the first open file, which is no minor of a device.
const FIRST: u64 = 0x100;

/// The wishes by open file; `None`: there is no such file.
#[derive(Debug, Default)]
pub struct Wishes([Option<TraceSettings>; MAX_OPEN]);

impl Wishes {
    /// Adds an open file, which wants nothing. Returns its number. `EMFILE`.
    pub fn add(&mut self) -> Result<u64, Errno> {
        let index = self.0.iter().position(Option::is_none).ok_or(Errno::EMFILE)?;
        self.0[index] = Some(TraceSettings::default());
        Ok(FIRST + index as u64)
    }

    /// Removes an open file.
    pub fn remove(&mut self, number: u64) {
        if let Ok(place) = self.place(number) {
            *place = None;
        }
    }

    /// Sets what an open file wants; that may be one of a predecessor's. `EINVAL`: no such event or period; `EBADF`: no such file.
    pub fn set(&mut self, number: u64, settings: TraceSettings) -> Result<(), Errno> {
        let samples = settings.events & 1 << event::SAMPLE != 0;
        let is_known = settings.events & !(event::ALL | 1 << event::SAMPLE) == 0;
        if !is_known || samples != (settings.period_ns != 0) || samples && settings.period_ns < MIN_PERIOD_NS {
            return Err(Errno::EINVAL);
        }
        *self.place(number)? = Some(settings);
        Ok(())
    }

    /// What any of them wants: all events, and samples as often as anybody.
    pub fn all(&self) -> TraceSettings {
        let wishes = || self.0.iter().flatten();
        let events = wishes().fold(0, |all, wish| all | wish.events);
        let period_ns = wishes().map(|wish| wish.period_ns).filter(|period| *period != 0).min().unwrap_or(0);
        TraceSettings { events, period_ns }
    }

    fn place(&mut self, number: u64) -> Result<&mut Option<TraceSettings>, Errno> {
        let index = number.checked_sub(FIRST).ok_or(Errno::EBADF)?;
        self.0.get_mut(index as usize).ok_or(Errno::EBADF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: u64 = 1 << event::SAMPLE;
    const MESSAGES: u64 = 1 << event::MESSAGE;

    fn settings(events: u64, period_ns: u64) -> TraceSettings {
        TraceSettings { events, period_ns }
    }

    #[test]
    fn what_any_file_wants_is_recorded_until_it_is_closed() {
        let mut wishes = Wishes::default();
        let [a, b] = [wishes.add().expect("there is room"), wishes.add().expect("there is room")];
        assert_eq!(wishes.all(), settings(0, 0));
        wishes.set(a, settings(MESSAGES, 0)).expect("is valid");
        wishes.set(b, settings(SAMPLES, 1_000_000)).expect("is valid");
        assert_eq!(wishes.all(), settings(MESSAGES | SAMPLES, 1_000_000));
        wishes.set(a, settings(SAMPLES, 500_000)).expect("is valid");
        assert_eq!(wishes.all(), settings(SAMPLES, 500_000), "the more frequent one counts");
        wishes.remove(a);
        assert_eq!(wishes.all(), settings(SAMPLES, 1_000_000));
        wishes.remove(b);
        assert_eq!(wishes.all(), settings(0, 0));
    }

    #[test]
    fn impossible_wishes_are_refused() {
        let mut wishes = Wishes::default();
        let file = wishes.add().expect("there is room");
        for wrong in [
            settings(1 << 63, 0),
            settings(1, 0),
            settings(SAMPLES, 0),
            settings(MESSAGES, 1_000_000),
            settings(SAMPLES, MIN_PERIOD_NS - 1),
        ] {
            assert_eq!(wishes.set(file, wrong), Err(Errno::EINVAL), "{wrong:?}");
        }
        for number in [0, FIRST - 1, FIRST + MAX_OPEN as u64, u64::MAX] {
            assert_eq!(wishes.set(number, settings(MESSAGES, 0)), Err(Errno::EBADF));
            wishes.remove(number);
        }
        assert_eq!(wishes.all(), settings(0, 0));
    }

    #[test]
    fn there_are_only_so_many_and_places_are_used_again() {
        let mut wishes = Wishes::default();
        let files: Vec<u64> = (0..MAX_OPEN).map(|_| wishes.add().expect("there is room")).collect();
        assert_eq!(wishes.add(), Err(Errno::EMFILE));
        wishes.remove(files[3]);
        assert_eq!(wishes.add(), Ok(files[3]));
    }

    #[test]
    fn a_file_of_the_predecessor_may_repeat_its_wish() {
        let mut wishes = Wishes::default();
        wishes.set(FIRST + 5, settings(MESSAGES, 0)).expect("it was opened before");
        assert_eq!(wishes.all(), settings(MESSAGES, 0));
    }
}
