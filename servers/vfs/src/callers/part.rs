//! A part of a call that is carried out as if it were a call of its own: a request of io_submit.
//!
//! What answers a call later ends the part instead, while one is in progress (`base::Base::answer`).

use crate::events::Event;
use abi::Errno;
use core::cell::Cell;

/// The part of a thread's call in progress.
#[derive(Debug, Default)]
pub struct Part {
    state: Cell<State>,
    number: Cell<u32>,
    event: Event,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// There is none that waits.
    #[default]
    None,
    /// What would be the answer to a call is to be its result.
    InProgress,
    /// It has ended with this result.
    Ended(Result<u64, Errno>),
}

impl Part {
    /// Sets the number of the part that begins, by which its transfers differ from those of others; 0 at the end of the call.
    pub fn set_number(&self, number: u32) {
        self.number.set(number);
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number.get()
    }

    /// Ends the part that waits. False: none does.
    pub fn end(&self, result: Result<u64, Errno>) -> bool {
        let is_in_progress = matches!(self.state.get(), State::InProgress);
        if is_in_progress {
            self.state.set(State::Ended(result));
            self.event.fire();
        }
        is_in_progress
    }

    /// Waits for [`Part::end`]. Returns the part's result.
    pub async fn wait(&self) -> Result<u64, Errno> {
        self.state.set(State::InProgress);
        loop {
            self.event.wait().await;
            if let State::Ended(result) = self.state.replace(State::None) {
                return result;
            }
        }
    }
}
