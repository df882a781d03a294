//! Log lines for replies that the system file does not permit: the client would wait forever without a visible reason.
//!
//! Rate-limited: the first denial is logged, then every one whose number is a power of two.

use abi::endpoint::{FIRST_SERVICE, slot};
use abi::{Endpoint, Errno};
use core::sync::atomic::{AtomicU32, Ordering};

static DENIALS: AtomicU32 = AtomicU32::new(0);

/// Checks the result of a reply to `to`: a denial is logged with the names of both sides. Other errors mean that the client has died.
pub fn note<T>(to: Endpoint, sent: Result<T, Errno>) -> Result<T, Errno> {
    if matches!(sent, Err(Errno::ECALLDENIED)) {
        log_denial(to);
    }
    sent
}

#[cold]
fn log_denial(to: Endpoint) {
    let count = DENIALS.fetch_add(1, Ordering::Relaxed) + 1;
    if count.is_power_of_two() {
        let name = name_of(to.slot());
        sys::log!(
            "its answer to {name} is denied ({count} so far): {name} is not among its destinations in the system file"
        );
    }
}

/// Returns the name of the service in a slot.
fn name_of(place: usize) -> Name {
    Name { place, name: place.checked_sub(FIRST_SERVICE).and_then(|index| slot::NAMES.get(index)).copied() }
}

struct Name {
    place: usize,
    name: Option<&'static str>,
}

impl core::fmt::Display for Name {
    fn fmt(&self, formatter: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self.name {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "the process in slot {}", self.place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_log_names_services_and_slots() {
        assert_eq!(name_of(slot::VFS).to_string(), "vfs");
        assert_eq!(name_of(slot::RS).to_string(), "rs");
        assert_eq!(name_of(60).to_string(), "the process in slot 60");
    }
}
