//! The receive loop of servers that answer each request before they receive the next.

use crate::{Inbox, SyncStep};
use crate::{admission, recent, update};
use abi::endpoint::slot;
use abi::kernel::Notify;
use abi::{Endpoint, Message};
use sys::ipc;

/// What a server implements.
pub trait Service {
    /// Handles a request (or a message of the kernel). Returns the reply, or `Later` if no reply is expected or the service sends it
    /// itself. An unknown request is answered with `ENOSYS`.
    fn request(&mut self, message: &Message) -> SyncStep<Message>;

    /// Handles a notification of another service. (Those of rs too, after the reply to the heartbeat, because rs also notifies ds of
    /// changes.)
    fn notified(&mut self, from: Endpoint) {
        let _ = from;
    }

    /// Handles the alarm of `sys::time::set_alarm`, at monotonic time `now_ns`.
    fn alarm(&mut self, now_ns: u64) {
        let _ = now_ns;
    }

    /// Handles interrupts: one bit for each hook.
    fn interrupt(&mut self, hooks: u64) {
        let _ = hooks;
    }

    /// Returns whether a request is handled even when memory is exhausted. One that is not is answered with `ENOMEM` then. See
    /// [`is_exempt`](crate::is_exempt), the default.
    fn is_exempt(&self, message: &Message) -> bool {
        admission::is_exempt(message)
    }

    /// Prepares for a live update: requests are completed, or left where the successor (start kind `Updated`) finds them. No request
    /// is handled afterwards. Clients repeat after an update what they repeat after a crash, so most services need do nothing.
    fn prepare_update(&mut self) {}
}

/// Reports to rs that the service is ready, then serves forever.
pub fn run(service: &mut impl Service) -> ! {
    run_from(service, &Inbox::default())
}

/// Serves as [`run`] does, for a service that waits for its device in the middle of requests: other messages are queued in `inbox`.
pub fn run_from(service: &mut impl Service, inbox: &Inbox) -> ! {
    crate::ready();
    let mut incoming = inbox.receive();
    loop {
        match answer(service, &incoming) {
            SyncStep::Later => incoming = inbox.receive(),
            SyncStep::Done(reply) => hand_over(&mut incoming, &reply, inbox),
        }
    }
}

/// Dispatches a message to the method of its kind.
fn answer(service: &mut impl Service, incoming: &Message) -> SyncStep<Message> {
    if incoming.label != Notify::LABEL {
        recent::note(incoming);
        if update::is_announced(incoming) {
            service.prepare_update();
            update::wait_for_successor(incoming);
        }
        let refusal = admission::refuse(incoming, |message| service.is_exempt(message));
        return match refusal.or_else(|| admission::obey(incoming)) {
            Some(reply) => SyncStep::Done(reply),
            None => service.request(incoming),
        };
    }
    let notify = Notify::from_message(incoming);
    match incoming.source {
        Endpoint::CLOCK => service.alarm(notify.time_ns),
        Endpoint::HARDWARE => service.interrupt(notify.bits),
        other => {
            answer_heartbeat(other);
            service.notified(other);
        }
    }
    SyncStep::Later
}

/// Answers a heartbeat, if the notification came from rs, and returns memory that the service does not need any more to vm.
#[cold]
#[inline(never)]
pub(crate) fn answer_heartbeat(from: Endpoint) {
    if from.slot() == slot::RS {
        // On an error rs misses the heartbeat and restarts the service.
        let _ = ipc::notify(Endpoint::RS);
        sys::trim::heap();
    }
}

/// Sends the reply to a request and receives the next message into its place. A client that has died meanwhile gets none; a reply that is denied
/// is logged by the kernel.
fn hand_over(message: &mut Message, reply: &Message, inbox: &Inbox) {
    let to = message.source;
    let asynchronous = crate::is_asynchronous(message);
    if !inbox.is_empty() {
        let _ = if asynchronous { ipc::send(to, reply) } else { ipc::send_nonblocking(to, reply) };
        *message = inbox.receive();
        return;
    }
    let received = if asynchronous {
        ipc::send_receive(to, reply, Endpoint::ANY)
    } else {
        ipc::reply_receive(to, reply, Endpoint::ANY)
    };
    match received {
        Ok(next) => *message = inbox.note(next),
        Err(_) => *message = inbox.receive(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::vec::Vec;
    use sys::Result;
    use sys::host::Kernel;

    struct Recorder(Rc<RefCell<Vec<(u64, Endpoint)>>>);

    impl Kernel for Recorder {
        fn primitive(&mut self, number: u64, to: Endpoint, _: &Message, _: Endpoint) -> Result<Message> {
            self.0.borrow_mut().push((number, to));
            Ok(Message::default())
        }
        fn call(&mut self, _: abi::call::KernelCall, _: [u64; 6]) -> Result<(u64, [u64; 2])> {
            unreachable!()
        }
        fn filling(&mut self, _: abi::call::KernelCall, _: [u64; 6], _: &mut [u8]) -> Result<u64> {
            unreachable!()
        }
        fn reading(&mut self, _: abi::call::KernelCall, _: [u64; 6], _: &[u8]) -> Result<u64> {
            unreachable!()
        }
    }

    #[derive(Default)]
    struct Seen {
        alarm_ns: u64,
        hooks: u64,
        notified: Vec<Endpoint>,
    }

    impl Service for Seen {
        fn request(&mut self, message: &Message) -> SyncStep<Message> {
            SyncStep::Done(message.reply(Ok(7)))
        }
        fn notified(&mut self, from: Endpoint) {
            self.notified.push(from);
        }
        fn alarm(&mut self, now_ns: u64) {
            self.alarm_ns = now_ns;
        }
        fn interrupt(&mut self, hooks: u64) {
            self.hooks = hooks;
        }
    }

    fn notification(source: Endpoint, time_ns: u64, bits: u64) -> Message {
        Message { source, ..Notify { time_ns, bits }.message() }
    }

    #[test]
    fn notifications_reach_the_handler_of_their_kind() {
        let mut service = Seen::default();
        assert!(answer(&mut service, &notification(Endpoint::CLOCK, 55, 0)).done().is_none());
        assert!(answer(&mut service, &notification(Endpoint::HARDWARE, 0, 6)).done().is_none());
        assert!(answer(&mut service, &notification(Endpoint::new(9, 2), 0, 0)).done().is_none());
        assert_eq!((service.alarm_ns, service.hooks, service.notified), (55, 6, std::vec![Endpoint::new(9, 2)]));
    }

    #[test]
    fn a_heartbeat_is_answered_without_the_service() {
        let calls = Rc::new(RefCell::new(Vec::new()));
        sys::host::install(Recorder(calls.clone()));
        answer(&mut Seen::default(), &notification(Endpoint::new(slot::RS, 1), 0, 0));
        assert_eq!(*calls.borrow(), [(abi::call::NOTIFY, Endpoint::RS)]);
    }

    #[test]
    fn only_tagged_requests_of_services_are_handed_over_waiting() {
        let calls = Rc::new(RefCell::new(Vec::new()));
        sys::host::install(Recorder(calls.clone()));
        let mut request = Message { source: Endpoint::new(20, 1), ..Message::new(1) };
        let reply = request.reply(Ok(0));
        hand_over(&mut request.clone(), &reply, &Inbox::default());
        request.words[6] = 9;
        let reply = request.reply(Ok(0));
        hand_over(&mut request.clone(), &reply, &Inbox::default());
        request.source = Endpoint::new(200, 1);
        let reply = request.reply(Ok(0));
        hand_over(&mut request.clone(), &reply, &Inbox::default());
        let numbers: Vec<u64> = calls.borrow().iter().map(|call| call.0).collect();
        assert_eq!(numbers, [abi::call::REPLYREC, abi::call::SENDWAIT, abi::call::REPLYREC]);
    }
}
