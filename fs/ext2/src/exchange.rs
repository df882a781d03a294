//! Exchanging two names: `rename` with `RENAME_EXCHANGE`.
//!
//! Both names exist before and after it, and whatever a power cut lets through, no node may lose its last name. Two entries in one sector
//! are changed in place, at once. Elsewhere that would be a circle (each name has to reach the disk before it goes from the other place),
//! so each node gets its new name in another sector, and both old entries go late. Neighbours: `rename`, `syncing` (the order).

use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::Caller;
use fs::names::Known;

use crate::directory::{Found, Space};
use crate::entry::is_dot;
use crate::naming::MAX_LINKS;
use crate::rename::Place;
use crate::volume::Ext2;
use crate::window::Sector;

/// Limit of blocks by which two directories grow when each gets an entry: one, and three that point to it.
const GROWTH: u32 = 2 * 4;

/// A name, and the entry that it has.
#[derive(Clone, Copy)]
struct Side<'a> {
    place: Place<'a>,
    found: Found,
}

impl<D: BlockDevice> Ext2<D> {
    /// Swaps two names.
    pub(crate) fn exchange_names(&mut self, first: Place, second: Place) -> Result<(), Errno> {
        if is_dot(first.name) || is_dot(second.name) {
            return Err(Errno::EBUSY);
        }
        let one = Side { place: first, found: self.require_entry(first.dir, first.name)? };
        let other = Side { place: second, found: self.require_entry(second.dir, second.name)? };
        if one.found.node == other.found.node {
            return Ok(());
        }
        if first.dir != second.dir {
            self.check_parent(one, other)?;
            self.check_parent(other, one)?;
        }
        let sectors =
            [self.sector_of(first.dir, first.name, one.found)?, self.sector_of(second.dir, second.name, other.found)?];
        if sectors[0] == sectors[1] || !self.is_ordered() {
            self.swap_in_place(one, other)?;
        } else {
            self.swap_in_order(one, other, sectors)?;
        }
        self.change_parent(one, other)?;
        self.change_parent(other, one)
    }

    /// Checks that the node of `from` may get the directory of `to` as its parent, whose node leaves.
    fn check_parent(&mut self, from: Side, to: Side) -> Result<(), Errno> {
        if !self.inode(from.found.node)?.is_directory() {
            return Ok(());
        }
        if self.is_inside(to.place.dir, from.found.node)? {
            return Err(Errno::EINVAL);
        }
        let is_gain = !self.inode(to.found.node)?.is_directory();
        if is_gain && self.inode(to.place.dir)?.links >= MAX_LINKS { Err(Errno::EMLINK) } else { Ok(()) }
    }

    fn swap_in_place(&mut self, one: Side, other: Side) -> Result<(), Errno> {
        for (at, gets) in [(one, other), (other, one)] {
            let mode = self.inode(gets.found.node)?.mode;
            self.change_entry(at.place.dir, at.place.name, at.found, gets.found.node, mode)?;
        }
        Ok(())
    }

    /// Swaps entries that are in the different `sectors`: the new entries in other sectors, the old ones late.
    fn swap_in_order(&mut self, one: Side, other: Side, sectors: [Sector; 2]) -> Result<(), Errno> {
        self.prepare_exchange(one.place.dir, other.place.dir)?;
        self.require_growth(one.place, other.place, &sectors)?;
        for (at, gets) in [(one, other), (other, one)] {
            let Place { dir, name } = at.place;
            let space = self.find_space_outside(dir, name, &sectors)?;
            self.window.note_move(space.as_ref().map(Space::sector));
            let (node, mode) = (gets.found.node, self.inode(gets.found.node)?.mode);
            let block = self.fill_space(space, dir, name, node, mode, Caller::default())?;
            self.remove_entry(dir, name, at.found, true)?;
            self.names.learn(dir, name, Known::Node(node, block));
        }
        Ok(())
    }

    /// Writes everything if an exchange of names in these directories depends on it. To be called before anything is changed, since what
    /// has been changed by then is no longer undone.
    pub(crate) fn prepare_exchange(&mut self, first_dir: u32, second_dir: u32) -> Result<(), Errno> {
        self.require_known(first_dir)?;
        self.require_known(second_dir)?;
        if self.is_ordered() && self.window.has_moves() { self.write_everything() } else { Ok(()) }
    }

    /// Checks that the two entries can be added, before anything is changed. `ENOSPC`.
    fn require_growth(&mut self, one: Place, other: Place, sectors: &[Sector]) -> Result<(), Errno> {
        let mut has_space = one.dir != other.dir;
        for place in [one, other] {
            has_space &= self.find_space_outside(place.dir, place.name, sectors)?.is_some();
        }
        // Two entries in one directory may compete for the same space.
        if has_space { Ok(()) } else { self.require_blocks(GROWTH, Caller::default()) }
    }

    /// Corrects `..` of a directory that has moved from the place of `from` to that of `to`, and the links of both parents.
    fn change_parent(&mut self, from: Side, to: Side) -> Result<(), Errno> {
        let (node, now) = (from.found.node, self.now());
        self.change(node)?.changed = now;
        if !self.inode(node)?.is_directory() {
            return Ok(());
        }
        self.move_parent(node, from.place.dir, to.place.dir, false)
    }
}
