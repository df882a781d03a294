//! The random devices and the kernel's log, by the minor numbers that the system file declares for devfs (random(4), kmsg). None of them ever
//! makes its caller wait. vfs itself drives null(4), zero(4) and full(4).

use abi::chardev::Request;
use abi::pm::Stir;
use abi::{Endpoint, Errno, GrantId};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// What each minor number is.
mod minor {
    pub const RANDOM: u64 = 8;
    pub const URANDOM: u64 = 9;
    pub const KMSG: u64 = 11;
}

/// Bytes moved at a time.
const CHUNK: usize = 4096;
/// Bytes of the generator's seed.
const SEED_BYTES: usize = 32;
/// Most bytes of one read, so that nobody else waits for long.
const READ_LIMIT: u64 = 1 << 20;

/// The devices.
pub struct MemoryDevices {
    random: ChaCha20Rng,
}

impl MemoryDevices {
    /// The devices, with a seed for the random ones.
    pub fn new(seed: [u8; 32]) -> Self {
        MemoryDevices { random: ChaCha20Rng::from_seed(seed) }
    }

    /// Does what is asked. The outer `None`: it has no answer.
    pub fn answer(&mut self, requester: Endpoint, request: Request) -> Option<Result<u64, Errno>> {
        Some(match request {
            Request::Open(open) => check(open.minor),
            Request::Close(_) => Ok(0),
            Request::Read(read) => self.read(requester, read.minor, read.grant, read.bytes),
            Request::Write(write) => self.write(requester, write.minor, write.grant, write.bytes),
            Request::Control(_) | Request::Continue(_) => Err(Errno::ENOTTY),
            Request::Map(_) => Err(Errno::ENODEV),
            Request::ReadAt(_) | Request::WriteAt(_) => Err(Errno::ESPIPE),
            Request::Poll(poll) => check(poll.minor).map(|_| poll.events),
            Request::Cancel(_) => return None,
            Request::SetUses(_) => Err(Errno::ENOSYS),
        })
    }

    fn read(&mut self, requester: Endpoint, minor: u64, grant: GrantId, bytes: u64) -> Result<u64, Errno> {
        check(minor)?;
        let bytes = bytes.min(READ_LIMIT);
        if minor == minor::KMSG {
            return Ok(0);
        }
        let mut chunk = [0; CHUNK];
        for (offset, count) in pieces(bytes) {
            self.random.fill_bytes(&mut chunk[..count]);
            sys::copy::to_grant(requester, grant, offset, &chunk[..count])?;
        }
        Ok(bytes)
    }

    fn write(&mut self, requester: Endpoint, minor: u64, grant: GrantId, bytes: u64) -> Result<u64, Errno> {
        check(minor)?;
        if minor == minor::KMSG { log(requester, grant, bytes) } else { self.stir(requester, grant, bytes) }
    }

    /// Mixes what is written into both generators, this one and that of `getrandom`. Whoever writes learns nothing and makes nothing
    /// easier to foresee: the numbers of the generators are part of their next seeds.
    fn stir(&mut self, requester: Endpoint, grant: GrantId, bytes: u64) -> Result<u64, Errno> {
        let mut chunk = [0; CHUNK];
        let count = CHUNK.min(bytes as usize);
        sys::copy::from_grant(requester, grant, 0, &mut chunk[..count])?;
        self.mix_in(&chunk[..count]);
        let [first, second, third, fourth] = core::array::from_fn(|_| self.random.next_u64());
        sys::ipc::call(Endpoint::PM, &Stir { first, second, third, fourth }.message())?.result()?;
        Ok(count as u64)
    }

    fn mix_in(&mut self, offered: &[u8]) {
        for piece in offered.chunks(SEED_BYTES) {
            let mut seed = [0; SEED_BYTES];
            self.random.fill_bytes(&mut seed);
            seed.iter_mut().zip(piece).for_each(|(byte, offered)| *byte ^= offered);
            self.random = ChaCha20Rng::from_seed(seed);
        }
    }
}

/// Offset and length of the pieces in which so many bytes are copied.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..bytes).step_by(CHUNK).map(move |offset| (offset, CHUNK.min((bytes - offset) as usize)))
}

fn check(minor: u64) -> Result<u64, Errno> {
    match minor {
        minor::RANDOM | minor::URANDOM | minor::KMSG => Ok(0),
        _ => Err(Errno::ENXIO),
    }
}

/// Puts a line into the kernel's log.
fn log(requester: Endpoint, grant: GrantId, bytes: u64) -> Result<u64, Errno> {
    const LINE: usize = 900;
    let mut line = [0; LINE];
    let count = LINE.min(bytes as usize);
    sys::copy::from_grant(requester, grant, 0, &mut line[..count])?;
    let text = alloc::string::String::from_utf8_lossy(&line[..count]);
    sys::log!("{}", text.trim_end());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    //! What needs no memory of others.
    use super::*;
    use abi::chardev::{Open, Poll};

    fn devices() -> MemoryDevices {
        MemoryDevices::new([7; 32])
    }

    #[test]
    fn what_is_written_decides_what_comes() {
        let draw = |offered: &[u8]| {
            let mut devices = devices();
            devices.mix_in(offered);
            devices.random.next_u64()
        };
        assert_eq!(draw(&[1; 100]), draw(&[1; 100]));
        assert_ne!(draw(&[1; 100]), draw(&[1; 99]));
        assert_ne!(draw(b""), draw(&[0; 32]));
    }

    #[test]
    fn minors_that_do_not_exist_are_refused() {
        for minor in [0, 1, 3, 5, 7, 64, u64::MAX] {
            let open = Open { minor, flags: 0, caller: 1 | 1 << 32, session: 1, ids: 0, node: 0 };
            assert_eq!(devices().answer(Endpoint::NONE, Request::Open(open)), Some(Err(Errno::ENXIO)));
        }
    }

    #[test]
    fn all_events_are_there_at_once() {
        let poll = Poll { minor: 8, events: 5, now: false, since: 0 };
        assert_eq!(devices().answer(Endpoint::NONE, Request::Poll(poll)), Some(Ok(5)));
    }
}
