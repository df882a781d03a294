//! What a FIFO knows besides what a pipe does: how often it was opened for writing, so that a reader who came before the first writer has
//! not lost the last one, for a successor neither.
//!
//! Neighbours: `open`, which counts; `objects::pipe`, which compares.

use super::{Pipe, World};

impl Pipe {
    /// How often it was opened for writing, also before a death.
    pub fn write_opens(&self) -> u32 {
        self.state.borrow().ring.write_opens()
    }

    /// Counts one more opening for writing.
    pub fn count_write_open(&self, world: &impl World) {
        let mut state = self.state.borrow_mut();
        state.ring.count_write_open();
        self.save(world, &mut state);
    }
}
