//! How processes are linked to each other: the children of a parent, and the members of a group.
//!
//! Children that have something to report come first, so that a wait sees them without a look at the others. The members of a group form
//! a ring. Neither costs more when there are more processes.

use super::index::ProcessIndex;
use super::table::Table;
use abi::Part;

impl Table {
    /// The children of a process, first those that have something to report.
    pub fn children_of(&self, process: ProcessIndex) -> impl Iterator<Item = ProcessIndex> {
        core::iter::successors(self[process].first_child, |child| self[*child].next_sibling)
    }

    /// The first child of a process.
    pub fn first_child(&self, process: ProcessIndex) -> Option<ProcessIndex> {
        self[process].first_child
    }

    /// Whether a child has something to report to a wait of its parent.
    pub fn has_news(&self, child: ProcessIndex) -> bool {
        self[child].has_news
    }

    /// Who adopts the children of a process that ends: its nearest ancestor that has asked for it (PR_SET_CHILD_SUBREAPER), or else the
    /// first process of its container, or of all.
    pub fn adopter_of_children(&self, process: ProcessIndex) -> Option<ProcessIndex> {
        let ancestors = core::iter::successors(self[process].parent, |ancestor| self[*ancestor].parent);
        let mut subreapers =
            ancestors.filter(|ancestor| self[*ancestor].control.subreaper && self[*ancestor].is_alive());
        let container = self[process].credentials.parts.of(Part::Processes);
        let of_container = self.first_of_container(container).filter(|first| *first != process);
        let subreaper = subreapers.next().filter(|one| self[*one].credentials.parts.of(Part::Processes) == container);
        subreaper.or(of_container).or(self.first()).filter(|adopter| *adopter != process)
    }

    /// Makes a child of another process a child of `parent`.
    pub fn reparent(&mut self, child: ProcessIndex, parent: ProcessIndex) {
        self.orphan(child);
        self.adopt(parent, child);
    }

    /// Makes `child` the last child of `parent` among those that have something to report, or among the others.
    pub(super) fn adopt(&mut self, parent: ProcessIndex, child: ProcessIndex) {
        let has_news = self[child].is_news();
        let previous = if has_news { self[parent].last_news } else { self[parent].last_child };
        let next = match previous {
            Some(previous) => self[previous].next_sibling.replace(child),
            None => self[parent].first_child.replace(child),
        };
        match next {
            Some(next) => self[next].previous_sibling = Some(child),
            None => self[parent].last_child = Some(child),
        }
        if has_news {
            self[parent].last_news = Some(child);
        }
        let entry = &mut self[child];
        entry.parent = Some(parent);
        entry.previous_sibling = previous;
        entry.next_sibling = next;
        entry.has_news = has_news;
    }

    /// Takes `child` away from its parent.
    pub(super) fn orphan(&mut self, child: ProcessIndex) {
        let Some(parent) = self[child].parent.take() else { return };
        let previous = self[child].previous_sibling.take();
        let next = self[child].next_sibling.take();
        match previous {
            Some(previous) => self[previous].next_sibling = next,
            None => self[parent].first_child = next,
        }
        match next {
            Some(next) => self[next].previous_sibling = previous,
            None => self[parent].last_child = previous,
        }
        if self[parent].last_news == Some(child) {
            self[parent].last_news = previous;
        }
    }

    /// Moves a child to where it belongs since it has, or no longer has, something to report.
    pub(super) fn news_changed(&mut self, child: ProcessIndex) {
        if self[child].has_news != self[child].is_news()
            && let Some(parent) = self[child].parent
        {
            self.reparent(child, parent);
        }
    }

    /// Adds a process to the ring of its group.
    pub(super) fn join_group(&mut self, process: ProcessIndex) {
        let group = self[process].group;
        match self.pids.member(group) {
            Some(first) => {
                let [last, _] = self[first].group_ring;
                self[process].group_ring = [last, first];
                self[last].group_ring[1] = process;
                self[first].group_ring[0] = process;
            }
            None => {
                self[process].group_ring = [process; 2];
                self.pids.set_member(group, Some(process));
            }
        }
    }

    /// Takes a process out of the ring of its group.
    pub(super) fn leave_group(&mut self, process: ProcessIndex) {
        let (group, [before, after]) = (self[process].group, self[process].group_ring);
        self[before].group_ring[1] = after;
        self[after].group_ring[0] = before;
        if self.pids.member(group) == Some(process) {
            self.pids.set_member(group, (after != process).then_some(after));
        }
    }

    /// The processes of a group, zombies included.
    pub fn members_of(&self, group: u32) -> impl Iterator<Item = ProcessIndex> {
        let first = self.pids.member(group);
        core::iter::successors(first, move |member| {
            Some(self[*member].group_ring[1]).filter(|next| Some(*next) != first)
        })
    }

    /// Begins a walk over a group whose members may leave it, or end, meanwhile.
    pub fn begin_walk(&mut self) -> Walk {
        self.walks = self.walks.wrapping_add(1);
        Walk(self.walks)
    }

    /// The next process of a group on a walk.
    pub fn next_member(&mut self, group: u32, walk: Walk) -> Option<ProcessIndex> {
        let member = self.pids.member(group)?;
        if self[member].visit == walk.0 {
            return None;
        }
        self[member].visit = walk.0;
        let [_, after] = self[member].group_ring;
        self.pids.set_member(group, Some(after));
        Some(member)
    }
}

/// A walk over a group.
#[derive(Clone, Copy)]
pub struct Walk(u32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::wait::Ending;
    use std::vec::Vec;

    /// A first process with children.
    fn family(children: usize) -> (Table, ProcessIndex, Vec<ProcessIndex>) {
        let mut table = Table::new();
        let first = table.allocate_process().unwrap();
        table.enter_first_process(first, 1, 0);
        let add = |_| {
            let child = table.allocate_process().unwrap();
            table.enter_child(child, first, false, 0, 0).unwrap();
            child
        };
        let children = (0..children).map(add).collect();
        (table, first, children)
    }

    #[test]
    fn children_with_something_to_report_come_first_in_the_order_of_their_news() {
        let (mut table, first, c) = family(4);
        table.make_zombie(c[2], Ending::Exited(0));
        table.make_zombie(c[1], Ending::Exited(0));
        assert_eq!(table.children_of(first).collect::<Vec<_>>(), [c[2], c[1], c[0], c[3]]);
        table.release(c[1]);
        table.make_zombie(c[3], Ending::Exited(0));
        assert_eq!(table.children_of(first).collect::<Vec<_>>(), [c[2], c[3], c[0]]);
        table.release(c[2]);
        table.release(c[3]);
        table.make_zombie(c[0], Ending::Exited(0));
        assert_eq!(table.children_of(first).collect::<Vec<_>>(), [c[0]]);
        assert_eq!(table[first].last_child, Some(c[0]));
    }

    #[test]
    fn a_reported_stop_is_no_news() {
        use crate::state::signal::Signal;
        let (mut table, first, c) = family(3);
        table.stop(c[2], Signal::STOP);
        assert!(table.has_news(c[2]));
        assert_eq!(table.first_child(first), Some(c[2]));
        table.stop_reported(c[2]);
        assert_eq!(table.children_of(first).collect::<Vec<_>>(), [c[0], c[1], c[2]]);
        assert!(table.continue_stopped(c[1]) || table.continue_stopped(c[2]));
        assert_eq!(table.first_child(first), Some(c[2]));
    }

    #[test]
    fn a_walk_meets_each_member_once_whatever_becomes_of_others() {
        let (mut table, first, c) = family(4);
        let group = table[first].group();
        let walk = table.begin_walk();
        let mut met = Vec::new();
        while let Some(member) = table.next_member(group, walk) {
            met.push(member);
            if member == c[1] {
                table.release(c[2]);
                table.set_group(c[0], table[c[0]].pid(), 1);
            }
        }
        assert_eq!(met, [first, c[0], c[1], c[3]]);
        assert_eq!(table.members_of(table[c[0]].pid()).collect::<Vec<_>>(), [c[0]]);
        assert_eq!(table.members_of(group).count(), 3);
    }
}
