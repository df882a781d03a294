//! The end of an incarnation that is replaced by a new program (`rs::PrepareUpdate`).

use abi::endpoint::slot;
use abi::rs::PrepareUpdate;
use abi::{Endpoint, Message};
use sys::ipc;

/// rs is about to replace this server.
pub(crate) fn is_announced(message: &Message) -> bool {
    message.label == PrepareUpdate::LABEL && message.source.slot() == slot::RS
}

/// Tells rs that this server is prepared, and handles no further message: senders wait for the successor.
pub(crate) fn wait_for_successor(request: &Message) -> ! {
    let mut received = ipc::send_receive(Endpoint::RS, &request.reply(Ok(0)), Endpoint::RS);
    loop {
        // Heartbeats need no answer any more. rs destroys this incarnation, and it does so too if it dies in between.
        if received.is_err() {
            sys::log!("rs does not replace this service: {received:?}");
            sys::start::exit(crate::FAILED);
        }
        received = ipc::receive(Endpoint::RS);
    }
}
