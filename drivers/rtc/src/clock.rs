//! The MC146818 real-time clock (Motorola MC146818A data sheet; the century byte is the PC's, at 0x32): calendar time in
//! CMOS registers, BCD or binary, 12 or 24 hours. Generic over register access, so that tests script the chip.

use abi::Errno;

/// Seconds of a day.
const DAY_S: u64 = 86_400;
/// Reads of the calendar until two agree; the chip updates once a second, so two suffice unless it is defective.
const READ_TRIES: usize = 8;
/// Polls of the update flag: an update takes at most 2,228 µs, a poll at least 1 µs on a real bus.
const UPDATE_POLLS: usize = 100_000;

mod register {
    pub const SECONDS: u8 = 0;
    pub const MINUTES: u8 = 2;
    pub const HOURS: u8 = 4;
    pub const DAY: u8 = 7;
    pub const MONTH: u8 = 8;
    pub const YEAR: u8 = 9;
    pub const STATUS_A: u8 = 0x0a;
    pub const STATUS_B: u8 = 0x0b;
    pub const CENTURY: u8 = 0x32;
}

const UPDATING: u8 = 0x80;
const BINARY: u8 = 4;
const HOURS_24: u8 = 2;
/// Stops updates while the calendar is set.
const SET: u8 = 0x80;
const AFTERNOON: u8 = 0x80;

/// Access to the CMOS registers.
pub trait Cmos {
    /// Reads a register.
    fn read(&mut self, register: u8) -> Result<u8, Errno>;
    /// Writes a register.
    fn write(&mut self, register: u8, value: u8) -> Result<(), Errno>;
}

/// Calendar time, UTC, as `struct rtc_time` counts: month 1 to 12, full year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    pub year: u32,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
}

/// Reads the clock. `EIO`: the chip returns no stable or no valid date.
pub fn read(cmos: &mut impl Cmos) -> Result<Calendar, Errno> {
    let mut last = read_once(cmos)?;
    for _ in 0..READ_TRIES {
        let next = read_once(cmos)?;
        if next == last {
            return decode(cmos, next);
        }
        last = next;
    }
    Err(Errno::EIO)
}

/// Sets the clock. `EINVAL`: not a date between 1970 and 2099.
pub fn set(cmos: &mut impl Cmos, time: Calendar) -> Result<(), Errno> {
    if !time.is_valid() || time.year > 2099 {
        return Err(Errno::EINVAL);
    }
    let mode = cmos.read(register::STATUS_B)?;
    let encode = |value: u32| if mode & BINARY != 0 { value as u8 } else { (((value / 10) << 4) | (value % 10)) as u8 };
    let hour = match (mode & HOURS_24 != 0, time.hour) {
        (true, hour) => encode(hour),
        (false, 0) => encode(12),
        (false, hour @ 1..=11) => encode(hour),
        (false, 12) => encode(12) | AFTERNOON,
        (false, hour) => encode(hour - 12) | AFTERNOON,
    };
    cmos.write(register::STATUS_B, mode | SET)?;
    for (at, value) in [
        (register::SECONDS, encode(time.second)),
        (register::MINUTES, encode(time.minute)),
        (register::HOURS, hour),
        (register::DAY, encode(time.day)),
        (register::MONTH, encode(time.month)),
        (register::YEAR, encode(time.year % 100)),
        (register::CENTURY, encode(time.year / 100)),
    ] {
        cmos.write(at, value)?;
    }
    cmos.write(register::STATUS_B, mode)
}

impl Calendar {
    /// Returns the seconds since 1970 (days by Gauss's shifted year: March first, so that the leap day comes last).
    pub fn to_unix_s(self) -> u64 {
        let shifted_year = u64::from(self.year) - u64::from(self.month <= 2);
        let shifted_month = u64::from((self.month + 9) % 12);
        let day_of_year = (153 * shifted_month + 2) / 5 + u64::from(self.day) - 1;
        let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
        // 719,468 days lie between 1 March of year 0 and 1 January 1970.
        let days = shifted_year * 365 + leap_days + day_of_year - 719_468;
        days * DAY_S + u64::from(self.hour) * 3600 + u64::from(self.minute) * 60 + u64::from(self.second)
    }

    fn is_valid(self) -> bool {
        let leap = self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        let days = match self.month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        self.year >= 1970
            && (1..=12).contains(&self.month)
            && (1..=days).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
    }
}

/// Raw register values: seconds to century.
type Raw = [u8; 7];

fn read_once(cmos: &mut impl Cmos) -> Result<Raw, Errno> {
    let mut polls = 0;
    while cmos.read(register::STATUS_A)? & UPDATING != 0 {
        polls += 1;
        if polls == UPDATE_POLLS {
            return Err(Errno::EIO);
        }
    }
    let mut raw = [0; 7];
    let registers = [
        register::SECONDS,
        register::MINUTES,
        register::HOURS,
        register::DAY,
        register::MONTH,
        register::YEAR,
        register::CENTURY,
    ];
    for (slot, at) in raw.iter_mut().zip(registers) {
        *slot = cmos.read(at)?;
    }
    Ok(raw)
}

fn decode(cmos: &mut impl Cmos, raw: Raw) -> Result<Calendar, Errno> {
    let mode = cmos.read(register::STATUS_B)?;
    let number = |byte: u8| if mode & BINARY != 0 { byte } else { (byte >> 4) * 10 + (byte & 15) } as u32;
    let hour = match mode & HOURS_24 != 0 {
        true => number(raw[2]),
        false => number(raw[2] & !AFTERNOON) % 12 + if raw[2] & AFTERNOON != 0 { 12 } else { 0 },
    };
    // Machines without a century byte use the register otherwise.
    let century = match number(raw[6]) {
        century @ 19..=20 => century,
        _ => 20,
    };
    let time = Calendar {
        year: century * 100 + number(raw[5]),
        month: number(raw[4]),
        day: number(raw[3]),
        hour,
        minute: number(raw[1]),
        second: number(raw[0]),
    };
    if time.is_valid() { Ok(time) } else { Err(Errno::EIO) }
}

#[cfg(test)]
mod tests {
    //! Dates on a scripted chip; the expected seconds are those of date(1).
    use super::*;

    struct Chip([u8; 64]);

    impl Cmos for Chip {
        fn read(&mut self, register: u8) -> Result<u8, Errno> {
            Ok(self.0[usize::from(register)])
        }
        fn write(&mut self, register: u8, value: u8) -> Result<(), Errno> {
            self.0[usize::from(register)] = value;
            Ok(())
        }
    }

    fn calendar(year: u32, month: u32, day: u32, hour: u32, minute: u32, second: u32) -> Calendar {
        Calendar { year, month, day, hour, minute, second }
    }

    #[test]
    fn dates_become_unix_seconds() {
        assert_eq!(calendar(1970, 1, 1, 0, 0, 0).to_unix_s(), 0);
        assert_eq!(calendar(2000, 2, 29, 12, 0, 0).to_unix_s(), 951_825_600);
        assert_eq!(calendar(2026, 11, 21, 21, 30, 59).to_unix_s(), 1_795_296_659);
        assert_eq!(calendar(2099, 12, 31, 23, 59, 59).to_unix_s(), 4_102_444_799);
    }

    #[test]
    fn every_number_format_reads_back_what_was_set() {
        for mode in [0, BINARY, HOURS_24, BINARY | HOURS_24] {
            for hour in 0..24 {
                let mut chip = Chip([0; 64]);
                chip.0[usize::from(register::STATUS_B)] = mode;
                let time = calendar(2024, 2, 29, hour, 58, 59);
                set(&mut chip, time).unwrap();
                assert_eq!(read(&mut chip), Ok(time));
            }
        }
    }

    #[test]
    fn nonsense_in_the_chip_is_an_error() {
        let mut chip = Chip([0xff; 64]);
        assert_eq!(read(&mut chip), Err(Errno::EIO));
        let mut chip = Chip([0; 64]);
        assert_eq!(read(&mut chip), Err(Errno::EIO));
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        let mut chip = Chip([0; 64]);
        assert_eq!(set(&mut chip, calendar(2023, 2, 29, 0, 0, 0)), Err(Errno::EINVAL));
        assert_eq!(set(&mut chip, calendar(2100, 1, 1, 0, 0, 0)), Err(Errno::EINVAL));
    }
}
