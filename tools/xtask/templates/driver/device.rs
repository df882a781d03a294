//! What /dev/NAME does: it counts its openings. The number is read once, so that `cat` comes to an end.

/// Digits of the largest number, and a newline.
const LINE_BYTES: usize = 21;

/// The device.
#[derive(Default)]
pub struct Device {
    opened: u64,
    /// The number of the last opening, until it has been read.
    unread: Option<u64>,
}

impl Device {
    /// Counts an opening.
    pub fn open(&mut self) {
        self.unread = Some(self.opened);
        self.opened += 1;
    }

    /// The line to read and its length; 0 when it has been read, or a reader asks for less than the line.
    pub fn read(&mut self, asked_bytes: u64) -> ([u8; LINE_BYTES], usize) {
        let mut line = [0; LINE_BYTES];
        let length = self.unread.map_or(0, |number| write_line(number, &mut line));
        if length as u64 > asked_bytes {
            return (line, 0);
        }
        self.unread = None;
        (line, length)
    }
}

/// Writes the number and a newline, and returns the length.
fn write_line(number: u64, line: &mut [u8; LINE_BYTES]) -> usize {
    let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    let mut rest = number;
    for place in line[..digits].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    line[digits] = b'\n';
    digits + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(device: &mut Device) -> Vec<u8> {
        let (line, length) = device.read(4096);
        line[..length].to_vec()
    }

    #[test]
    fn each_opening_reads_its_number_once() {
        let mut device = Device::default();
        device.open();
        assert_eq!(read(&mut device), b"0\n");
        assert_eq!(read(&mut device), b"");
        device.open();
        assert_eq!(read(&mut device), b"1\n");
    }

    #[test]
    fn the_largest_number_fits() {
        let mut device = Device { opened: u64::MAX - 1, unread: None };
        device.open();
        assert_eq!(read(&mut device), format!("{}\n", u64::MAX - 1).as_bytes());
    }
}
