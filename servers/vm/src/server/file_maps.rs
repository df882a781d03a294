//! mmap of files: the program waits in vm while vfs brings the content. vm tells vfs that there is something to fetch, and goes
//! on; vfs fetches one after the other and reports each as done.

use crate::operations::mmap::MapRequest;
use abi::Endpoint;
use alloc::collections::VecDeque;

/// One program that waits.
#[derive(Clone, Copy, Debug)]
pub struct FileMap {
    /// The thread.
    pub process: Endpoint,
    /// What it wants.
    pub request: MapRequest,
    /// The vfs that has fetched this.
    taken_by: Option<Endpoint>,
}

/// All programs that wait.
#[derive(Debug, Default)]
pub struct FileMaps {
    waiting: VecDeque<FileMap>,
}

impl FileMaps {
    /// A program waits from now on.
    #[expect(clippy::disallowed_methods, reason = "one of each waiting thread: from the heap's reserve")]
    pub fn add(&mut self, process: Endpoint, request: MapRequest) {
        self.waiting.push_back(FileMap { process, request, taken_by: None });
    }

    /// The next one for this vfs. What a predecessor of it had fetched is fetched again.
    pub fn take_next(&mut self, vfs: Endpoint) -> Option<FileMap> {
        let next = self.waiting.iter_mut().find(|map| map.taken_by != Some(vfs))?;
        next.taken_by = Some(vfs);
        Some(*next)
    }

    /// Ends the waiting of a thread whose map was fetched.
    pub fn finish(&mut self, process: Endpoint) -> Option<FileMap> {
        let index = self.waiting.iter().position(|map| map.process == process && map.taken_by.is_some())?;
        self.waiting.remove(index)
    }

    /// vm has died: programs that wait repeat their calls.
    pub fn forget_all(&mut self) {
        self.waiting.clear();
    }

    /// The thread is gone.
    pub fn forget(&mut self, process: Endpoint) {
        self.waiting.retain(|map| map.process != process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> MapRequest {
        MapRequest::parse(&[0, 4096, 1, 2, 3, 0, 0]).expect("a good request")
    }

    #[test]
    fn each_map_is_fetched_once_by_each_vfs() {
        let (program, old, new) = (Endpoint::new(200, 1), Endpoint::new(8, 1), Endpoint::new(8, 2));
        let mut maps = FileMaps::default();
        maps.add(program, request());
        assert!(maps.finish(program).is_none(), "nobody has fetched it");
        assert_eq!(maps.take_next(old).map(|map| map.process), Some(program));
        assert!(maps.take_next(old).is_none());
        assert!(maps.take_next(new).is_some());
        assert!(maps.finish(program).is_some() && maps.finish(program).is_none());
    }

    #[test]
    fn a_dead_thread_waits_no_more() {
        let (program, vfs) = (Endpoint::new(200, 1), Endpoint::new(8, 1));
        let mut maps = FileMaps::default();
        maps.add(program, request());
        maps.forget(program);
        assert!(maps.take_next(vfs).is_none());
    }
}
