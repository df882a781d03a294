//! The kernel as a file system sees it that vfs asks: one granted buffer, and the time.

use std::cell::RefCell;
use std::rc::Rc;

use abi::call::KernelCall;
use abi::fs::ShortName;
use abi::{Endpoint, Errno, GrantId, Message, Word};
use sys::host::Kernel;

use super::NOW;

pub const VFS: Endpoint = Endpoint::new(abi::endpoint::slot::VFS, 1);
pub const GRANT: GrantId = GrantId::new(3, 7);

/// The words of a name in a request: a name of an even length is in them, any other one in the granted buffer.
pub fn name_words(text: &str) -> (u64, u64) {
    let short = ShortName::new(text.as_bytes()).filter(|_| text.len().is_multiple_of(2));
    short.map_or((GRANT.to_word(), text.len() as u64), ShortName::words)
}

/// The one buffer that vfs grants, and what the file system may have of it.
pub type Buffer = Rc<RefCell<Vec<u8>>>;

/// The kernel of a file system that talks to vfs alone.
pub struct Fake(pub Buffer);

impl Fake {
    fn range(&self, arguments: [u64; 6], len: usize) -> Result<std::ops::Range<usize>, Errno> {
        assert_eq!(arguments[0] as u32 & 0xfff, VFS.0 & 0xfff);
        if arguments[1] as u32 != GRANT.0 {
            return Err(Errno::EPERM);
        }
        let start = arguments[2] as usize;
        if start + len > self.0.borrow().len() { Err(Errno::EFAULT) } else { Ok(start..start + len) }
    }
}

impl Kernel for Fake {
    fn primitive(&mut self, _: u64, _: Endpoint, _: &Message, _: Endpoint) -> sys::Result<Message> {
        panic!("a request must not make the file system wait for anybody here")
    }

    fn call(&mut self, call: KernelCall, _: [u64; 6]) -> sys::Result<(u64, [u64; 2])> {
        match call {
            KernelCall::Time => Ok((1, [NOW.seconds as u64 * 1_000_000_000, 0])),
            KernelCall::SetAlarm => Ok((0, [0, 0])),
            call => panic!("{call:?}"),
        }
    }

    fn filling(&mut self, call: KernelCall, arguments: [u64; 6], buffer: &mut [u8]) -> sys::Result<u64> {
        assert_eq!(call, KernelCall::SafeCopyFrom);
        let range = self.range(arguments, buffer.len())?;
        buffer.copy_from_slice(&self.0.borrow()[range]);
        Ok(buffer.len() as u64)
    }

    fn reading(&mut self, call: KernelCall, arguments: [u64; 6], buffer: &[u8]) -> sys::Result<u64> {
        if call == KernelCall::Diag {
            return Ok(buffer.len() as u64);
        }
        assert_eq!(call, KernelCall::SafeCopyTo);
        let range = self.range(arguments, buffer.len())?;
        self.0.borrow_mut()[range].copy_from_slice(buffer);
        Ok(buffer.len() as u64)
    }
}
