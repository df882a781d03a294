//! Setting the real-time clock. Programs read it from a page of vm's, so vm is told before and after (`abi::vm::ClockChange`).

use abi::{Endpoint, Errno, vm};
use sys::ipc;

/// Sets the real time.
///
/// # Errors
/// `ECALLDENIED`; vm's.
pub fn set_real_ns(real_ns: u64) -> Result<(), Errno> {
    tell(false)?;
    let set = sys::time::set_real_ns(real_ns);
    tell(true)?;
    set
}

/// Ends what a predecessor that died may have begun. A service that sets the clock calls it when it is started again.
pub fn settle() {
    if let Err(error) = tell(true) {
        sys::log!("programs cannot be told the time: {error}");
    }
}

fn tell(done: bool) -> Result<(), Errno> {
    ipc::call_repeating(Endpoint::VM, &vm::ClockChange { done }.message())?.result().map(drop)
}
