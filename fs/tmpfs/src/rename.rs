//! Renaming, the operation with the most rules, and exchanging two names.

use fs::Errno;
use fs::file_system::{Caller, S_IFCHR};

use crate::entry::{Entry, Name};
use crate::inode::{self, Inode, ROOT};
use crate::volume::Tmpfs;

impl Tmpfs {
    /// Renames `old` to `new`, replacing an existing node, and leaves a whiteout of `whiteout` under the old name, if that is given.
    pub(crate) fn move_name(&mut self, old: Name, new: Name, whiteout: Option<Caller>) -> Result<(), Errno> {
        if old.is_dot() || new.is_dot() {
            return Err(Errno::EBUSY);
        }
        let source = self.entry(old)?;
        let node = source.node(&self.memory);
        let target = new.find(&self.memory);
        let replaced = target.map(|target| target.node(&self.memory));
        if replaced == Some(node) {
            return Ok(());
        }
        self.check_move(node, new.directory(), old.directory() != new.directory(), replaced)?;
        if whiteout.is_some() {
            inode::require_room(&self.memory)?;
        }
        let white = whiteout.map(|caller| self.new_inode(old.directory(), S_IFCHR, caller));
        match target {
            Some(target) => self.change_node(new, target, node),
            None => self.add_name(new, node),
        }
        match white {
            Some(white) => {
                white.set_links(&mut self.memory, 1);
                self.change_node(old, source, white);
            }
            None => self.remove_name(old, source),
        }
        self.note_move(node, old.directory(), new.directory());
        if let Some(replaced) = replaced {
            if replaced.is_directory(&self.memory) {
                self.count_child(new.directory(), -1);
            }
            self.lose_name(replaced);
        }
        Ok(())
    }

    /// Swaps two names.
    pub(crate) fn exchange_names(&mut self, first: Name, second: Name) -> Result<(), Errno> {
        if first.is_dot() || second.is_dot() {
            return Err(Errno::EBUSY);
        }
        let (one, other) = (self.entry(first)?, self.entry(second)?);
        let nodes = (one.node(&self.memory), other.node(&self.memory));
        if nodes.0 == nodes.1 {
            return Ok(());
        }
        if first.directory() != second.directory() {
            self.check_inside(nodes.0, second.directory())?;
            self.check_inside(nodes.1, first.directory())?;
        }
        self.change_node(first, one, nodes.1);
        self.change_node(second, other, nodes.0);
        self.note_move(nodes.0, first.directory(), second.directory());
        self.note_move(nodes.1, second.directory(), first.directory());
        Ok(())
    }

    /// Checks that a node may get a name in `directory`, instead of another one. The name takes no room: the old one goes.
    fn check_move(&self, node: Inode, directory: Inode, is_far: bool, replaced: Option<Inode>) -> Result<(), Errno> {
        let memory = &self.memory;
        if is_far {
            self.check_inside(node, directory)?;
        }
        let Some(replaced) = replaced else {
            return if directory.links(memory) == 0 { Err(Errno::ENOENT) } else { Ok(()) };
        };
        match (node.is_directory(memory), replaced.is_directory(memory)) {
            (true, false) => Err(Errno::ENOTDIR),
            (false, true) => Err(Errno::EISDIR),
            (true, true) if replaced.size(memory) > 0 => Err(Errno::ENOTEMPTY),
            _ => Ok(()),
        }
    }

    /// `EINVAL` if `directory` is `node` or below it.
    fn check_inside(&self, node: Inode, directory: Inode) -> Result<(), Errno> {
        if !node.is_directory(&self.memory) {
            return Ok(());
        }
        let mut above = directory;
        while above.number() != ROOT {
            if above == node {
                return Err(Errno::EINVAL);
            }
            above = above.parent(&self.memory)?;
        }
        if node.number() == ROOT { Err(Errno::EINVAL) } else { Ok(()) }
    }

    /// Gives a name, whose entry this is, to another node.
    fn change_node(&mut self, name: Name, entry: Entry, node: Inode) {
        let now = self.now();
        entry.set_node(&mut self.memory, node);
        name.directory().save(&self.memory);
        name.directory().touch(&mut self.memory, now);
    }

    /// A node has moved to another directory, or in its own.
    fn note_move(&mut self, node: Inode, from: Inode, to: Inode) {
        let now = self.now();
        node.save(&self.memory);
        node.set_changed(&mut self.memory, now);
        if from != to && node.is_directory(&self.memory) {
            node.save_pointers(&self.memory);
            node.set_parent(&mut self.memory, to);
            self.count_child(from, -1);
            self.count_child(to, 1);
        }
    }
}
