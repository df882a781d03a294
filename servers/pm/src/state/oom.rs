//! How much a process is wanted when memory ends (`oom_score_adj` of proc(5)). It is kept and shown; who ends is decided without it.

use abi::Errno;
use core::ops::RangeInclusive;

/// See the head of the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct OomAdjust {
    value: i32,
    /// What root has set last: others set no less.
    least: i32,
}

impl OomAdjust {
    /// From -1,000 (never) to 1,000 (first).
    pub const RANGE: RangeInclusive<i32> = -1000..=1000;

    /// The number.
    pub fn value(self) -> i32 {
        self.value
    }

    /// Sets it. `is_old`: as oom_adj does, by which nobody but root lowers it, and root changes nothing for others. `EACCES`.
    pub fn set(&mut self, value: i32, is_root: bool, is_old: bool) -> Result<(), Errno> {
        if !is_root && value < if is_old { self.value } else { self.least } {
            return Err(Errno::EACCES);
        }
        if is_root && !is_old {
            self.least = value;
        }
        self.value = value;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_go_down_to_what_root_has_set() {
        let mut adjust = OomAdjust::default();
        assert_eq!(adjust.set(-1, false, false), Err(Errno::EACCES));
        assert_eq!(adjust.set(100, true, false), Ok(()));
        assert_eq!([200, 100, 99].map(|value| adjust.set(value, false, false).is_ok()), [true, true, false]);
        assert_eq!(adjust.set(-1000, true, false), Ok(()));
        assert_eq!((adjust.set(-999, false, false), adjust.value()), (Ok(()), -999));
    }

    #[test]
    fn the_old_measure_is_not_lowered_by_others() {
        let mut adjust = OomAdjust::default();
        assert_eq!([300, 299, 300].map(|value| adjust.set(value, false, true).is_ok()), [true, false, true]);
        assert_eq!((adjust.set(10, true, true), adjust.set(0, false, false)), (Ok(()), Ok(())));
    }
}
