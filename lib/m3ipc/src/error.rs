//! What a call fails with.
//!
//! C programs get the number negated as result, as in MINIX. Numbers from 101 on are M3-IPC's own; the others are `errno`'s of Linux, except
//! [`Error::TimedOut`], [`Error::NotConnected`] and [`Error::AddressNotAvailable`], which were published with other numbers.

macro_rules! errors {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal, $c_name:literal;)*) => {
        /// Why a call failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i32)]
        pub enum Error {
            $($(#[doc = $doc])* $name = $number,)*
        }

        impl Error {
            /// All of them, by number.
            pub const ALL: &'static [Error] = &[$(Error::$name,)*];

            /// Returns the name that C programs know it by.
            pub const fn c_name(self) -> &'static str {
                match self {
                    $(Error::$name => $c_name,)*
                }
            }

            /// Returns what it means, for the C header.
            pub const fn doc(self) -> &'static [&'static str] {
                match self {
                    $(Error::$name => &[$($doc),*],)*
                }
            }
        }
    };
}

errors! {
    /// The caller may not make this call.
    NotPermitted = 1, "EMOLPERM";
    /// A signal ended the wait.
    Interrupted = 4, "EMOLINTR";
    /// The call would wait, and its time limit is 0.
    Again = 11, "EMOLAGAIN";
    /// No memory is left for what the call asks.
    NoMemory = 12, "EMOLNOMEM";
    /// An address is not mapped, or not with the access that the call needs.
    Fault = 14, "EMOLFAULT";
    /// Another call uses what this one needs.
    Busy = 16, "EMOLBUSY";
    /// An argument has no meaning.
    Invalid = 22, "EMOLINVAL";
    /// A number or length is beyond its limit.
    Range = 34, "EMOLRANGE";
    /// The back end does not have this call.
    NotImplemented = 38, "EMOLNOSYS";
    /// The time limit has passed.
    TimedOut = 61, "EMOLTIMEDOUT";
    /// The node is not connected.
    NotConnected = 64, "EMOLNOTCONN";
    /// A block to be copied is not within the memory of its process.
    AddressNotAvailable = 71, "EMOLADDRNOTAVAIL";
    /// The wait would close a circle of processes that wait for each other.
    Locked = 101, "EMOLLOCKED";
    /// The peer may not be named here: it is the caller itself, or a name that stands for several.
    BadPeer = 103, "EMOLBADSRCDST";
    /// The caller's rights do not allow the call, or this peer.
    CallDenied = 104, "EMOLCALLDENIED";
    /// The peer of a `sendrec` has ended.
    PeerDied = 105, "EMOLDEADSRCDST";
    /// The peer is not ready.
    NotReady = 106, "EMOLNOTREADY";
    /// The peer of a `receive` has ended.
    SourceDied = 108, "EMOLSRCDIED";
    /// The peer of a `send` has ended.
    DestinationDied = 109, "EMOLDSTDIED";
    /// There is no such node.
    BadNode = 301, "EMOLBADNODEID";
    /// There is no such container.
    BadContainer = 302, "EMOLBADVMID";
    /// The container has not been initialised.
    ContainerNotRunning = 303, "EMOLVMNOTRUN";
    /// There is no such slot, or nobody in it.
    BadProcess = 304, "EMOLBADPROC";
    /// There is no such Linux process.
    BadPid = 305, "EMOLBADPID";
    /// The endpoint is none of the container, or a former one of its slot.
    StaleEndpoint = 306, "EMOLENDPOINT";
    /// No proxy serves the node.
    NoProxy = 307, "EMOLNOPROXY";
    /// The process is on another node.
    RemoteProcess = 308, "EMOLRMTPROC";
    /// The process is on this node.
    LocalProcess = 309, "EMOLLCLPROC";
    /// The caller is not bound.
    NotBound = 310, "EMOLNOTBIND";
    /// The node is in use.
    NodeBusy = 315, "EMOLNODEBUSY";
    /// The node has been initialised already.
    AlreadyInitialised = 317, "EMOLDRVSBUSY";
    /// The node has not been initialised.
    NotInitialised = 318, "EMOLDRVSINIT";
    /// The container does not extend to this node.
    NodeNotOfContainer = 319, "EMOLNOVMNODE";
    /// The process does not wait.
    Running = 320, "EMOLPROCRUN";
    /// The container is initialised already.
    ContainerRunning = 323, "EMOLVMRUN";
    /// The process is not in the state that the call needs.
    BadState = 324, "EMOLPROCSTS";
    /// The node is not in use.
    NodeFree = 325, "EMOLNODEFREE";
    /// The container extends to the node already.
    NodeOfContainer = 326, "EMOLVMNODE";
    /// The process takes part in a copy.
    Copying = 328, "EMOLONCOPY";
    /// A notification of the same source is pending already.
    Overrun = 330, "EMOLOVERRUN";
    /// The process moves to another node.
    Migrating = 332, "EMOLMIGRATE";
    /// The proxy is not in use.
    ProxyFree = 333, "EMOLPROXYFREE";
    /// The caller's group leader is not bound in this container.
    GroupLeader = 334, "EMOLGRPLEADER";
    /// The process has no privilege to notify or be notified.
    Privileges = 335, "EMOLPRIVILEGES";
    /// The process was bound in another way.
    BindType = 336, "EMOLBINDTYPE";
    /// The slot is occupied.
    SlotUsed = 337, "EMOLSLOTUSED";
    /// What the call needs is in use.
    ResourceBusy = 342, "EMOLRSCBUSY";
    /// Another process ended the wait by `wakeup`.
    WokenUp = 348, "EMOLWOKENUP";
}

impl Error {
    /// Returns the result of a C call that fails with it.
    pub const fn to_result(self) -> i32 {
        -(self as i32)
    }

    /// Returns the error that this result of a C call stands for.
    pub fn from_result(result: i32) -> Option<Error> {
        Error::ALL.iter().copied().find(|error| error.to_result() == result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_and_come_back() {
        assert!(Error::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        for &error in Error::ALL {
            assert_eq!(Error::from_result(error.to_result()), Some(error));
            assert!(error.c_name().starts_with("EMOL"));
        }
        assert_eq!((Error::from_result(0), Error::from_result(-9999)), (None, None));
    }
}
