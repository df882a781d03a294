//! Speed, character format and flow control of a line, and their register values.

use abi::Errno;
use abi::chardev::serial::*;

/// Frequency of the baud generator divided by 16: the highest rate.
pub const BASE_RATE: u32 = 115_200;
/// Tolerated deviation from the requested speed, in percent: receivers tolerate about 4.
const TOLERANCE_PERCENT: u32 = 3;

/// Settings, as `serial::SET_LINE` packs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings(u64);

impl Settings {
    /// 115,200 bit/s, 8 bits, no parity.
    pub const INITIAL: Settings = Settings(LINE_INITIAL);

    /// Decodes packed settings. `EINVAL`: the chip has no such speed.
    pub fn unpack(packed: u64) -> Result<Settings, Errno> {
        let settings = Settings(packed);
        if settings.hangs_up() || settings.is_near() { Ok(settings) } else { Err(Errno::EINVAL) }
    }

    /// Returns the packed settings.
    pub fn pack(self) -> u64 {
        self.0
    }

    /// Returns whether the speed is 0: hang up.
    pub fn hangs_up(self) -> bool {
        self.rate() == 0
    }

    /// Returns whether RTS and CTS control the flow.
    pub fn has_rts_cts(self) -> bool {
        self.0 & LINE_RTS_CTS != 0
    }

    /// Returns the values of the divisor latches, low byte first.
    pub fn divisor(self) -> [u8; 2] {
        (self.nearest_divisor() as u16).to_le_bytes()
    }

    /// Returns the value of the line control register.
    pub fn line_control(self) -> u8 {
        let bit = |flag: u64, bit: u8| if self.0 & flag != 0 { bit } else { 0 };
        let length = (self.0 >> LINE_LENGTH_SHIFT) as u8 & 3;
        let even = if self.0 & LINE_ODD == 0 { 0x10 } else { 0 };
        let parity = bit(LINE_PARITY, 8 | even | bit(LINE_STICK, 0x20));
        length | bit(LINE_TWO_STOP, 4) | parity
    }

    fn rate(self) -> u32 {
        (self.0 & LINE_RATE) as u32
    }

    fn nearest_divisor(self) -> u32 {
        let rate = self.rate().max(1);
        (BASE_RATE.saturating_add(rate / 2) / rate).clamp(1, 0xffff)
    }

    fn is_near(self) -> bool {
        let real = BASE_RATE / self.nearest_divisor();
        u64::from(real.abs_diff(self.rate())) * 100 <= u64::from(self.rate()) * u64::from(TOLERANCE_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_speed_has_its_divisor() {
        for (rate, divisor) in [(300, 384), (1200, 96), (9600, 12), (19_200, 6), (38_400, 3), (57_600, 2), (115_200, 1)]
        {
            let settings = Settings::unpack(rate).expect("the chip can do it");
            assert_eq!(u16::from_le_bytes(settings.divisor()), divisor, "{rate} bit/s");
        }
        for rate in [100_000, 230_400, u64::from(u32::MAX)] {
            assert_eq!(Settings::unpack(rate), Err(Errno::EINVAL), "{rate} bit/s");
        }
        assert_eq!(Settings::unpack(0).map(Settings::hangs_up), Ok(true));
    }

    #[test]
    fn forms_of_characters_become_the_line_control_register() {
        let control = |flags: u64| Settings(9600 | flags).line_control();
        let length = |bits: u64| (bits - 5) << LINE_LENGTH_SHIFT;
        assert_eq!(Settings::INITIAL.line_control(), 0x03);
        assert_eq!(control(length(7) | LINE_PARITY), 0x1a);
        assert_eq!(control(length(7) | LINE_PARITY | LINE_ODD | LINE_TWO_STOP), 0x0e);
        assert_eq!(control(length(8) | LINE_PARITY | LINE_STICK), 0x3b);
        assert_eq!(control(length(5) | LINE_ODD), 0x00);
    }
}
