//! Outcome of a request's handler: done, or continued later.

use abi::Errno;
use alloc::boxed::Box;
use core::convert::Infallible;
use core::future::Future;
use core::pin::Pin;

/// A task: work that waits for other services without blocking the server.
pub type Task<R> = Pin<Box<dyn Future<Output = R>>>;

/// Outcome of a request's handler; `R` is the result. A server with a [`Runtime`](crate::Runtime) may return a task; for the others
/// `T` is an uninhabited type (see [`SyncStep`]).
#[derive(Debug)]
pub enum Step<R, T = Task<R>> {
    /// The request is done, with this result.
    Done(R),
    /// The request continues as a task.
    Task(T),
    /// The handler replies later by other means, or no reply is expected.
    Later,
}

/// Outcome in a server without tasks: done or later.
pub type SyncStep<R> = Step<R, Infallible>;

impl<R> Step<R> {
    /// Makes a step of a task.
    pub fn task(task: impl Future<Output = R> + 'static) -> Step<R> {
        Step::Task(Box::pin(task))
    }
}

impl<R> SyncStep<R> {
    /// Maps the result.
    #[inline]
    pub fn map<Q>(self, change: impl FnOnce(R) -> Q) -> SyncStep<Q> {
        match self {
            Step::Done(result) => Step::Done(change(result)),
            Step::Later => Step::Later,
        }
    }

    /// Returns the result, if the request is done.
    #[inline]
    pub fn as_done(&self) -> Option<&R> {
        match self {
            Step::Done(result) => Some(result),
            Step::Task(never) => match *never {},
            Step::Later => None,
        }
    }

    /// Returns the result, if the request is done.
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
