//! What `drvs_init` and `vm_init` may ask for.

use crate::{
    descriptor::{CONTAINER_RUNNING, ContainerInfo, DrvsInfo, Name, name},
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
            flags: CONTAINER_RUNNING,
            bound: 0,
            ..self
        })
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
