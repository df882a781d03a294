//! DDC: a display's EDID, read over the bus in its cable by another driver than the bus's own.
//!
//! The client makes one `I2C_RDWR` (`bus`): the register, then a block. Such a transaction names the display's address itself, so it needs no open
//! file, and nothing is left behind if the client dies in its midst but a transaction that the bus ends after its limit.

use super::ioctl::{self, MESSAGE_BYTES, READS};
use crate::display::edid::BLOCK_BYTES;
use abi::chardev::{Continue, Control};
use abi::{Endpoint, Errno, GrantId, Message};
use sys::{Result, grant, ipc};

/// Every display's address.
const DISPLAY: u16 = 0x50;
/// Where the pieces of the request are: the bus asks for memory by address, and these are addresses of nothing else.
const ARGUMENT: u64 = 1;
const LIST: u64 = 2;
const REGISTER: u64 = 3;
const BLOCK: u64 = 4;
/// Steps: the list, the register, the block.
const STEPS: u64 = 3;

/// Reads the base block of the EDID of the display on the bus whose driver this is. It waits for the driver, and not for a successor.
///
/// # Errors
/// `EDEADSRCDST`: the driver has died; `ENXIO`: there is no display; `EIO`: it does not do what the request says.
pub fn read_edid(bus: Endpoint) -> Result<[u8; BLOCK_BYTES]> {
    let mut block = [0; BLOCK_BYTES];
    let mut argument = [0; 16];
    argument[..8].copy_from_slice(&LIST.to_le_bytes());
    argument[8] = 2;
    let mut list = [[0; MESSAGE_BYTES]; 2];
    list[0] = message(0, 1, REGISTER);
    list[1] = message(READS, BLOCK_BYTES as u16, BLOCK);
    grant::lend(&argument, bus, |argument| {
        transact(
            |request| ipc::call(bus, request),
            argument,
            |address, act| match address {
                LIST => grant::lend(list.as_flattened(), bus, act)?,
                REGISTER => grant::lend(&[0], bus, act)?,
                BLOCK => grant::lend_mut(&mut block, bus, act)?,
                _ => Err(Errno::EIO),
            },
        )
    })??;
    Ok(block)
}

/// `struct i2c_msg`.
fn message(flags: u16, bytes: u16, buffer: u64) -> [u8; MESSAGE_BYTES] {
    let mut message = [0; MESSAGE_BYTES];
    for (at, word) in [DISPLAY, flags, bytes].into_iter().enumerate() {
        message[2 * at..2 * at + 2].copy_from_slice(&word.to_le_bytes());
    }
    message[8..].copy_from_slice(&buffer.to_le_bytes());
    message
}

/// Asks the bus, and gives it each piece of memory that it asks for (`with`: has it act with a grant of what is at an address).
fn transact(
    ask: impl Fn(&Message) -> Result<Message>,
    argument: GrantId,
    mut with: impl FnMut(u64, &mut dyn FnMut(GrantId) -> Result<Message>) -> Result<Message>,
) -> Result<()> {
    let (minor, request) = (0, ioctl::RDWR);
    let control = Control { minor, request, argument: ARGUMENT, grant: argument, caller: 0, session: 0 };
    let mut wanted = Control::results(&ask(&control.message())?)?;
    for step in 1..=STEPS {
        let (address, bytes) = wanted;
        if bytes == 0 {
            return Err(Errno::EIO);
        }
        let reply = with(address, &mut |piece| {
            let grants = u64::from(argument.0) | u64::from(piece.0) << 32;
            let request = request | step << 32;
            ask(&Continue { minor, request, argument: ARGUMENT, grants, caller: 0, session: 0 }.message())
        })?;
        wanted = Continue::results(&reply)?;
    }
    if wanted.1 == 0 { Ok(()) } else { Err(Errno::EIO) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::RefCell;
    use std::vec;
    use std::vec::Vec;

    /// What a bus that asks for memory at these addresses makes of it, and the grants that it was given.
    fn transacted(asks: &[(u64, u64)]) -> (Result<()>, Vec<u64>) {
        let asks = RefCell::new(asks.iter());
        let given = RefCell::new(vec![]);
        let ask = |request: &Message| {
            if request.label == Continue::LABEL {
                given.borrow_mut().push(Continue::from_message(request).grants >> 32);
            }
            let (further, bytes) = asks.borrow_mut().next().copied().unwrap_or((0, 0));
            Ok(Control::reply(request, 2, further, bytes))
        };
        let with = |address: u64, act: &mut dyn FnMut(GrantId) -> Result<Message>| match address {
            LIST..=BLOCK => act(GrantId(10 + address as u32)),
            _ => Err(Errno::EIO),
        };
        (transact(ask, GrantId(7), with), given.into_inner())
    }

    #[test]
    fn the_bus_gets_the_list_the_register_and_the_block() {
        let (result, given) = transacted(&[(LIST, 32), (REGISTER, 1), (BLOCK, 128)]);
        assert_eq!((result, given), (Ok(()), vec![12, 13, 14]));
        assert_eq!(
            ioctl::Segment::parse(&message(READS, 128, BLOCK)).map(|read| (read.address, read.reads)),
            Ok((0x50, true))
        );
    }

    #[test]
    fn a_bus_that_asks_for_too_little_too_much_or_something_else_is_no_bus() {
        let strange = [
            vec![],
            vec![(LIST, 32), (REGISTER, 1)],
            vec![(LIST, 32), (9, 1)],
            vec![(LIST, 32), (REGISTER, 1), (BLOCK, 128), (BLOCK, 128)],
            vec![(u64::MAX, u64::MAX)],
        ];
        for asks in strange {
            assert_eq!(transacted(&asks).0, Err(Errno::EIO), "{asks:?}");
        }
    }
}
