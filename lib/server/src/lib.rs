//! The server kit: receive loops, readiness and heartbeats, names of other services, many requests in progress.
//!
//! Two kinds of server:
//! * [`run`] a [`Service`]: each request is answered before the next is received. Drivers, file systems, ds, pci, vm.
//! * [`Runtime::serve`]: a request may become a task, an `async fn` that waits for other services without keeping the server
//!   from receiving. vfs, tty.
//!
//! A [`Service`] with asynchronous requests to other services uses [`Peers`]: ext2.
//!
//! Both report ready to rs and answer its heartbeats. The client determines how a reply is sent: a request with a tag
//! (word 6) is asynchronous, and its client gets the reply when it receives; a client without tag is waiting.
//!
//! Neighbours: `sys` below; `driver` and `fs` above, which build their own receive loops on these.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod admission;
mod callers;
pub mod clock;
mod inbox;
pub mod names;
mod peers;
pub mod quota;
mod recent;
mod runtime;
mod service;
mod step;
mod update;

pub use admission::is_exempt;
pub use callers::{Callers, OnRuntime, Pending};
pub use inbox::Inbox;
pub use peers::Peers;
pub use runtime::channel::{self, Receiver, Sender};
pub use runtime::lock::{Lock, LockGuard};
pub use runtime::oneshot::{self, Reply, Waiting};
pub use runtime::peer::{Continuation, OWN_TAG, Peer, Repeat, Request};
pub use runtime::progress::STALL_PERIODS;
pub use runtime::wait::WaitList;
pub use runtime::{Handlers, Runtime, timers::Sleep};
pub use service::{Service, run, run_from};
pub use step::{Step, SyncStep, Task};

use abi::endpoint::slot;
use abi::{Endpoint, Errno, Message};
use sys::ipc;

/// Exit status of a service whose initialisation failed.
const FAILED: i32 = 1;

/// Reports to rs that the service is ready. [`run`] and [`Runtime::serve`] call it.
///
/// # Panics
/// If rs cannot be reached.
pub fn ready() {
    // vm never blocks, and rs may be waiting for vm at the moment.
    if sys::endpoint().slot() != slot::VM {
        ipc::call(Endpoint::RS, &abi::rs::Ready { status: 0 }.message())
            .expect("the report to rs that this service is ready failed");
    }
}

/// Reports to rs that initialisation has failed, and exits. The service is not restarted; if it is optional and the error is
/// `ENODEV` or `ENXIO`, nothing is logged.
pub fn not_ready(error: Errno) -> ! {
    let status = -i64::from(error.0);
    let _ = ipc::call(Endpoint::RS, &abi::rs::Ready { status }.message());
    sys::start::exit(FAILED)
}

/// Returns whether the request is asynchronous: its sender is not waiting, and gets the reply when it receives next.
pub(crate) fn is_asynchronous(request: &Message) -> bool {
    request.tag() != 0 && request.source.is_service()
}
