//! Descriptors: what calls tell and are told of nodes, containers and processes. They are structures of C, with tables of their fields, from
//! which the C header is made.

use crate::{
    limits::{NAME_BYTES, SLOTS},
    rights::{Level, Rights, SlotSet},
};
use core::mem::{offset_of, size_of};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A structure as the C header has it.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Its tag in C; with `_t` behind it, the type's name.
    pub c_name: &'static str,
    /// What it is.
    pub doc: &'static [&'static str],
    /// Its size.
    pub bytes: usize,
    /// Its fields.
    pub members: &'static [Member],
}

/// A field of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name in C.
    pub c_name: &'static str,
    /// What it means.
    pub doc: &'static [&'static str],
    /// Its type in C, or its elements'.
    pub c_type: &'static str,
    /// How many elements, in arrays.
    pub count: Option<usize>,
    /// Where it begins.
    pub offset: usize,
}

/// A type that C has too.
trait InC {
    const TYPE: &'static str;
    const COUNT: Option<usize> = None;
}

macro_rules! in_c {
    ($($rust:ty = $c:literal;)*) => {
        $(impl InC for $rust {
            const TYPE: &'static str = $c;
        })*
    };
}

in_c! {
    u8 = "char";
    i32 = "int";
    u32 = "unsigned int";
    i64 = "long";
    u64 = "unsigned long";
}

impl<T: InC, const N: usize> InC for [T; N] {
    const TYPE: &'static str = T::TYPE;
    const COUNT: Option<usize> = Some(N);
}

macro_rules! descriptors {
    ($($(#[doc = $doc:literal])* $name:ident = $c_name:literal {
        $($(#[doc = $field_doc:literal])* $field:ident: $type:ty = $c_field:literal,)*
    })*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
            #[repr(C)]
            pub struct $name {
                $($(#[doc = $field_doc])* pub $field: $type,)*
            }
        )*

        /// All descriptors.
        pub const STRUCTURES: &[Structure] = &[$(Structure {
            c_name: $c_name,
            doc: &[$($doc),*],
            bytes: size_of::<$name>(),
            members: &[$(Member {
                c_name: $c_field,
                doc: &[$($field_doc),*],
                c_type: <$type as InC>::TYPE,
                count: <$type as InC>::COUNT,
                offset: offset_of!($name, $field),
            },)*],
        },)*];
    };
}

/// A name with zeros behind it.
pub type Name = [u8; NAME_BYTES];

/// One bit for each slot, by index: the slot's number and 35.
pub type SlotBits = [u64; SLOTS / 64];

descriptors! {
    /// This node, and its limits.
    DrvsInfo = "drvs_usr" {
        /// Containers.
        containers: i32 = "d_nr_vms",
        /// Nodes.
        nodes: i32 = "d_nr_nodes",
        /// Slots of a container for processes.
        processes: i32 = "d_nr_procs",
        /// Slots of a container for tasks.
        tasks: i32 = "d_nr_tasks",
        /// Slots of a container for system processes.
        system_processes: i32 = "d_nr_sysprocs",
        /// Bytes that are copied at a time.
        max_copy_buffer: i32 = "d_max_copybuf",
        /// Bytes of one copy.
        max_copy: i32 = "d_max_copylen",
        /// How much is logged.
        debug_level: i32 = "d_dbglvl",
        /// Version of the interface; told, not set.
        version: i32 = "d_version",
    }
    /// A container.
    ContainerInfo = "VM_usr" {
        /// Its number.
        number: i32 = "vm_vmid",
        /// Its state: VM_RUNNING, or 0; and whether every user may join it: VM_OPEN.
        flags: i32 = "vm_flags",
        /// Slots for processes; 0 in vm_init for as many as the node allows, as for the other two.
        processes: i32 = "vm_nr_procs",
        /// Slots for tasks.
        tasks: i32 = "vm_nr_tasks",
        /// Slots for system processes.
        system_processes: i32 = "vm_nr_sysprocs",
        /// How many nodes it extends to.
        node_count: i32 = "vm_nr_nodes",
        /// The nodes that it extends to, a bit each.
        nodes: u32 = "vm_nodes",
        /// Slot of the process that is told of ends of processes, or NONE.
        warn_process: i32 = "vm_warn2proc",
        /// Type of the message that tells of them.
        warn_kind: i32 = "vm_warnmsg",
        /// How many processes are bound in it; told, not set.
        bound: i32 = "vm_bound",
        /// Its name.
        name: Name = "vm_name",
        /// The processors that its processes may use; 0 for all.
        processors: u64 = "vm_cpumask",
        /// Who may join it besides root: processes of these users. 0 for none, as below. If nothing is said here, below, or by VM_OPEN, the back
        /// end's settings decide.
        users: [u32; JOINERS] = "vm_uids",
        /// Processes of these groups.
        groups: [u32; JOINERS] = "vm_gids",
        /// Processes that have one of these capabilities of Linux, a bit each.
        capabilities: u64 = "vm_capabilities",
    }
    /// A process that is bound, or a free slot.
    ProcessInfo = "proc_usr" {
        /// Number of its slot.
        number: i32 = "p_nr",
        /// Its endpoint.
        endpoint: i32 = "p_endpoint",
        /// Its container.
        container: i32 = "p_vmid",
        /// What it does: bits of RTS.
        state: u32 = "p_rts_flags",
        /// Its pid, or its thread's; -1 for none here.
        pid: i32 = "p_lpid",
        /// The node it runs on.
        node: i32 = "p_nodeid",
        /// The nodes it may run on, a bit each.
        nodes: u32 = "p_nodemap",
        /// What it is: bits of MIS.
        flags: u32 = "p_misc_flags",
        /// Endpoint that it receives from, ANY or NONE.
        receives_from: i32 = "p_getfrom",
        /// Endpoint that it sends to, or NONE.
        sends_to: i32 = "p_sendto",
        /// Endpoint whose move it waits for, or NONE.
        waits_for_move: i32 = "p_waitmigr",
        /// Endpoint whose end it waits for, or NONE.
        waits_for_end: i32 = "p_waitunbind",
        /// The proxies that serve its node, or NONE.
        proxy: i32 = "p_proxy",
        /// Its group leader's endpoint; its own for a leader.
        leader: i32 = "p_leader",
        /// Messages sent to processes of this node.
        local_sent: u64 = "p_lclsent",
        /// Messages sent to other nodes.
        remote_sent: u64 = "p_rmtsent",
        /// Copies between processes of this node.
        local_copies: u64 = "p_lclcopy",
        /// Copies from or to other nodes.
        remote_copies: u64 = "p_rmtcopy",
        /// Its name.
        name: Name = "p_name",
        /// The processors it may use; 0 for all.
        processors: u64 = "p_cpumask",
    }
    /// A node.
    NodeInfo = "node_usr" {
        /// Its number.
        number: i32 = "n_nodeid",
        /// Its state: bits of NODE.
        flags: u32 = "n_flags",
        /// The proxies that serve it, or NONE.
        proxies: i32 = "n_proxies",
        /// The containers that extend to it, a bit each.
        containers: u32 = "n_vms",
        /// When something was sent to it last, in nanoseconds of CLOCK_MONOTONIC.
        sent_at: u64 = "n_stimestamp",
        /// When something came from it last.
        received_at: u64 = "n_rtimestamp",
        /// Frames sent to it.
        sent: u64 = "n_pxsent",
        /// Frames received from it.
        received: u64 = "n_pxrcvd",
        /// Its name.
        name: Name = "n_name",
    }
    /// A pair of proxies.
    ProxiesInfo = "proxies_usr" {
        /// Its number.
        number: i32 = "px_id",
        /// Its state: bits of MIS.
        flags: u32 = "px_flags",
        /// Pid of the one that sends.
        sender: i32 = "px_spid",
        /// Pid of the one that receives.
        receiver: i32 = "px_rpid",
        /// The nodes it serves, a bit each.
        nodes: u32 = "px_nodes",
        /// Bytes of a frame.
        max_bytes: i32 = "px_maxbytes",
        /// Its name.
        name: Name = "px_name",
    }
    /// The rights of a process.
    Privileges = "priv_usr" {
        /// Its number among those who may notify: below d_nr_sysprocs.
        id: i32 = "priv_id",
        /// Slot of the process that is told of its end, or NONE.
        warn: i32 = "priv_warn",
        /// What it is: USER_PRIV to PROXY_PRIV.
        level: i32 = "priv_level",
        /// Calls that it may make: a bit for each of TRAP.
        traps: u32 = "priv_trap_mask",
        /// Slots that it may receive from.
        receives_from: SlotBits = "priv_ipc_from",
        /// Slots that it may send to.
        sends_to: SlotBits = "priv_ipc_to",
        /// Calls to the kernel that it may make; kept for the programs.
        calls: u64 = "priv_call_mask",
        /// When its alarm comes; kept for the programs.
        alarm: u64 = "priv_alarm",
    }
    /// A call without a message, as the device of Linux's module takes it.
    Request = "m3ipc_request" {
        /// Its arguments, in the order of its prototype.
        arguments: [i64; 5] = "arguments",
        /// What it has returned, if it has not failed.
        value: i64 = "value",
    }
}

/// The state of a container: it has been initialised.
pub const CONTAINER_RUNNING: i32 = 1;

/// Every user may join the container.
pub const CONTAINER_OPEN: i32 = 2;

/// Users, and groups, that a container can name as those who may join it.
pub const JOINERS: usize = 8;

/// A bit of a state in C.
pub struct Flag {
    /// Its name.
    pub c_name: &'static str,
    /// Its number.
    pub bit: u32,
    /// What it means.
    pub doc: &'static str,
}

macro_rules! flags {
    ($(#[$doc:meta])* $list:ident, $prefix:literal { $($name:ident = $bit:literal, $meaning:literal;)* }) => {
        $(#[doc = $meaning] pub const $name: u32 = 1 << $bit;)*

        $(#[$doc])*
        pub const $list: &[Flag] =
            &[$(Flag { c_name: concat!($prefix, stringify!($name)), bit: $bit, doc: $meaning },)*];
    };
}

/// Bits of [`ProcessInfo::state`]: what keeps the process from running; none for one that runs.
pub mod rts {
    use super::Flag;
    flags! {
        /// All of them.
        ALL, "RTS_BIT_" {
            SLOT_FREE = 0, "Nobody is bound in the slot.";
            SENDING = 2, "It waits until its message is received.";
            RECEIVING = 3, "It waits for a message.";
            NO_ENDPOINT = 9, "It has no endpoint any more.";
            ONCOPY = 10, "It takes part in a copy.";
            MIGRATING = 11, "It moves to another node.";
            REMOTE = 12, "It is on another node.";
            RMTOPER = 13, "What it waits for happens on another node.";
            WAITMIGR = 15, "It waits for the move of another process.";
            WAITUNBIND = 17, "It waits for the end of another process.";
            WAITBIND = 18, "It waits until another process is bound.";
        }
    }
}

/// Bits of [`ProcessInfo::flags`]: what the process is.
pub mod misc {
    use super::Flag;
    flags! {
        /// All of them.
        ALL, "MIS_BIT_" {
            PROXY = 0, "It is a proxy.";
            CONNECTED = 1, "It is a proxy with a connection.";
            NOTIFY = 2, "A notification is pending.";
            NEEDMIG = 3, "It is about to move to another node.";
            RMTBACKUP = 4, "It will take over the endpoint of a remote process.";
            GRPLEADER = 5, "It is the leader of its group of threads.";
            KTHREAD = 6, "It is a thread of the kernel.";
            REPLICATED = 7, "It is a replica.";
            KILLED = 8, "It was ended with its container.";
            WOKENUP = 9, "Another process ended its wait.";
        }
    }
}

/// Bits of [`NodeInfo::flags`].
pub mod node {
    use super::Flag;
    flags! {
        /// All of them.
        ALL, "NODE_BIT_" {
            ATTACHED = 0, "Proxies serve it, or it is this node.";
            SCONNECTED = 1, "What is sent to it arrives.";
            RCONNECTED = 2, "What it sends arrives here.";
        }
    }
}

impl From<Rights> for Privileges {
    fn from(rights: Rights) -> Privileges {
        Privileges {
            id: rights.id.into(),
            warn: crate::endpoint::Endpoint::NONE.raw(),
            level: rights.level as i32,
            traps: rights.traps,
            receives_from: rights.receives_from.bits(),
            sends_to: rights.sends_to.bits(),
            calls: !0,
            alarm: 0,
        }
    }
}

impl TryFrom<Privileges> for Rights {
    type Error = crate::error::Error;

    /// # Errors
    /// `Range`: there is no such level or privilege number.
    fn try_from(privileges: Privileges) -> Result<Rights, Self::Error> {
        let levels = [Level::User, Level::Server, Level::Task, Level::System, Level::Kernel, Level::Proxy];
        let level = usize::try_from(privileges.level).ok().and_then(|level| levels.get(level).copied());
        let id = u16::try_from(privileges.id).ok().filter(|id| usize::from(*id) < SLOTS);
        Ok(Rights {
            id: id.ok_or(Self::Error::Range)?,
            level: level.ok_or(Self::Error::Range)?,
            traps: privileges.traps,
            sends_to: SlotSet::from_bits(privileges.sends_to),
            receives_from: SlotSet::from_bits(privileges.receives_from),
        })
    }
}

/// Returns a text as a name: its first 15 bytes.
///
/// # Errors
/// `Invalid`: it is empty. `Range`: it is longer.
pub fn name(text: &[u8]) -> Result<Name, crate::error::Error> {
    match text.len() {
        0 => Err(crate::error::Error::Invalid),
        1..NAME_BYTES => {
            let mut name = [0; NAME_BYTES];
            name[..text.len()].copy_from_slice(text);
            Ok(name)
        }
        _ => Err(crate::error::Error::Range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{endpoint::Number, error::Error};

    #[test]
    fn structures_have_no_holes_that_would_leak_memory() {
        for structure in STRUCTURES {
            let mut end = 0;
            for member in structure.members {
                assert_eq!(member.offset, end, "{}.{}", structure.c_name, member.c_name);
                let bytes = match member.c_type {
                    "char" => 1,
                    "int" | "unsigned int" => 4,
                    _ => 8,
                };
                end += bytes * member.count.unwrap_or(1);
            }
            assert_eq!(structure.bytes, end, "{}", structure.c_name);
        }
    }

    #[test]
    fn rights_come_back_from_their_descriptor() {
        for number in [-35, 0, 63, 220] {
            let rights = Rights::of_new(Number::new(number).unwrap());
            assert_eq!(Rights::try_from(Privileges::from(rights)), Ok(rights));
            let descriptor = Privileges::from(rights);
            assert_eq!(Rights::try_from(Privileges { level: 6, ..descriptor }), Err(Error::Range));
            assert_eq!(Rights::try_from(Privileges { level: -1, ..descriptor }), Err(Error::Range));
            assert_eq!(Rights::try_from(Privileges { id: -1, ..descriptor }), Err(Error::Range));
            assert_eq!(Rights::try_from(Privileges { id: 256, ..descriptor }), Err(Error::Range));
        }
    }

    #[test]
    fn names_have_a_zero_at_their_end() {
        assert_eq!(name(b"fifteen letters").map(|name| name[15]), Ok(0));
        assert_eq!(name(b"sixteen letters!"), Err(Error::Range));
        assert_eq!(name(b""), Err(Error::Invalid));
    }
}
