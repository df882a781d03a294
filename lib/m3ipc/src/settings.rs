//! What `drvs_init` and `vm_init` may ask for.

use crate::{
    descriptor::{CONTAINER_OPEN, CONTAINER_RUNNING, ContainerInfo, DrvsInfo, Name, name},
    error::Error,
    limits::{CONTAINERS, MAX_COPY, NODES, PROCESSES, SYSTEM_PROCESSES, TASKS, VERSION},
};

/// The name of this node, before anybody has given it another.
pub const OWN_NODE: Name = *b"local\0\0\0\0\0\0\0\0\0\0\0";

/// Checks a count that is 1 at least.
fn within(asked: i32, most: i32) -> Result<(), Error> {
    if (1..=most).contains(&asked) { Ok(()) } else { Err(Error::Range) }
}

impl DrvsInfo {
    /// The largest limits; those of a node that asks for none.
    pub const LARGEST: DrvsInfo = DrvsInfo {
        containers: CONTAINERS as i32,
        nodes: NODES as i32,
        processes: PROCESSES as i32,
        tasks: TASKS as i32,
        system_processes: SYSTEM_PROCESSES as i32,
        max_copy_buffer: MAX_COPY as i32,
        max_copy: MAX_COPY as i32,
        debug_level: 0,
        version: VERSION,
    };

    /// Returns the limits of a node with this number that asks for these.
    ///
    /// # Errors
    /// `Range`: a limit, or the number, is beyond the largest.
    pub fn accepted(self, node: i32) -> Result<DrvsInfo, Error> {
        let most = DrvsInfo::LARGEST;
        within(self.containers, most.containers)?;
        within(self.nodes, most.nodes)?;
        within(self.processes, most.processes)?;
        within(self.tasks, most.tasks)?;
        within(self.system_processes, most.system_processes.min(self.processes))?;
        within(self.max_copy_buffer, most.max_copy_buffer)?;
        within(self.max_copy, most.max_copy)?;
        if !(0..self.nodes).contains(&node) {
            return Err(Error::Range);
        }
        Ok(DrvsInfo { version: VERSION, ..self })
    }
}

impl ContainerInfo {
    /// Returns the container that is started on a node with these limits when this is asked for.
    ///
    /// # Errors
    /// `Range`: a number is beyond the node's limits, or the name has no end. `Invalid`: the name is empty. `BadNode`: it is to extend to a node that
    /// there cannot be.
    pub fn accepted(mut self, limits: &DrvsInfo, node: u8) -> Result<ContainerInfo, Error> {
        if !(0..limits.containers).contains(&self.number) {
            return Err(Error::Range);
        }
        for (asked, most) in [
            (&mut self.processes, limits.processes),
            (&mut self.tasks, limits.tasks),
            (&mut self.system_processes, limits.system_processes),
        ] {
            if *asked == 0 {
                *asked = most;
            }
            within(*asked, most)?;
        }
        let text = self.name.split(|byte| *byte == 0).next().unwrap_or_default();
        let nodes = self.nodes | 1 << node;
        if u64::from(nodes) >> limits.nodes != 0 {
            return Err(Error::BadNode);
        }
        Ok(ContainerInfo {
            name: name(text)?,
            nodes,
            node_count: nodes.count_ones() as i32,
            flags: CONTAINER_RUNNING | (self.flags & CONTAINER_OPEN),
            bound: 0,
            ..self
        })
    }
}

impl ContainerInfo {
    /// Whether a process with these effective ids and capabilities may join. `None`: the container does not say, and the back end's settings
    /// decide.
    pub fn admits(&self, user: u32, group: u32, capabilities: u64) -> Option<bool> {
        let names = |set: &[u32], id: u32| id != 0 && set.contains(&id);
        let says_nothing = self.users.iter().chain(&self.groups).all(|id| *id == 0) && self.capabilities == 0;
        if user == 0 || self.flags & CONTAINER_OPEN != 0 {
            return Some(true);
        }
        if says_nothing {
            return None;
        }
        Some(names(&self.users, user) || names(&self.groups, group) || self.capabilities & capabilities != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_may_ask_for_less() {
        let largest = DrvsInfo::LARGEST;
        assert_eq!(largest.accepted(31), Ok(largest));
        let small = DrvsInfo { containers: 1, nodes: 4, processes: 50, system_processes: 50, version: 9, ..largest };
        assert_eq!(small.accepted(3), Ok(DrvsInfo { version: VERSION, ..small }));
        for (wrong, node) in [
            (small, 4),
            (small, -1),
            (DrvsInfo { containers: 33, ..largest }, 0),
            (DrvsInfo { tasks: 0, ..largest }, 0),
            (DrvsInfo { system_processes: 51, ..small }, 0),
            (DrvsInfo { max_copy: MAX_COPY as i32 + 1, ..largest }, 0),
        ] {
            assert_eq!(wrong.accepted(node), Err(Error::Range));
        }
    }

    #[test]
    fn who_may_join_is_said_by_user_group_or_capability() {
        let silent = ContainerInfo { number: 3, name: OWN_NODE, ..ContainerInfo::default() };
        assert_eq!([0, 5].map(|user| silent.admits(user, 0, !0)), [Some(true), None]);
        let mut says = ContainerInfo { capabilities: 1 << 21, ..silent };
        (says.users[7], says.groups[0]) = (1000, 50);
        for (user, group, capabilities, may) in [
            (0, 0, 0, true),
            (1000, 1000, 0, true),
            (1001, 50, 0, true),
            (1001, 1001, 1 << 21, true),
            (1001, 0, !(1 << 21), false),
            (50, 1000, 0, false),
        ] {
            assert_eq!(says.admits(user, group, capabilities), Some(may), "{user} {group} {capabilities:#x}");
        }
        let open = ContainerInfo { flags: CONTAINER_OPEN, ..says }.accepted(&DrvsInfo::LARGEST, 0).unwrap();
        assert_eq!((open.admits(7, 7, 0), open.flags), (Some(true), CONTAINER_OPEN | CONTAINER_RUNNING));
        assert_eq!(says.accepted(&DrvsInfo::LARGEST, 0).unwrap().users, says.users);
    }

    #[test]
    fn a_container_is_within_its_node() {
        let limits = DrvsInfo { nodes: 4, processes: 100, ..DrvsInfo::LARGEST };
        let asked = ContainerInfo { number: 3, name: OWN_NODE, ..ContainerInfo::default() };
        let accepted = asked.accepted(&limits, 2).unwrap();
        assert_eq!((accepted.processes, accepted.tasks, accepted.nodes, accepted.node_count), (100, 35, 4, 1));
        let refused = |wrong: ContainerInfo| wrong.accepted(&limits, 2).unwrap_err();
        assert_eq!(refused(ContainerInfo { number: 32, ..asked }), Error::Range);
        assert_eq!(refused(ContainerInfo { processes: 101, ..asked }), Error::Range);
        assert_eq!(refused(ContainerInfo { nodes: 1 << 4, ..asked }), Error::BadNode);
        assert_eq!(refused(ContainerInfo { name: [0; 16], ..asked }), Error::Invalid);
        assert_eq!(refused(ContainerInfo { name: [b'x'; 16], ..asked }), Error::Range);
    }
}
