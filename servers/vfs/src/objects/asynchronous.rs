//! Signal-driven input and output (fcntl(2), `O_ASYNC`): the owner of an open file is signalled when something happens to its object.
//!
//! A [`Teller`] watches the object as a registration of an epoll does, and has pm signal the owner. It ends with the owner's record, which
//! says that it exists: so a successor makes it anew. A device is asked when it will have something to read, and after it has been told,
//! asked again after the next transfer. Neighbours: `files::leases` (the record), `calls::asynchronous` (the calls), `Object::happened`.

use super::{OpenFile, Wanted, character::Character};
use crate::{
    base::Base,
    events::{
        Watch,
        poll::{POLLIN, POLLRDNORM},
    },
    files::leases::FileOwner,
};
use abi::{Errno, Message, vfs};
use alloc::{
    boxed::Box,
    rc::{Rc, Weak},
};
use core::{
    cell::{Cell, RefCell},
    fmt::{self, Debug, Formatter},
};
use server::quota::Share;

/// See the head of the file.
struct Teller {
    base: &'static Base,
    file: Weak<OpenFile>,
    /// A device that is asked, with what its user is charged.
    device: Option<(Question, Share)>,
}

/// Whether a device is asked, and how that ends early.
#[derive(Default)]
struct Question {
    asked: Cell<bool>,
    end: RefCell<Option<super::End>>,
}

impl Debug for Teller {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Teller")
    }
}

/// Has the owner of an open file told of what happens to its object. `ENOMEM`: no room, or the user has as many devices as he may.
pub fn watch(base: &'static Base, file: &Rc<OpenFile>, owner: &FileOwner) -> Result<(), Errno> {
    let record = owner.record();
    let device = match file.object::<Character>() {
        None => None,
        Some(_) => {
            let charge = base.store().charge_device_interest(record.user).map_err(|_| Errno::ENOMEM)?;
            Some((Question::default(), charge))
        }
    };
    let teller = Rc::new(Teller { base, file: Rc::downgrade(file), device });
    for (watchers, events) in file.any().watchers().into_iter().flatten() {
        let watch: Rc<dyn Watch> = teller.clone();
        watchers.add_watch(&watch, events)?;
    }
    owner.set_teller(record.told_of, Some(teller.clone()));
    teller.ask();
    Ok(())
}

impl Teller {
    fn tell(&self, reason: u64) {
        let owner = self.file.upgrade().and_then(|file| file.owner());
        let Some(record) = owner.map(|owner| owner.record()) else { return };
        if let Some(descriptor) = record.told_of {
            self.base.tell_owner(&record, descriptor, reason);
        }
    }

    /// Asks a device to reply when there is something to read, unless it is asked.
    fn ask(self: &Rc<Self>) {
        let (Some(file), Some((question, _))) = (self.file.upgrade(), &self.device) else { return };
        let Some(character) = file.object::<Character>().filter(|_| !question.asked.replace(true)) else { return };
        let this = Rc::downgrade(self);
        let done = move |reply: Result<Message, Errno>| {
            if let Some(this) = this.upgrade() {
                this.answered(reply.map_or(0, |reply| reply.words[0] as u32));
            }
        };
        let begun = character.ask(self.base.peers(), Wanted::of(POLLIN | POLLRDNORM), true, Box::new(done));
        // The reply may have come at once. Without a question, the next transfer asks.
        match begun {
            Ok(end) if question.asked.get() => drop(question.end.replace(Some(end))),
            Ok(_) => {}
            Err(_) => question.asked.set(false),
        }
    }

    fn answered(&self, events: u32) {
        if let Some((question, _)) = &self.device {
            question.asked.set(false);
            question.end.take();
        }
        if events & (POLLIN | POLLRDNORM) != 0 {
            self.tell(vfs::OWNER_INPUT);
        }
    }
}

impl Watch for Teller {
    fn changed(self: Rc<Self>, events: u32) {
        if self.device.is_some() {
            return self.ask();
        }
        if let Some(reason) = self.file.upgrade().and_then(|file| file.any().happened(events)) {
            self.tell(reason);
        }
    }

    fn height(&self) -> usize {
        0
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some(end) = self.device.as_ref().and_then(|(question, _)| question.end.take()) {
            end();
        }
    }
}
