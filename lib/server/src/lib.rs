//! How a server serves: the receive loop, readiness and heartbeats, names of other services, and many requests at a time.
//!
//! Two kinds of server:
//! * [`run`] a [`Service`]: each request is answered before the next is received. Drivers, file systems, ds, pci, vm.
//! * [`Runtime::serve`]: a request may become a task, an `async fn` that waits for other services without keeping the server
//!   from receiving. vfs, tty.
//!
//! A [`Service`] that asks others without waiting for them has [`Peers`]: ext2.
//!
//! Both tell rs that they are ready and answer its heartbeats. How an answer travels depends on the asker: one with a tag
//! (word 6) is asynchronous and gets its answer whenever it receives; one without waits, and gets it at once.
//!
//! Neighbours: `sys` below; `driver` and `fs` above, which have loops of their own kinds on top of these.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod denied;
mod inbox;
pub mod names;
mod peers;
mod recent;
mod runtime;
mod service;
mod step;
mod update;

pub use inbox::Inbox;
pub use peers::Peers;
pub use runtime::channel::{self, Receiver, Sender};
pub use runtime::lock::{Lock, LockGuard};
pub use runtime::oneshot::{self, Reply, Waiting};
pub use runtime::peer::{OWN_TAG, Peer, Repeat, Request};
pub use runtime::wait::WaitList;
pub use runtime::{Runtime, timers::Sleep};
pub use service::{Service, run, run_from};
pub use step::{Step, SyncStep, Task};

use abi::endpoint::slot;
use abi::{Endpoint, Errno, Message};
use sys::ipc;

/// Exit status of a service that could not initialise itself.
const FAILED: i32 = 1;

/// Tells rs that initialisation is done. [`run`] and [`Runtime::serve`] do it.
///
/// # Panics
/// When rs cannot be told.
pub fn ready() {
    // vm waits for nobody, and rs may be waiting for vm just now.
    if sys::endpoint().slot() != slot::VM {
        ipc::call(Endpoint::RS, &abi::rs::Ready { status: 0 }.message())
            .expect("rs does not take the report that this service is ready");
    }
}

/// Tells rs that initialisation has failed, and ends. The service is not started again; when it is optional and the error is
/// `ENODEV` or `ENXIO` the system goes on without a word.
pub fn not_ready(error: Errno) -> ! {
    let status = -i64::from(error.0);
    let _ = ipc::call(Endpoint::RS, &abi::rs::Ready { status }.message());
    sys::start::exit(FAILED)
}

/// True when the sender of `request` does not wait for the answer, but takes it when it receives next.
pub(crate) fn is_asynchronous(request: &Message) -> bool {
    request.tag() != 0 && request.source.is_service()
}
