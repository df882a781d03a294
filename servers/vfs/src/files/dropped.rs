//! What inodes that have ended leave to do.

/// What is left to do for an inode without holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The node's number.
    pub node: u64,
    /// Uses that have ended; 0: the file system has been told.
    pub uses: u64,
    /// vm has to forget its pages.
    pub image: bool,
    /// Programs may map images of it.
    pub may_be_mapped: bool,
    /// It is unlinked: its space is to be freed at once.
    pub urgent: bool,
}

impl Dropped {
    /// Adds the note of another inode that has been the same node. Returns false if it is one of another node.
    pub(super) fn takes(&mut self, other: &Dropped) -> bool {
        if self.node != other.node {
            return false;
        }
        self.uses += other.uses;
        self.image |= other.image;
        self.may_be_mapped |= other.may_be_mapped;
        self.urgent |= other.urgent;
        true
    }
}
