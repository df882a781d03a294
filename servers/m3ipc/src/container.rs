//! A container: its rendezvous, and who its members are.

use crate::system::{Identity, System};
use crate::threads::{Doing, Outcome, Place, Threads, Wait};
use abi::Endpoint;
use abi::endpoint::{APPLICATIONS_BIT, FIRST_CONTAINER};
use alloc::vec::Vec;
use m3ipc::descriptor::{ContainerInfo, Name};
use m3ipc::endpoint::Number;
use m3ipc::error::Error;
use m3ipc::limits::SLOTS;
use m3ipc::message::Message;
use m3ipc::rendezvous::{End, Ended, Received, Rendezvous};
use m3ipc::rights::SlotSet;

/// How a process was bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process; the threads that are not bound themselves share its endpoint.
    Process,
    /// A thread of its own.
    Thread,
}

/// What has been decided about a member and is not done yet: a successor does it ([`crate::server::M3ipc::finish`]). `by`: the thread whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// It is bound.
    Binding { by: Endpoint },
    /// Its primitive is ended.
    Waking { by: Endpoint },
    /// Its binding ends, and this signal is sent to its process; 0: none.
    Unbinding { by: Endpoint, signal: u64 },
}

/// A process that is bound.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The thread that is bound.
    pub thread: Endpoint,
    /// The one that has made the call in progress: another of the same process may share the endpoint.
    pub caller: Endpoint,
    /// Its process.
    pub pid: i32,
    /// Its user, when it was bound.
    pub user: u32,
    /// How it was bound.
    pub kind: Kind,
    /// It sends and receives by the kernel's primitives.
    pub is_direct: bool,
    /// The members that have asked for its thread, and may wait for it by primitives.
    pub known_to: SlotSet,
    /// What it was to receive when its call had ended already.
    pub undelivered: Option<Message>,
    /// Value of its last notification.
    pub value: i32,
    /// Whom programs want to be told of its end.
    pub warn: i32,
    /// What its descriptor of rights keeps for programs.
    pub kept: (u64, u64),
    /// Messages that m3ipc has sent for it.
    pub sent: u64,
    /// Where its library counts the messages that it sends by primitives; 0: nowhere.
    pub counter: u64,
    /// Number of this binding.
    pub binding: u64,
    /// Copies that it has asked for.
    pub copies: u64,
    /// Bits of `misc`.
    pub flags: u32,
    /// Its name; of processes of other nodes.
    pub name: Name,
    /// What is to be done about it.
    pub unfinished: Option<Unfinished>,
}

impl Member {
    /// A process that has just been bound, and is not direct.
    pub fn of(thread: Endpoint, process: &Identity, kind: Kind) -> Member {
        Member {
            thread,
            caller: thread,
            pid: process.pid,
            user: process.user,
            kind,
            is_direct: false,
            known_to: SlotSet::NONE,
            undelivered: None,
            value: 0,
            warn: m3ipc::endpoint::Endpoint::NONE.raw(),
            kept: (!0, 0),
            sent: 0,
            counter: 0,
            binding: 0,
            copies: 0,
            flags: 0,
            name: [0; 16],
            unfinished: None,
        }
    }
}

/// Who is in each slot.
pub struct Members {
    slots: Vec<Option<Member>>,
    /// The thread that was bound last in each slot, whether it still is or not, if it was direct: each is so once.
    last: Vec<Option<Endpoint>>,
    /// The slots that may have one: most do not, and searches are many.
    taken: SlotSet,
}

impl Members {
    /// The member in a slot.
    pub fn get(&self, number: Number) -> Option<&Member> {
        self.slots[number.index()].as_ref()
    }

    /// As [`Members::get`].
    pub fn get_mut(&mut self, number: Number) -> Option<&mut Member> {
        self.slots[number.index()].as_mut()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Number, &Member)> {
        self.taken.iter().filter_map(|number| Some((number, self.get(number)?)))
    }

    /// The member that a thread is bound as.
    pub fn of_thread(&self, thread: Endpoint) -> Option<Number> {
        self.iter().find(|(_, member)| member.thread == thread).map(|(number, _)| number)
    }

    /// The slot that a thread was direct in that is bound there no more, as long as no other is.
    pub fn last_of_thread(&self, thread: Endpoint) -> Option<Number> {
        self.last.iter().position(|last| *last == Some(thread)).map(Number::at)
    }

    /// Puts a member into a slot, or takes it out.
    pub fn set(&mut self, number: Number, member: Option<Member>) {
        // A successor finds every member, wherever this one dies.
        self.taken.insert(number);
        let is_free = member.is_none();
        if let Some(member) = &member {
            self.last[number.index()] = member.is_direct.then_some(member.thread);
        }
        self.slots[number.index()] = member;
        if is_free {
            self.taken.remove(number);
        }
    }
}

/// A container that runs.
pub struct Container {
    /// Its number.
    pub number: u8,
    /// What `vm_init` was told.
    pub info: ContainerInfo,
    /// Who waits for whom, as far as m3ipc carries the messages.
    pub machine: Rendezvous<Message>,
    /// Who is bound.
    pub members: Members,
    /// The slots whose calls have ended in the rendezvous, and whose callers are still to be told.
    pub ended: SlotSet,
}

impl Container {
    /// A container in which nobody is bound.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn new(number: u8, info: ContainerInfo) -> Result<Container, Error> {
        let slots = sys::fallible::filled(None, SLOTS).map_err(|_| Error::NoMemory)?;
        let last = sys::fallible::filled(None, SLOTS).map_err(|_| Error::NoMemory)?;
        let members = Members { slots, last, taken: SlotSet::NONE };
        Ok(Container { number, info, machine: Rendezvous::new(), members, ended: SlotSet::NONE })
    }

    /// How many slots a user who is not root may have: half of them, so that nobody fills the container.
    pub fn user_slots(&self) -> usize {
        (self.info.processes + self.info.tasks) as usize / 2
    }

    /// What it is, as descriptors tell it.
    pub fn describe(&self) -> ContainerInfo {
        ContainerInfo { bound: self.members.iter().count() as i32, ..self.info }
    }

    /// The kernel's row of its members.
    pub fn row(&self) -> usize {
        FIRST_CONTAINER + usize::from(self.number)
    }

    /// The place of a slot.
    pub fn place(&self, number: Number) -> Place {
        Place { container: self.number, number }
    }

    /// Whether `vm_init` has given the container this slot.
    pub fn has(&self, number: Number) -> bool {
        (-self.info.tasks..self.info.processes).contains(&number.get())
    }

    /// Lets a member send and receive through m3ipc only, from now on until it is unbound.
    pub fn mediate(&mut self, number: Number, system: &mut impl System) {
        use crate::system::Native::Answering;
        let Some(member) = self.members.get(number).copied().filter(|member| member.is_direct) else { return };
        // Answers that are awaited by primitives will come by m3ipc: the requests have been received.
        for (other, theirs) in self.members.iter().filter(|(_, theirs)| theirs.is_direct) {
            if let Some(Answering(of)) = system.state(theirs.thread) {
                let of = if other == number {
                    self.members.of_thread(of)
                } else {
                    Some(number).filter(|_| of == member.thread)
                };
                if let Some(from) = of {
                    // It is bound.
                    let _ = self.machine.await_answer(other, from);
                }
            }
        }
        system.join(member.thread, APPLICATIONS_BIT);
        system.notify(member.thread);
        // Last: if this process dies before, the call that asks for it does all this once more.
        if let Some(member) = self.members.get_mut(number) {
            member.is_direct = false;
        }
    }

    /// Tells the callers whose calls have ended.
    pub fn give_results(&mut self, system: &mut impl System, threads: &Threads) {
        while let Some(number) = self.ended.first() {
            self.ended.remove(number);
            let Some(member) = self.members.get_mut(number) else { continue };
            let Some(Doing::Ended(outcome)) = threads.get(member.caller).map(|thread| thread.doing) else { continue };
            if !give(system, member.caller, outcome) {
                member.undelivered = outcome.received.map(|(_, message)| message);
            }
        }
    }
}

/// Notes the ends of calls that wait in a rendezvous, when somebody else's call lets them. That call's own result is noted before anybody is told:
/// if this process dies in between, it is not made twice.
pub struct Finish<'a, S> {
    pub system: &'a mut S,
    pub threads: &'a mut Threads,
    pub members: &'a mut Members,
    pub ended: &'a mut SlotSet,
}

impl<S: System> Ended<Message> for Finish<'_, S> {
    fn ended(&mut self, number: Number, end: End<Message>) {
        let now_ns = self.system.now_ns();
        let outcome = outcome(end, |source| self.members.get(source).map_or(0, |member| member.value), now_ns);
        let Some(member) = self.members.get_mut(number) else { return };
        let thread = self.threads.get_mut(member.caller);
        let address = match thread.as_ref().map(|thread| thread.doing) {
            Some(Doing::Waiting(Wait::Message { address })) => address,
            _ => {
                // Its answer comes before its library has asked for it.
                member.undelivered = outcome.1;
                return;
            }
        };
        let Some(thread) = thread else { return };
        let outcome = Outcome { result: outcome.0, received: outcome.1.map(|message| (address, message)) };
        thread.doing = Doing::Ended(outcome);
        thread.deadline_ns = 0;
        self.ended.insert(number);
    }
}

/// The result of an end, and the message that belongs to it. `value`: what a slot has notified with last.
pub fn outcome(end: End<Message>, value: impl Fn(Number) -> i32, now_ns: u64) -> (i64, Option<Message>) {
    match end {
        End::Sent => (0, None),
        End::Failed(error) => (error.to_result().into(), None),
        End::Received(Received::Message(source, message)) => (0, Some(Message { source: source.raw(), ..message })),
        End::Received(Received::Notification(source)) => {
            let number = source.number().ok();
            let value = number.map_or(0, value);
            let index = number.map_or(0, Number::index);
            (0, Some(Message::notification(source, index, value as u64, now_ns)))
        }
    }
}

/// Gives a waiting caller its result and its message. Returns false when it did not get them.
pub fn give(system: &mut impl System, caller: Endpoint, outcome: Outcome) -> bool {
    use zerocopy::IntoBytes;
    let result = match outcome.received {
        Some((address, message)) => match system.write(caller, address, message.as_bytes()) {
            Ok(()) => outcome.result,
            Err(error) => error.to_result().into(),
        },
        None => outcome.result,
    };
    system.reply(caller, result)
}
