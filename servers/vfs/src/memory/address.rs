//! Names of sockets as programs give and get them: `struct sockaddr_un`.

use crate::memory as user;
use abi::{Endpoint, Errno};

/// Local sockets, the one family there is.
pub const AF_UNIX: u32 = 1;
/// Bytes of the family, before the name.
const FAMILY_BYTES: usize = 2;
/// Longest name, without the family.
const NAME_BYTES: usize = 108;

/// A name without its family. Empty: none; with NUL as first byte: abstract; else a path.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    bytes: [u8; NAME_BYTES],
    length: u8,
}

impl Address {
    /// No name.
    pub const EMPTY: Address = Address { bytes: [0; NAME_BYTES], length: 0 };

    /// The name with these bytes, of which there are at most 108.
    pub fn new(name: &[u8]) -> Address {
        let mut address = Address::of_length(name.len());
        let length = address.name().len();
        address.name_mut().copy_from_slice(&name[..length]);
        address
    }

    /// A name of this length, at most 108, whose bytes are 0.
    pub fn of_length(length: usize) -> Address {
        Address { bytes: [0; NAME_BYTES], length: length.min(NAME_BYTES) as u8 }
    }

    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }

    /// The name, to be written.
    pub fn name_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length as usize]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether it is a path.
    pub fn is_path(&self) -> bool {
        self.name().first().is_some_and(|first| *first != 0)
    }
}

/// The name of `length` bytes in a program's memory. `EINVAL`: too long or too short, or of another family; `EFAULT`.
pub fn fetch(who: Endpoint, address: u64, length: i32) -> Result<Address, Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::EINVAL)?;
    if !(FAMILY_BYTES..=FAMILY_BYTES + NAME_BYTES).contains(&length) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = [0; FAMILY_BYTES + NAME_BYTES];
    user::fetch(who, address, &mut bytes[..length])?;
    if bytes[..FAMILY_BYTES] != (AF_UNIX as u16).to_le_bytes() {
        return Err(Errno::EINVAL);
    }
    let name = &bytes[FAMILY_BYTES..length];
    let end = match name.first() {
        None | Some(0) => name.len(),
        Some(_) => name.iter().position(|byte| *byte == 0).unwrap_or(name.len()),
    };
    Ok(Address::new(&name[..end]))
}

/// Writes a name to a program's memory, as much of it as there is room for, and its whole length in place of the room. `EINVAL`: a
/// negative room; `EFAULT`.
pub fn store(who: Endpoint, name: &Address, address: u64, length_address: u64) -> Result<(), Errno> {
    let mut room = [0; 4];
    user::fetch(who, length_address, &mut room)?;
    let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| Errno::EINVAL)?;
    let length = store_up_to(who, name, address, room)?;
    user::store(who, length_address, &(length as u32).to_le_bytes())
}

/// Writes the name of a sender as [`store`] does; of one without name only the length, 0.
pub fn store_sender(who: Endpoint, name: &Address, address: u64, length_address: u64) -> Result<(), Errno> {
    match name.is_empty() {
        true => user::store(who, length_address, &0u32.to_le_bytes()),
        false => store(who, name, address, length_address),
    }
}

/// Writes a name to a program's memory that has so much room. Returns its whole length: a path ends with NUL. `EFAULT`.
pub fn store_up_to(who: Endpoint, name: &Address, address: u64, room: usize) -> Result<usize, Errno> {
    let mut bytes = [0; FAMILY_BYTES + NAME_BYTES + 1];
    bytes[..FAMILY_BYTES].copy_from_slice(&(AF_UNIX as u16).to_le_bytes());
    let end = FAMILY_BYTES + name.name().len();
    bytes[FAMILY_BYTES..end].copy_from_slice(name.name());
    let length = end + usize::from(name.is_path());
    user::store(who, address, &bytes[..length.min(room)])?;
    Ok(length)
}

/// `struct msghdr`: where its results are.
pub mod header {
    use super::*;

    const NAME_LENGTH: u64 = 8;
    const CONTROL_LENGTH: u64 = 40;

    /// Writes the results of a recvmsg: the sender's name if there is a place for it, flags, and how many bytes of control messages
    /// have been written.
    pub fn store(
        who: Endpoint,
        header: u64,
        (name_address, room): (u64, u32),
        name: &Address,
        flags: u32,
        control_bytes: u64,
    ) -> Result<(), Errno> {
        if name_address != 0 {
            let length = if name.is_empty() { 0 } else { store_up_to(who, name, name_address, room as usize)? };
            user::store(who, header + NAME_LENGTH, &(length as u32).to_le_bytes())?;
        }
        let mut results = [0; 12];
        results[..8].copy_from_slice(&control_bytes.to_le_bytes());
        results[8..].copy_from_slice(&flags.to_le_bytes());
        user::store(who, header + CONTROL_LENGTH, &results)
    }
}
