//! What comes of a request when its handler returns: done now, or later.

use abi::Errno;
use alloc::boxed::Box;
use core::convert::Infallible;
use core::future::Future;
use core::pin::Pin;

/// Work that waits for other services, without keeping the server from the next request.
pub type Task<R> = Pin<Box<dyn Future<Output = R>>>;

/// How a request goes on after its handler has looked at it; `R` is its result. A server with a [`Runtime`](crate::Runtime) may give a
/// task; for the others `T` is a type without values (see [`SyncStep`]).
#[derive(Debug)]
pub enum Step<R, T = Task<R>> {
    /// It is done, with this result.
    Done(R),
    /// It goes on as a task.
    Task(T),
    /// It is answered later by another way, or nobody waits for an answer.
    Later,
}

/// A step of a server without tasks: done or later.
pub type SyncStep<R> = Step<R, Infallible>;

impl<R> Step<R> {
    /// A request that goes on as a task.
    pub fn task(task: impl Future<Output = R> + 'static) -> Step<R> {
        Step::Task(Box::pin(task))
    }
}

impl<R> SyncStep<R> {
    /// The step with another result.
    #[inline]
    pub fn map<Q>(self, change: impl FnOnce(R) -> Q) -> SyncStep<Q> {
        match self {
            Step::Done(result) => Step::Done(change(result)),
            Step::Later => Step::Later,
        }
    }

    /// The result, if there is one already.
    #[inline]
    pub fn as_done(&self) -> Option<&R> {
        match self {
            Step::Done(result) => Some(result),
            Step::Task(never) => match *never {},
            Step::Later => None,
        }
    }

    /// The result, if there is one already.
    #[inline]
    pub fn done(self) -> Option<R> {
        match self {
            Step::Done(result) => Some(result),
            Step::Later => None,
        }
    }
}

impl<V, T> From<Result<V, Errno>> for Step<Result<V, Errno>, T> {
    #[inline]
    fn from(result: Result<V, Errno>) -> Self {
        Step::Done(result)
    }
}

impl<V, T> From<Errno> for Step<Result<V, Errno>, T> {
    #[inline]
    fn from(error: Errno) -> Self {
        Step::Done(Err(error))
    }
}

impl<R, T> From<Option<R>> for Step<R, T> {
    /// `None`: later.
    #[inline]
    fn from(done: Option<R>) -> Self {
        done.map_or(Step::Later, Step::Done)
    }
}
