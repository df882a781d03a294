//! The files of /proc/drvs, in the form that was published: `info` and `nodes` of the node, and `info`, `procs` and `stats` in the folder
//! `VM` and number of each container.

use crate::{
    descriptor::{ContainerInfo, DrvsInfo, Name, NodeInfo, ProcessInfo},
    endpoint::Endpoint,
    limits::{CONTAINERS, NODES},
};
use core::fmt::{Result, Write};
use core::mem::size_of;

/// First line of `nodes`; a column for each container.
pub const NODES_HEADING: &str = "ID Flags Proxies -pxsent- -pxrcvd- 10987654321098765432109876543210 Name\n";
/// First line of `procs`.
pub const PROCESSES_HEADING: &str = "VM pnr -endpnt- -lpid- nd flags misc -getfrm- -sendto -wmig -prx name\n";
/// First line of `stats`.
pub const COUNTS_HEADING: &str = "VM pnr -endpnt- -lpid- nd -lclsent- -rmtsent- -lclcopy- -rmtcopy-\n";

/// Writes `info`. `node`: its number and limits, once it has been initialised.
///
/// # Errors
/// Those of `out`.
pub fn node(out: &mut dyn Write, node: Option<(u8, &DrvsInfo)>) -> Result {
    let Some((number, limits)) = node else { return out.write_str("nodeid=-1\n") };
    writeln!(out, "nodeid={number}\nnr_vms={}\nnr_nodes={}", limits.containers, limits.nodes)?;
    writeln!(out, "nr_procs={}\nnr_tasks={}", limits.processes, limits.tasks)?;
    writeln!(out, "nr_sysprocs={}\nmax_copybuf={}", limits.system_processes, limits.max_copy_buffer)?;
    writeln!(out, "max_copylen={}\ndbglvl={}\nversion={}", limits.max_copy, limits.debug_level, limits.version)?;
    let [process, container, node] = [size_of::<ProcessInfo>(), size_of::<ContainerInfo>(), size_of::<NodeInfo>()];
    writeln!(out, "sizeof(proc)={process}\nsizeof(VM)={container}\nsizeof(node)={node}")
}

/// Writes the line of a node in `nodes`; nothing for a node that is not connected and in no container.
///
/// # Errors
/// Those of `out`.
pub fn other_node(out: &mut dyn Write, node: &NodeInfo) -> Result {
    if node.flags == 0 && node.containers == 0 {
        return Ok(());
    }
    let (number, flags, proxies) = (node.number, node.flags, or_minus_1(node.proxies));
    write!(out, "{number:2} {flags:5X} {proxies:7} {:8} {:8} ", node.sent, node.received)?;
    bits(out, node.containers, CONTAINERS)?;
    out.write_str(" ")?;
    name(out, &node.name)
}

/// Writes `info` of a container.
///
/// # Errors
/// Those of `out`.
pub fn container(out: &mut dyn Write, info: &ContainerInfo) -> Result {
    writeln!(out, "vmid={}\nflags={:X}\nnr_procs={}", info.number, info.flags, info.processes)?;
    writeln!(out, "nr_tasks={}\nnr_sysprocs={}\nnr_nodes={}", info.tasks, info.system_processes, info.node_count)?;
    write!(out, "bound={}\nname=", info.bound)?;
    name(out, &info.name)?;
    out.write_str("nodes=")?;
    bits(out, info.nodes, NODES)?;
    out.write_str("\n")
}

/// Writes the line of a process in `procs`.
///
/// # Errors
/// Those of `out`.
pub fn process(out: &mut dyn Write, info: &ProcessInfo) -> Result {
    head(out, info)?;
    write!(out, " {:5X} {:4X} {:8} {:8}", info.state, info.flags, info.receives_from, info.sends_to)?;
    write!(out, " {:5} {:4} ", info.waits_for_move, or_minus_1(info.proxy))?;
    name(out, &info.name)
}

/// Writes the line of a process in `stats`.
///
/// # Errors
/// Those of `out`.
pub fn counts(out: &mut dyn Write, info: &ProcessInfo) -> Result {
    head(out, info)?;
    write!(out, " {:9} {:9}", info.local_sent, info.remote_sent)?;
    writeln!(out, " {:9} {:9}", info.local_copies, info.remote_copies)
}

fn head(out: &mut dyn Write, info: &ProcessInfo) -> Result {
    let ProcessInfo { container, number, endpoint, pid, node, .. } = info;
    write!(out, "{container:2} {number:3} {endpoint:8} {pid:6} {node:2}")
}

fn or_minus_1(proxy: i32) -> i32 {
    if proxy == Endpoint::NONE.raw() { -1 } else { proxy }
}

/// Writes a set as a column for each bit, the highest first.
fn bits(out: &mut dyn Write, set: u32, count: usize) -> Result {
    (0..count).rev().try_for_each(|bit| out.write_str(if set & 1 << bit != 0 { "X" } else { "-" }))
}

/// Writes a name up to its end, and a newline.
fn name(out: &mut dyn Write, name: &Name) -> Result {
    let bytes = name.split(|byte| *byte == 0).next().unwrap_or_default();
    for chunk in bytes.utf8_chunks() {
        out.write_str(chunk.valid())?;
    }
    out.write_str("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{misc, node as flag, rts};
    use std::string::String;

    fn text(write: impl FnOnce(&mut dyn Write) -> Result) -> String {
        let mut text = String::new();
        write(&mut text).unwrap();
        text
    }

    #[test]
    fn a_node_is_its_number_and_limits() {
        assert_eq!(text(|out| node(out, None)), "nodeid=-1\n");
        let told = text(|out| node(out, Some((2, &DrvsInfo::LARGEST))));
        assert!(told.starts_with("nodeid=2\nnr_vms=32\nnr_nodes=32\nnr_procs=221\nnr_tasks=35\nnr_sysprocs=64\n"));
        assert!(told.contains("max_copybuf=4194304\nmax_copylen=4194304\ndbglvl=0\nversion="));
        assert_eq!(told.lines().count(), 13);
    }

    #[test]
    fn nodes_have_a_column_for_each_container() {
        let nobody = NodeInfo { number: 7, ..NodeInfo::default() };
        assert_eq!(text(|out| other_node(out, &nobody)), "");
        let proxies = Endpoint::NONE.raw();
        let own = NodeInfo {
            number: 0,
            flags: flag::ATTACHED,
            proxies,
            containers: 5,
            name: crate::settings::OWN_NODE,
            ..nobody
        };
        let line = text(|out| other_node(out, &own));
        assert_eq!(line, " 0     1      -1        0        0 -----------------------------X-X local\n");
        assert_eq!(line.find('X').map(|at| at + 2), NODES_HEADING.find(" Name").map(|at| at - 1), "below its digit");
    }

    #[test]
    fn processes_and_counts_stand_below_their_headings() {
        let none = Endpoint::NONE.raw();
        let info = ProcessInfo {
            number: -35,
            endpoint: -35,
            state: rts::RECEIVING,
            pid: 12345,
            flags: misc::GRPLEADER,
            receives_from: Endpoint::ANY.raw(),
            sends_to: none,
            waits_for_move: none,
            proxy: none,
            local_sent: 7,
            local_copies: 3,
            ..ProcessInfo::default()
        };
        let line = text(|out| process(out, &info));
        assert_eq!(line, " 0 -35      -35  12345  0     8   20    31438    27342 27342   -1 \n");
        let end = |heading: &str, column: &str| heading.find(column).map(|at| at + column.len());
        assert_eq!(end(PROCESSES_HEADING, "-endpnt-"), end(&line, "-35      -35"));
        assert_eq!(end(PROCESSES_HEADING, "-getfrm-"), end(&line, "31438"));
        let line = text(|out| counts(out, &info));
        assert_eq!(line, " 0 -35      -35  12345  0         7         0         3         0\n");
        assert_eq!(line.len(), COUNTS_HEADING.len());
    }

    #[test]
    fn a_container_is_told_with_its_nodes() {
        let info =
            ContainerInfo { number: 3, name: *b"lab\0\0\0\0\0\0\0\0\0\0\0\0\0", nodes: 4, ..ContainerInfo::default() };
        let told = text(|out| container(out, &info));
        assert!(
            told.contains("vmid=3\n") && told.contains("name=lab\nnodes=-----------------------------X--\n"),
            "{told}"
        );
    }
}
