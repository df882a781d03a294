//! The result of a call.

use abi::Errno;

/// Result of a call.
pub type Result<T> = core::result::Result<T, Errno>;
