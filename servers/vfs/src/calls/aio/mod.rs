//! Asynchronous I/O as Linux itself has it (libaio): io_setup, io_destroy, io_submit, io_getevents, io_pgetevents, io_cancel.
//!
//! A context's id is the address of a page that vm maps into the process: libaio looks there for a ring of its own, finds none, and makes the
//! call. `submit` carries requests out, `events` collects what has become of them, `aio` has the contexts. See ADR 170.

mod events;
mod submit;

use super::{Entry, call, call::Call, done, poll::signal_mask_at, task};
use crate::{
    aio::{Context, Contexts},
    base::Base,
    callers::Caller,
    keep::records::Note,
    memory as user,
    processes::Process,
};
use abi::{Endpoint, Errno, linux::nr, vfs::AIO_REQUESTS, vm};
use alloc::rc::Rc;
use events::{Wait, deadline};
use submit::Submission;
use sys::ipc;

/// Requests that not even the number is taken of (Linux: 256 MiB of `struct io_event`).
const TOO_MANY_REQUESTS: u32 = 0x1000_0000 / crate::aio::EVENT_BYTES as u32;
/// How long a call waits that needs another turn.
const PAUSE_NS: u64 = 20_000;
/// Where a `struct iocb` has its `aio_key`.
const KEY: u64 = 8;
/// What Linux writes there, and wants back.
const IOCB_KEY: u32 = 0;

pub(super) const CALLS: &[Entry] = &[
    call(nr::IO_SETUP, |c| task(Owner::new(c).set_up(c.flags(0), c.words[1]))),
    call(nr::IO_DESTROY, |c| task(Owner::new(c).destroy(c.words[0]))),
    call(nr::IO_SUBMIT, |c| task(Submission::new(c)?.run())),
    call(nr::IO_GETEVENTS, |c| Wait::begin(c, deadline(c)?, None)),
    call(nr::IO_PGETEVENTS, |c| Wait::begin(c, deadline(c)?, signal_mask_at(c, c.words[5])?)),
    call(nr::IO_CANCEL, |c| done(cancel(c.contexts(), &c.process.caller, c.first()))),
];

/// The context whose id is the first argument. `EINVAL`.
fn context_of(call: &Call) -> Result<Rc<Context>, Errno> {
    call.contexts().get(call.process.caller.identity(), call.words[0])
}

/// What makes and ends contexts of a program.
struct Owner {
    base: &'static Base,
    contexts: &'static Contexts,
    process: Rc<Process>,
}

impl Owner {
    fn new(call: &Call) -> Owner {
        Owner { base: call.base(), contexts: call.contexts(), process: call.process() }
    }

    fn caller(&self) -> &Caller {
        &self.process.caller
    }

    /// Waits for the next turn: what was changed in this one is committed, with the results of others.
    async fn end_turn(&self) {
        self.base.runtime().sleep_ns(PAUSE_NS).await;
    }

    /// io_setup. The context is committed before the program is told its id: the call that comes again would take that for one of before.
    async fn set_up(self, requests: u32, id_address: u64) -> Result<u64, Errno> {
        let address = match self.caller().noted() {
            Some(Note::Moved(address)) => address,
            _ => {
                let address = self.make_context(requests, id_address)?;
                self.end_turn().await;
                address
            }
        };
        let told = user::store(self.caller().endpoint, id_address, &address.to_le_bytes());
        if told.is_err() {
            // `EINVAL`: the process has ended.
            let _ = self.contexts.end(self.caller().identity(), address);
            unmap_page(self.caller(), address);
        }
        told.map(|()| 0)
    }

    /// Makes a context. Returns its id. `EINVAL`: no requests, or there is an id where it should go; `EAGAIN`: no room for so many.
    fn make_context(&self, requests: u32, id_address: u64) -> Result<u64, Errno> {
        let caller = self.caller();
        let [known] = user::fetch_words(caller.endpoint, id_address)?;
        if known != 0 || !(1..=TOO_MANY_REQUESTS).contains(&requests) {
            return Err(Errno::EINVAL);
        }
        if u64::from(requests) > AIO_REQUESTS {
            return Err(Errno::EAGAIN);
        }
        let address = map_page(caller)?;
        let context = Context::new(self.base.store(), caller.identity(), requests, caller.user(), address);
        let added = context.and_then(|context| self.contexts.add(context));
        added.inspect_err(|_| unmap_page(caller, address))?;
        caller.note(Note::Moved(address));
        Ok(address)
    }

    /// io_destroy. That the context has ended is committed before its page is unmapped; a call that comes again unmaps it, if that was not done.
    /// `EINVAL`: there is none.
    async fn destroy(self, address: u64) -> Result<u64, Errno> {
        if !matches!(self.caller().noted(), Some(Note::Moved(_))) {
            self.contexts.end(self.caller().identity(), address)?;
            self.caller().note(Note::Moved(address));
            self.end_turn().await;
        }
        unmap_page(self.caller(), address);
        Ok(0)
    }
}

/// Has vm map a page into a program, for its call in progress.
fn map_page(caller: &Caller) -> Result<u64, Errno> {
    let request = vm::PageMap { process: caller.endpoint, call: caller.call_number() };
    let reply = ipc::call(Endpoint::VM, &request.message())?;
    vm::PageMap::results(&reply)
}

/// Has vm unmap it. What prevents that, such as that the program has too many mappings to split one, leaves the page to the program.
fn unmap_page(caller: &Caller, address: u64) {
    let request = vm::PageUnmap { process: caller.endpoint, call: caller.call_number(), address };
    let unmapped = ipc::call(Endpoint::VM, &request.message()).and_then(|reply| reply.result());
    if let Err(error) = unmapped {
        sys::log!("the page of a context of process {} stays mapped: {error}", caller.pid);
    }
}

/// io_cancel: every request has completed, or is being carried out by another thread, which nothing stops. `EFAULT`, `EINVAL`.
fn cancel(contexts: &Contexts, caller: &Caller, [context, iocb]: [u64; 2]) -> Result<u64, Errno> {
    let mut key = [0; size_of::<u32>()];
    user::fetch(caller.endpoint, iocb.wrapping_add(KEY), &mut key)?;
    if u32::from_le_bytes(key) == IOCB_KEY {
        contexts.get(caller.identity(), context)?;
    }
    Err(Errno::EINVAL)
}
