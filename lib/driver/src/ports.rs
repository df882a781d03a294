//! I/O ports of a driver. It is the same for every access path (docs/book/driver-io.md).

use abi::Errno;
use abi::privilege::{PortRequest, io};
use sys::{Result, port};

/// A range of ports, by offset from its first.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    first: u16,
    count: u16,
}

impl Ports {
    /// Makes the range of `count` ports from `first` on, cut off at port 65,535. The driver's right to them is checked at each access.
    pub const fn new(first: u16, count: u16) -> Ports {
        let room = (u16::MAX - first).saturating_add(1);
        Ports { first, count: if count > room { room } else { count } }
    }

    /// Reads 8 bits.
    ///
    /// # Errors
    /// `ECALLDENIED`: not a port of the driver; `EINVAL`: not within the range.
    #[inline]
    pub fn read8(&self, offset: u16) -> Result<u8> {
        port::read(self.port(offset, 1)?, 1).map(|value| value as u8)
    }

    /// Reads 16 bits.
    ///
    /// # Errors
    /// As [`Ports::read8`].
    #[inline]
    pub fn read16(&self, offset: u16) -> Result<u16> {
        port::read(self.port(offset, 2)?, 2).map(|value| value as u16)
    }

    /// Reads 32 bits.
    ///
    /// # Errors
    /// As [`Ports::read8`].
    #[inline]
    pub fn read32(&self, offset: u16) -> Result<u32> {
        port::read(self.port(offset, 4)?, 4)
    }

    /// Writes 8 bits.
    ///
    /// # Errors
    /// As [`Ports::read8`].
    #[inline]
    pub fn write8(&self, offset: u16, value: u8) -> Result<()> {
        port::write(self.port(offset, 1)?, 1, value.into())
    }

    /// Writes 16 bits.
    ///
    /// # Errors
    /// As [`Ports::read8`].
    #[inline]
    pub fn write16(&self, offset: u16, value: u16) -> Result<()> {
        port::write(self.port(offset, 2)?, 2, value.into())
    }

    /// Writes 32 bits.
    ///
    /// # Errors
    /// As [`Ports::read8`].
    #[inline]
    pub fn write32(&self, offset: u16, value: u32) -> Result<()> {
        port::write(self.port(offset, 4)?, 4, value)
    }

    /// Fills the buffer by repeated reads of one 8-bit port.
    ///
    /// # Errors
    /// As [`Ports::read8`].
    pub fn read_string8(&self, offset: u16, into: &mut [u8]) -> Result<()> {
        port::read_string(self.port(offset, 1)?, 1, into)
    }

    /// Writes the buffer to one 8-bit port.
    ///
    /// # Errors
    /// As [`Ports::read8`].
    pub fn write_string8(&self, offset: u16, from: &[u8]) -> Result<()> {
        port::write_string(self.port(offset, 1)?, 1, from)
    }

    /// Fills the buffer by repeated reads of one 16-bit port.
    ///
    /// # Errors
    /// As [`Ports::read8`]; `EINVAL` also for an odd length.
    pub fn read_string16(&self, offset: u16, into: &mut [u8]) -> Result<()> {
        port::read_string(self.port(offset, 2)?, 2, into)
    }

    /// Writes the buffer to one 16-bit port.
    ///
    /// # Errors
    /// As [`Ports::read_string16`].
    pub fn write_string16(&self, offset: u16, from: &[u8]) -> Result<()> {
        port::write_string(self.port(offset, 2)?, 2, from)
    }

    /// Fills the buffer by repeated reads of one 32-bit port.
    ///
    /// # Errors
    /// As [`Ports::read8`]; `EINVAL` also for a length that is no multiple of 4.
    pub fn read_string32(&self, offset: u16, into: &mut [u8]) -> Result<()> {
        port::read_string(self.port(offset, 4)?, 4, into)
    }

    /// Writes the buffer to one 32-bit port.
    ///
    /// # Errors
    /// As [`Ports::read_string32`].
    pub fn write_string32(&self, offset: u16, from: &[u8]) -> Result<()> {
        port::write_string(self.port(offset, 4)?, 4, from)
    }

    /// Makes several accesses in order, by one message on the access path `systask`. The requests' ports are offsets; values read are
    /// stored in the requests.
    ///
    /// # Errors
    /// As [`Ports::read8`], of the first access that fails; those before it are done. `EINVAL` for an offset outside the range, before any access.
    pub fn vector<const N: usize>(&self, requests: &mut [PortRequest; N]) -> Result<()> {
        let mut absolute = *requests;
        for request in &mut absolute {
            request.port = self.port(request.port, request.operation & io::WIDTH as u16)?;
        }
        let result = port::vector(&mut absolute);
        for (request, done) in requests.iter_mut().zip(&absolute) {
            request.value = done.value;
        }
        result
    }

    #[inline(always)]
    fn port(&self, offset: u16, width: u16) -> Result<u16> {
        let is_within = u32::from(offset) + u32::from(width) <= u32::from(self.count);
        if is_within { Ok(self.first + offset) } else { Err(Errno::EINVAL) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_that_reaches_beyond_the_range_is_refused() {
        let ports = Ports::new(0x3f8, 8);
        assert_eq!(ports.port(7, 1), Ok(0x3ff));
        assert_eq!(ports.port(7, 2), Err(Errno::EINVAL));
        assert_eq!(ports.port(u16::MAX, 1), Err(Errno::EINVAL));
        assert_eq!(Ports::new(0xfff0, 0x20).port(0x18, 1), Err(Errno::EINVAL));
    }
}
