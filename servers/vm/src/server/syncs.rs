//! msync of files: the program waits in vm while vfs writes back what has changed, one file after the other.

use crate::memory::object::ObjectId;
use abi::Endpoint;
use alloc::{collections::VecDeque, vec::Vec};

/// A program that waits.
#[derive(Clone, Debug)]
struct Sync {
    process: Endpoint,
    /// What is left to be written back; never empty.
    files: Vec<ObjectId>,
    /// The vfs that has fetched this.
    taken_by: Option<Endpoint>,
}

/// All programs that wait.
#[derive(Debug, Default)]
pub struct Syncs {
    waiting: VecDeque<Sync>,
}

impl Syncs {
    /// A program waits from now on for at least one file.
    #[expect(clippy::disallowed_methods, reason = "one of each waiting thread: from the heap's reserve")]
    pub fn add(&mut self, process: Endpoint, files: Vec<ObjectId>) {
        self.waiting.push_back(Sync { process, files, taken_by: None });
    }

    /// The next for this vfs. What a predecessor of it had fetched is fetched again.
    pub fn take_next(&mut self, vfs: Endpoint) -> Option<(Endpoint, ObjectId)> {
        let next = self.waiting.iter_mut().find(|sync| sync.taken_by != Some(vfs))?;
        next.taken_by = Some(vfs);
        next.files.last().map(|&file| (next.process, file))
    }

    /// The file that was fetched for this program is done, with or without success. Returns whether the program's wait is over; `None`: it
    /// did not wait.
    pub fn finish(&mut self, process: Endpoint, failed: bool) -> Option<bool> {
        let index = self.waiting.iter().position(|sync| sync.process == process && sync.taken_by.is_some())?;
        let sync = &mut self.waiting[index];
        sync.files.pop();
        sync.taken_by = None;
        let is_over = failed || sync.files.is_empty();
        if is_over {
            self.waiting.remove(index);
        }
        Some(is_over)
    }

    /// vm has died: programs that wait repeat their calls.
    pub fn forget_all(&mut self) {
        self.waiting.clear();
    }

    /// The thread is gone.
    pub fn forget(&mut self, process: Endpoint) {
        self.waiting.retain(|sync| sync.process != process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_done_one_after_the_other_and_again_for_a_new_vfs() {
        let (program, old, new) = (Endpoint::new(200, 1), Endpoint::new(8, 1), Endpoint::new(8, 2));
        let mut syncs = Syncs::default();
        syncs.add(program, alloc::vec![ObjectId(1), ObjectId(2)]);
        assert_eq!(syncs.take_next(old), Some((program, ObjectId(2))));
        assert_eq!(syncs.take_next(old), None);
        assert_eq!(syncs.take_next(new), Some((program, ObjectId(2))));
        assert_eq!(syncs.finish(program, false), Some(false));
        assert_eq!(syncs.take_next(new), Some((program, ObjectId(1))));
        assert_eq!(syncs.finish(program, false), Some(true));
        assert_eq!(syncs.finish(program, false), None);
    }

    #[test]
    fn the_first_failure_ends_the_call() {
        let (program, vfs) = (Endpoint::new(200, 1), Endpoint::new(8, 1));
        let mut syncs = Syncs::default();
        syncs.add(program, alloc::vec![ObjectId(1), ObjectId(2)]);
        syncs.take_next(vfs);
        assert_eq!(syncs.finish(program, true), Some(true));
    }
}
