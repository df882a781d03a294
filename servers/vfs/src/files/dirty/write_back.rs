//! How dirty pages go to their file systems: before anything else is asked about their files, when these are synced, and with time.

use super::{Files, Mount, NodeRef, Run};
use crate::files::known::Change;
use abi::{Errno, fs};
use alloc::{boxed::Box, rc::Rc};
use core::{future::Future, pin::Pin};

impl Files {
    /// Has the file system write the dirty pages of these files, on one file system, before a request about them. In the turn in which it returns,
    /// there are none.
    ///
    /// # Errors
    /// `ENOSPC`: no grant is free. That pages are lost is an error of the next sync.
    pub async fn settle<const N: usize>(&self, nodes: [Option<&NodeRef>; N]) -> Result<(), Errno> {
        self.settle_for(nodes, 0).await
    }

    /// [`Files::settle`] before a request that may give so many bytes space, which leaves room for the new pages of others: or they are written, too.
    pub async fn settle_for<const N: usize>(&self, nodes: [Option<&NodeRef>; N], bytes: u64) -> Result<(), Errno> {
        while !self.is_settled_for(nodes, bytes) {
            let own = nodes.into_iter().flatten().find(|node| node.dirty().is_any()).cloned();
            let file_system = nodes.into_iter().flatten().next().map(|node| node.file_system());
            let is_new = |node: &NodeRef| {
                let is_there = file_system.is_some_and(|file_system| Rc::ptr_eq(file_system, node.file_system()));
                is_there && node.known_stat().new_size() > 0
            };
            let others = || {
                file_system.inspect(|file_system| file_system.room().stop_keeping());
                self.dirty.any(is_new)
            };
            let Some(node) = own.or_else(others) else { break };
            self.write_dirty(&node).await?;
        }
        Ok(())
    }

    /// Whether [`Files::settle`] has nothing to wait for: then these files have no dirty pages, and get none before the end of the turn, or of a
    /// [`Change`] that begins in it.
    #[inline]
    pub fn is_settled<const N: usize>(&self, nodes: [Option<&NodeRef>; N]) -> bool {
        self.is_settled_for(nodes, 0)
    }

    /// The same for [`Files::settle_for`].
    #[inline]
    pub fn is_settled_for<const N: usize>(&self, nodes: [Option<&NodeRef>; N], bytes: u64) -> bool {
        nodes.iter().flatten().for_each(|node| node.dirty().is_admitted.set(false));
        let is_settled = |node: &NodeRef| !node.dirty().is_any() && node.file_system().room().spares_pages(bytes);
        nodes.into_iter().flatten().all(is_settled)
    }

    /// Settles all files on the file system of a mount, or all at all.
    pub async fn settle_all(&self, mount: Option<&Mount>) -> Result<(), Errno> {
        let is_wanted = |node: &NodeRef| mount.is_none_or(|mount| Rc::ptr_eq(mount.file_system(), node.file_system()));
        // A file that is settled is not in the list any more.
        while let Some(node) = self.dirty.any(is_wanted) {
            self.settle([Some(&node)]).await?;
        }
        Ok(())
    }

    /// What a sync has to tell of dirty pages that were lost, once.
    pub fn take_failure(&self, node: &NodeRef) -> Result<(), Errno> {
        node.dirty().failure.take().map_or(Ok(()), Err)
    }

    /// Boxed: those who settle files rarely find dirty pages.
    fn write_dirty<'a>(&'a self, node: &'a NodeRef) -> Pin<Box<dyn Future<Output = Result<(), Errno>> + 'a>> {
        Box::pin(async move {
            let dirty = node.dirty();
            let _guard = dirty.writing_back.lock().await;
            dirty.is_admitted.set(false);
            // What a death leaves says when the file was written, and so does the last request.
            let newest = dirty.newest(&self.dirty.store);
            while let Some(pages) = dirty.next(newest) {
                let mut last_byte = pages.file_end() - 1;
                if let Err((end, error)) = self.write_run(node, pages).await? {
                    sys::log!("pages of node {:#x} cannot be written back: {error}", node.number());
                    dirty.failure.set(Some(error));
                    if node.known_stat().new_size() > 0 {
                        node.set_size(end);
                    }
                    // What lies behind is tried for itself.
                    last_byte = end;
                }
                // From behind, so that the places are taken again in their order.
                while let Some(done) = dirty.take_last_of(&pages, last_byte) {
                    self.dirty.store.release_dirty(done.place, done.pages.into());
                }
            }
            self.is_clean(node);
            Ok(())
        })
    }

    /// Returns what the file system says, and up to where in the file it has them. Errors: it could not be asked.
    async fn write_run(&self, node: &NodeRef, run: Run) -> Result<Result<(), (u64, Errno)>, Errno> {
        let (service, first) = (node.service(), run.file_start());
        let mut at = run.start;
        while at < run.end {
            let (position, bytes) = (first + u64::from(at), u64::from(run.end - at));
            let grant = self.dirty.store.grant_dirty(run.place, at.into(), bytes as usize, service.endpoint())?;
            let written_ns = node.known_stat().written_ns();
            let _change = Change::of_dirty(node);
            let request = fs::Write { node: node.number(), grant: grant.id(), position, bytes, ids: 0, written_ns };
            match self.peers.ask(service, request.message()).await.map(|reply| reply.words[0].min(bytes)) {
                Ok(0) => return Ok(Err((position, Errno::ENOSPC))),
                // If it is not all, the next request is told why.
                Ok(written) => at += written as u16,
                Err(error) => return Ok(Err((position, error))),
            }
        }
        Ok(Ok(()))
    }
}
