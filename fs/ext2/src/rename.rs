//! Renaming, the operation with the most rules.
//!
//! All checks come first. Then the new name appears, then the old one goes, then links are counted: a
//! failure of the device in between leaves one name too many rather than none.

use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::{Caller, S_IFCHR};
use fs::names::Known;

use crate::directory::{Found, Space};
use crate::entry::is_dot;
use crate::naming::MAX_LINKS;
use crate::superblock::ROOT_INODE;
use crate::volume::Ext2;

/// A name in a directory.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The directory.
    pub dir: u32,
    /// The name in it.
    pub name: &'a [u8],
}

impl<D: BlockDevice> Ext2<D> {
    /// Renames `old` to `new`, replacing an existing node.
    pub(crate) fn move_name(&mut self, old: Place, new: Place, caller: Caller) -> Result<(), Errno> {
        if is_dot(old.name) || is_dot(new.name) {
            return Err(Errno::EBUSY);
        }
        let source = self.require_entry(old.dir, old.name)?;
        let target = self.find_entry(new.dir, new.name)?;
        if target.is_some_and(|target| target.node == source.node) {
            return Ok(());
        }
        let is_directory = self.inode(source.node)?.is_directory();
        if is_directory && old.dir != new.dir && self.is_inside(new.dir, source.node)? {
            return Err(Errno::EINVAL);
        }
        match target {
            Some(target) => self.check_replaced(target, is_directory)?,
            None if is_directory && old.dir != new.dir && self.inode(new.dir)?.links >= MAX_LINKS => {
                return Err(Errno::EMLINK);
            }
            None => {}
        }
        let space = match target {
            Some(_) => None,
            None => self.make_space(None, new.dir, new.name, caller)?,
        };
        // It may have moved to make the space.
        let source = self.require_entry(old.dir, old.name)?;
        let is_late = self.order_move(old, source, new, target, space)?;
        self.put_name(source.node, new, target, space, caller)?;
        self.remove_entry(old.dir, old.name, source, is_late)?;
        if is_directory {
            self.move_parent(source.node, old.dir, new.dir, target.is_some())?;
        }
        let now = self.now();
        self.change(source.node)?.changed = now;
        target.map_or(Ok(()), |target| self.lose_name(target.node))
    }

    /// Renames `old` to `new` as [`Ext2::move_name`] does, and leaves a whiteout under the old name: a new node that changes places with the
    /// one that is renamed. So the old name means something at each moment, and a power cut finds both orders of an exchange.
    pub(crate) fn move_leaving_whiteout(&mut self, old: Place, new: Place, caller: Caller) -> Result<(), Errno> {
        if is_dot(old.name) || is_dot(new.name) {
            return Err(Errno::EBUSY);
        }
        let source = self.require_entry(old.dir, old.name)?;
        self.prepare_exchange(old.dir, new.dir)?;
        let Some(target) = self.find_entry(new.dir, new.name)? else {
            self.make_plain(new.dir, new.name, S_IFCHR, 0, caller)?;
            return match self.exchange_names(old, new) {
                Ok(()) => Ok(()),
                Err(error) => self.remove_link(new.dir, new.name).and(Err(error)),
            };
        };
        if target.node == source.node {
            return Ok(());
        }
        let is_directory = self.inode(source.node)?.is_directory();
        self.check_replaced(target, is_directory)?;
        let whiteout = self.new_inode(old.dir, S_IFCHR, caller)?;
        if let Err(error) = self.exchange_names(old, new) {
            return self.delete(whiteout).and(Err(error));
        }
        let replaced = self.require_entry(old.dir, old.name)?;
        self.change_entry(old.dir, old.name, replaced, whiteout, S_IFCHR)?;
        self.change(whiteout)?.links = 1;
        if is_directory {
            self.lose_child_directory(old.dir)?;
        }
        self.lose_name(target.node)
    }

    /// Orders the new name before the removal of the old one. Returns whether that is late.
    fn order_move(
        &mut self,
        old: Place,
        source: Found,
        new: Place,
        target: Option<Found>,
        space: Option<Space>,
    ) -> Result<bool, Errno> {
        self.require_known(new.dir)?;
        if self.window.has_moves() && self.depends_on_moves(target)? {
            self.write_everything()?;
        }
        let added = match target {
            Some(target) => Some(self.sector_of(new.dir, new.name, target)?),
            None => space.map(|space| space.sector()),
        };
        let removed = self.sector_of(old.dir, old.name, source)?;
        self.order_names(added, removed)
    }

    /// Whether earlier moves must be on the disk before this one: the node that loses its name may have others, or be a directory out of
    /// which names have moved.
    fn depends_on_moves(&mut self, target: Option<Found>) -> Result<bool, Errno> {
        let Some(target) = target else { return Ok(false) };
        let inode = self.inode(target.node)?;
        Ok(inode.links > 1 || inode.is_directory())
    }

    /// Whether a node of the source's kind may replace `target`.
    fn check_replaced(&mut self, target: Found, source_is_directory: bool) -> Result<(), Errno> {
        match (source_is_directory, self.inode(target.node)?.is_directory()) {
            (true, false) => Err(Errno::ENOTDIR),
            (false, true) => Err(Errno::EISDIR),
            (true, true) if !self.is_empty(target.node)? => Err(Errno::ENOTEMPTY),
            _ => Ok(()),
        }
    }

    fn put_name(
        &mut self,
        node: u32,
        new: Place,
        target: Option<Found>,
        space: Option<Space>,
        caller: Caller,
    ) -> Result<(), Errno> {
        let mode = self.inode(node)?.mode;
        match target {
            Some(target) => self.change_entry(new.dir, new.name, target, node, mode),
            None => self.add_entry(space, new.dir, new.name, node, mode, caller),
        }
    }

    /// Corrects `..` of a moved directory and the links of both parents. A replaced directory has counted
    /// in the new parent already.
    pub(crate) fn move_parent(&mut self, node: u32, old_dir: u32, new_dir: u32, replaced: bool) -> Result<(), Errno> {
        if old_dir != new_dir {
            let parent = self.require_entry(node, b"..")?;
            let mode = self.inode(new_dir)?.mode;
            self.change_entry(node, b"..", parent, new_dir, mode)?;
            self.names.learn(node, b"..", Known::Node(new_dir, parent.block));
            if !replaced {
                self.change(new_dir)?.links += 1;
            }
            self.lose_child_directory(old_dir)
        } else if replaced {
            self.lose_child_directory(old_dir)
        } else {
            Ok(())
        }
    }

    /// Whether directory `dir` is `ancestor` or below it. A circle, which only a broken file system has,
    /// is found by a second walker at half the speed.
    pub(crate) fn is_inside(&mut self, dir: u32, ancestor: u32) -> Result<bool, Errno> {
        let (mut fast, mut slow) = (dir, dir);
        let mut steps = 0u64;
        while fast != ROOT_INODE {
            if fast == ancestor {
                return Ok(true);
            }
            fast = self.require_entry(fast, b"..")?.node;
            steps += 1;
            if steps.is_multiple_of(2) {
                slow = self.require_entry(slow, b"..")?.node;
            }
            if fast == slow {
                return Err(Errno::EUCLEAN);
            }
        }
        Ok(ancestor == ROOT_INODE)
    }
}
