//! Admission: a call that allocates begins only when the heap has its reserve (`sys::fallible`), so that its small allocations
//! cannot fail. Without it the call is refused with `ENOMEM`, before it has done anything.

use abi::endpoint::slot;
use abi::rs::FailAllocation;
use abi::{Message, chardev, fs, linux, vm};
use sys::fallible;

/// Linux calls that give resources back. They begin whatever memory there is.
const RELEASING: &[u32] = &[
    linux::nr::CLOSE,
    linux::nr::EXIT,
    linux::nr::EXIT_GROUP,
    linux::nr::KILL,
    linux::nr::MUNMAP,
    linux::nr::RT_SIGRETURN,
    linux::nr::TGKILL,
    linux::nr::WAIT4,
    linux::nr::WAITID,
];

/// Linux calls that cannot fail: programs take an error for the result.
const INFALLIBLE: &[u32] = &[
    linux::nr::ALARM,
    linux::nr::GETEGID,
    linux::nr::GETEUID,
    linux::nr::GETGID,
    linux::nr::GETPGRP,
    linux::nr::GETPID,
    linux::nr::GETPPID,
    linux::nr::GETTID,
    linux::nr::GETUID,
    linux::nr::PERSONALITY,
    linux::nr::SCHED_YIELD,
    linux::nr::SETFSGID,
    linux::nr::SETFSUID,
    linux::nr::SET_TID_ADDRESS,
    linux::nr::UMASK,
];

/// Requests of vfs that give resources back, or tell what became of a program that waits. A refusal would be for good.
const RELEASING_OF_VFS: &[u32] = &[
    chardev::Cancel::LABEL,
    chardev::Close::LABEL,
    fs::Put::LABEL,
    vm::ClaimImages::LABEL,
    vm::DeviceMapDone::LABEL,
    vm::FileMapDone::LABEL,
    vm::ImageClose::LABEL,
    vm::ImageForget::LABEL,
    vm::ImageResize::LABEL,
    vm::SharedClose::LABEL,
    vm::SharedWritten::LABEL,
    vm::SyncDone::LABEL,
];

/// Returns whether a message is handled even without a reserve: calls that release or cannot fail, and requests of services, but those
/// by which vfs passes on what programs ask.
pub fn is_exempt(message: &Message) -> bool {
    let label = &message.label;
    match message.source.is_service() {
        true => message.source.slot() != slot::VFS || RELEASING_OF_VFS.contains(label),
        false => RELEASING.contains(label) || INFALLIBLE.contains(label),
    }
}

/// Returns the refusal of a message that is not exempt, when memory is exhausted.
#[inline]
pub(crate) fn refuse(message: &Message, is_exempt: impl FnOnce(&Message) -> bool) -> Option<Message> {
    let error = fallible::admit().err()?;
    (!is_exempt(message)).then(|| message.reply(Err(error)))
}

/// Carries out rs's request to let an allocation fail, for tests. Returns the reply.
#[inline]
pub(crate) fn obey(message: &Message) -> Option<Message> {
    if message.label != FailAllocation::LABEL || message.source.slot() != slot::RS {
        return None;
    }
    fallible::fail_after(FailAllocation::from_message(message).after);
    Some(message.reply(Ok(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::{Endpoint, Errno};

    const PROGRAM: Endpoint = Endpoint::new(200, 1);

    fn request(source: Endpoint, label: u32) -> Message {
        Message { source, ..Message::new(label) }
    }

    #[test]
    fn a_call_without_a_reserve_is_refused_once_unless_it_releases() {
        let refused = Some(Err(Errno::ENOMEM));
        for (label, refusal) in
            [(linux::nr::READ, refused), (linux::nr::CLOSE, None), (linux::nr::GETPID, None), (linux::nr::UMASK, None)]
        {
            fallible::fail_after(1);
            let message = request(PROGRAM, label);
            assert_eq!(refuse(&message, is_exempt).map(|reply| reply.result()), refusal);
            assert_eq!(refuse(&message, is_exempt), None);
        }
    }

    #[test]
    fn of_the_services_vfs_alone_is_refused() {
        let at = |slot| request(Endpoint::new(slot, 1), 7);
        assert_eq!([slot::VFS, slot::PM, slot::RS].map(|slot| is_exempt(&at(slot))), [false, true, true]);
    }

    #[test]
    fn what_vfs_gives_back_is_taken() {
        let at = |label| is_exempt(&request(Endpoint::new(slot::VFS, 1), label));
        assert_eq!([fs::Put::LABEL, fs::Create::LABEL, vm::ImageClose::LABEL].map(at), [true, false, true]);
    }

    #[test]
    fn rs_alone_chooses_an_allocation_that_fails() {
        let order = FailAllocation { after: 2 }.message();
        assert_eq!(obey(&Message { source: PROGRAM, ..order }), None);
        assert!(!fallible::is_failure_pending());
        let reply = obey(&Message { source: Endpoint::RS, ..order });
        assert_eq!(reply.map(|reply| reply.result()), Some(Ok(0)));
        assert_eq!([(); 3].map(|()| fallible::permit()), [Ok(()), Err(Errno::ENOMEM), Ok(())]);
    }
}
