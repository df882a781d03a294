//! Where the calling thread is bound. A thread that was bound itself has its own place, all others share their process's. Every call notices a fork: a child has
//! none of its parent's.
//!
//! A call that goes as the one before takes its member from [`AtHand`], by a comparison of one word; all others look it up, and ask the broker when it is
//! not known.

use crate::client;
use crate::member::Member;
use crate::memory::ForkMark;
use crate::wait::now_ns;
use crate::wire::internal;
use m3ipc::endpoint::Number;
use m3ipc::error::Error;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The process's own place, and the mark that tells whether it is this process's.
struct Process {
    member: Option<Arc<Member>>,
    /// Counts how often its place has changed.
    mark: ForkMark,
    /// Tells the program from others that the process has executed before.
    program: u64,
}

static PROCESS: Mutex<Process> = Mutex::new(Process { member: None, mark: ForkMark::NONE, program: 0 });
/// A broker has told this program, or the one that it was forked from, where it is bound.
static HAS_JOINED: AtomicBool = AtomicBool::new(false);

/// What a thread keeps.
struct Thread {
    member: Option<Arc<Member>>,
    /// Whether it was bound itself.
    is_own: bool,
    /// The mark's count when its member was the process's.
    changes: u64,
    mark: ForkMark,
}

impl Thread {
    const fn new(mark: ForkMark) -> Thread {
        Thread { member: None, is_own: false, changes: 0, mark }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        AT_HAND.with(|at_hand| at_hand.keep(None, ForkMark::NONE, 0));
    }
}

/// A thread's member, as long as nothing has changed: what a call needs that goes as the one before. It has no destructor, which every use would look for;
/// that of [`Thread`] empties it.
struct AtHand<T> {
    /// Taken out while a call uses it, so that no signal handler drops it meanwhile.
    member: Cell<Option<ManuallyDrop<Arc<T>>>>,
    /// Also while it is taken out.
    is_kept: Cell<bool>,
    mark: Cell<ForkMark>,
    /// The mark's count, as long as the member is the thread's.
    changes: Cell<u64>,
}

impl<T> AtHand<T> {
    const fn new() -> AtHand<T> {
        let (member, is_kept) = (Cell::new(None), Cell::new(false));
        AtHand { member, is_kept, mark: Cell::new(ForkMark::NONE), changes: Cell::new(0) }
    }

    /// Uses the member, if there is one, and no call uses it.
    #[inline(always)]
    fn use_for<R>(&self, work: impl FnOnce(&T) -> Option<R>) -> Option<R> {
        if self.mark.get().count() != self.changes.get() {
            return None;
        }
        let member = self.member.take()?;
        let result = work(&member);
        self.member.set(Some(member));
        result
    }

    /// Keeps another member, as long as the mark's count is this one; not while a call uses the one before.
    fn keep(&self, member: Option<Arc<T>>, mark: ForkMark, changes: u64) {
        let old = self.member.take();
        if old.is_some() || !self.is_kept.get() {
            self.is_kept.set(member.is_some());
            self.member.set(member.map(ManuallyDrop::new));
            self.mark.set(mark);
            self.changes.set(changes);
        }
        drop(old.map(ManuallyDrop::into_inner));
    }
}

thread_local! {
    static THREAD: RefCell<Thread> = const { RefCell::new(Thread::new(ForkMark::NONE)) };
    static AT_HAND: AtHand<Member> = const { AtHand::new() };
}

/// Returns where the calling thread is bound, asking the broker if it is not known.
///
/// # Errors
/// `NotBound`; `NotInitialised`: there is no broker.
pub(crate) fn member() -> Result<Arc<Member>, Error> {
    known_member()?.map_or_else(join, Ok)
}

/// Runs `work` as the calling thread's member.
pub(crate) fn as_member<T>(mut work: impl FnMut(&Member) -> Result<T, Error>) -> Result<T, Error> {
    let at_hand = AT_HAND.with(|at_hand| at_hand.use_for(|member| member.is_bound().then(|| work(member))));
    at_hand.unwrap_or_else(|| work(&*member()?))
}

/// The same, if what the member has to do goes as the call before; `otherwise` if it does not, and nothing is done yet.
#[inline(always)]
pub(crate) fn at_once<M>(
    message: &mut M,
    work: impl FnOnce(&Member, &mut M) -> Option<Result<(), Error>>,
    otherwise: impl FnOnce(&mut M) -> Result<(), Error>,
) -> Result<(), Error> {
    let done = AT_HAND.with(|at_hand| at_hand.use_for(|member| work(member, message)));
    done.unwrap_or_else(|| otherwise(message))
}

fn known_member() -> Result<Option<Arc<Member>>, Error> {
    THREAD.with(|thread| {
        // A signal handler that runs in the middle of a call.
        let mut thread = thread.try_borrow_mut().map_err(|_| Error::Busy)?;
        if !thread.mark.is_mine() {
            return Ok(None);
        }
        if thread.changes != thread.mark.count() {
            let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
            if !thread.is_own {
                thread.member.clone_from(&process.member);
            }
            thread.changes = thread.mark.count();
        }
        let known = thread.member.clone().filter(|member| member.is_bound());
        AT_HAND.with(|at_hand| at_hand.keep(known.clone(), thread.mark, thread.changes));
        Ok(known)
    })
}

/// Asks the broker where this process or thread is bound.
pub(crate) fn join() -> Result<Arc<Member>, Error> {
    forget_after_fork()?;
    let program = PROCESS.lock().unwrap_or_else(PoisonError::into_inner).program;
    let answer = client::call(internal::JOIN, &[own_thread(), program.cast_signed()], &[])?;
    let number = Number::new((answer.value & 0xffff) as i32 - m3ipc::limits::TASKS as i32)?;
    let is_own = answer.value & 1 << 16 != 0;
    let member = Arc::new(Member::new(number, &answer.files)?);
    HAS_JOINED.store(true, Ordering::Relaxed);
    THREAD.with(|thread| {
        let mut thread = thread.try_borrow_mut().map_err(|_| Error::Busy)?;
        thread.member = Some(member.clone());
        thread.is_own = is_own;
        let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_own {
            // Another thread may have asked too; they must share one.
            match process.member.as_ref().filter(|known| known.is_bound()) {
                Some(known) => thread.member = Some(known.clone()),
                None => process.member = Some(member.clone()),
            }
        }
        thread.changes = thread.mark.count_change();
        thread.member.clone().ok_or(Error::NotBound)
    })
}

/// Drops what belongs to the process that this one was forked from.
pub(crate) fn forget_after_fork() -> Result<(), Error> {
    THREAD.with(|thread| {
        let mut thread = thread.try_borrow_mut().map_err(|_| Error::Busy)?;
        if thread.mark.is_mine() {
            return Ok(());
        }
        let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if !process.mark.is_mine() {
            let mark = ForkMark::new().map_err(|_| Error::NoMemory)?;
            *process = Process { member: None, mark, program: now_ns() };
            client::forget();
        }
        *thread = Thread::new(process.mark);
        Ok(())
    })
}

/// Whether a broker has told this program, or the one that it was forked from, where it is bound.
#[inline(always)]
pub(crate) fn has_joined() -> bool {
    HAS_JOINED.load(Ordering::Relaxed)
}

/// Returns what tells this program from others that the process has executed before.
pub(crate) fn program() -> u64 {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner).program
}

/// Returns the word that counts how often the process's place has changed, and is 0 in a child.
pub(crate) fn changes_word() -> Option<&'static AtomicU64> {
    THREAD.with(|thread| Some(thread.try_borrow().ok()?.mark.word()))
}

/// Returns the number of the calling thread.
pub(crate) fn own_thread() -> i64 {
    rustix::thread::gettid().as_raw_nonzero().get().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_uses_is_neither_dropped_nor_used_twice() {
        let mark = ForkMark::new().expect("there is memory for a mark");
        let at_hand = AtHand::new();
        let [one, other] = [Arc::new(1), Arc::new(2)];
        let used = || at_hand.use_for(|member| Some(*member));
        at_hand.keep(Some(one.clone()), mark, mark.count());
        let nested = at_hand.use_for(|_| {
            at_hand.keep(Some(other.clone()), mark, mark.count());
            Some((used(), Arc::strong_count(&one)))
        });
        assert_eq!((nested, used()), (Some((None, 2)), Some(1)));
        mark.count_change();
        assert_eq!(used(), None, "the process may be bound elsewhere");
        at_hand.keep(Some(other.clone()), mark, mark.count());
        assert_eq!((used(), Arc::strong_count(&one)), (Some(2), 1));
        at_hand.keep(None, ForkMark::NONE, 0);
        assert_eq!((used(), Arc::strong_count(&other)), (None, 1));
    }
}
