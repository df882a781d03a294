//! Live update: the end of an incarnation that is replaced by a new binary (`rs::PrepareUpdate`).

use abi::endpoint::slot;
use abi::rs::PrepareUpdate;
use abi::{Endpoint, Message};
use sys::ipc;

/// Message of rs that it is about to replace this server.
pub(crate) fn is_announced(message: &Message) -> bool {
    message.label == PrepareUpdate::LABEL && message.source.slot() == slot::RS
}

/// Replies to rs that this server is prepared, and handles no further message: senders wait for the successor.
pub(crate) fn wait_for_successor(request: &Message) -> ! {
    let mut received = ipc::send_receive(Endpoint::RS, &request.reply(Ok(0)), Endpoint::RS);
    loop {
        // rs destroys this incarnation, even if rs itself restarts before. Heartbeats need no reply.
        if received.is_err() {
            sys::log!("update: waiting for the end by rs failed: {received:?}");
            sys::start::exit(crate::FAILED);
        }
        received = ipc::receive(Endpoint::RS);
    }
}
