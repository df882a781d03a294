//! The calls, with their numbers and prototypes in C.
//!
//! A back end that carries calls as numbers (a service of Skink, a device of Linux) uses these. Names and arguments are those that were
//! published. Every call returns 0 or more, or an error negated.

/// Before the names of the calls' numbers in C.
pub const C_PREFIX: &str = "M3IPC_CALL_";

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Prototype {
    /// The call.
    pub call: Call,
    /// Its declaration in C.
    pub c: &'static str,
    /// What it does.
    pub doc: &'static [&'static str],
}

macro_rules! calls {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal, $c:literal;)*) => {
        /// The number of a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum Call {
            $($(#[doc = $doc])* $name = $number,)*
        }

        impl Call {
            /// Returns the call with this number.
            pub const fn from_number(number: u32) -> Option<Call> {
                match number {
                    $($number => Some(Call::$name),)*
                    _ => None,
                }
            }
        }

        /// All calls, by number. Several prototypes may be one call: the one with `_T` has a time limit, the other waits forever.
        pub const PROTOTYPES: &[Prototype] =
            &[$(Prototype { call: Call::$name, c: $c, doc: &[$($doc),*] },)*];
    };
}

calls! {
    /// Starts this node with a number, and limits unless `drvs` is NULL. Returns the node's number. For root.
    DrvsInit = 1, "int mnx_drvs_init(int nodeid, drvs_usr_t *drvs)";
    /// Ends every container of this node. For root.
    DrvsEnd = 2, "int mnx_drvs_end(void)";
    /// Tells the limits of this node. Returns its number.
    DrvsInfo = 3, "int mnx_getdrvsinfo(drvs_usr_t *drvs)";
    /// Starts a container. For root.
    VmInit = 4, "int mnx_vm_init(VM_usr_t *vm)";
    /// Ends a container, and all processes that are bound in it. For root.
    VmEnd = 5, "int mnx_vm_end(int vmid)";
    /// Tells what a container is.
    VmInfo = 6, "int mnx_getvminfo(int vmid, VM_usr_t *vm)";
    /// Writes what a container is to the log of the back end.
    VmDump = 7, "int mnx_vm_dump(int vmid)";
    /// Binds the caller to a slot. Returns its endpoint.
    Bind = 8, "int mnx_bind(int vmid, int p_nr)";
    /// Binds the calling thread; its group leader must be bound in the same container. Returns its endpoint.
    ThreadBind = 9, "int mnx_tbind(int vmid, int p_nr)";
    /// Binds another process of this node. Returns its endpoint.
    LocalBind = 10, "int mnx_lclbind(int vmid, int pid, int p_nr)";
    /// Gives a process of another node its endpoint here.
    RemoteBind = 11, "int mnx_rmtbind(int vmid, const char *name, int ep, int nodeid)";
    /// Binds a process that will take over the endpoint of a remote one.
    BackupBind = 12, "int mnx_bkupbind(int vmid, int pid, int ep, int nodeid)";
    /// Binds a replica of a process.
    ReplicaBind = 13, "int mnx_replbind(int vmid, int pid, int ep)";
    /// Waits at most so many milliseconds until another process has bound the caller. Returns its endpoint.
    WaitForBind = 14, "int mnx_wait4bind_T(long ms)";
    /// Waits until this endpoint is bound in the caller's container. Returns it.
    WaitForBindOf = 15, "int mnx_wait4bindep_T(int ep, long ms)";
    /// Waits until this endpoint is not bound any more.
    WaitForUnbind = 16, "int mnx_wait4unbind_T(int ep, long ms)";
    /// Ends the binding of a process. The end of a process does so too.
    Unbind = 17, "int mnx_unbind(int vmid, int ep)";
    /// Returns the endpoint of a process.
    GetEndpoint = 18, "int mnx_getep(int pid)";
    /// Tells what the process in a slot is and does.
    ProcessInfo = 19, "int mnx_getprocinfo(int vmid, int p_nr, proc_usr_t *proc)";
    /// Writes what the processes of a container do to the log of the back end.
    ProcessDump = 20, "int mnx_proc_dump(int vmid)";
    /// Sets the rights of a process. For root.
    SetPrivileges = 21, "int mnx_setpriv(int vmid, int ep, priv_usr_t *priv)";
    /// Tells the rights of a process.
    GetPrivileges = 22, "int mnx_getpriv(int vmid, int ep, priv_usr_t *priv)";
    /// Sends a message; ends when it was received.
    Send = 23, "int mnx_send_T(int dst, message *m, long ms)";
    /// Receives a pending notification or else a message, from one process or from ANY.
    Receive = 24, "int mnx_receive_T(int src, message *m, long ms)";
    /// Sends a message, and receives the answer.
    SendReceive = 25, "int mnx_sendrec_T(int ep, message *m, long ms)";
    /// Receives a message from anybody, and no notification.
    ReceiveRequest = 26, "int mnx_rcvrqst_T(message *m, long ms)";
    /// Sends to a process that waits for the caller. Never waits.
    Reply = 27, "int mnx_reply_T(int dst, message *m, long ms)";
    /// Tells a process that something has happened. Never waits.
    Notify = 28, "int mnx_notify(int dst)";
    /// The same with a value, which the receiver finds in m9_ull1.
    NotifyValue = 29, "int mnx_ntfy_value(int dst, int value)";
    /// The same in the name of another process of this container. For root.
    NotifyAs = 30, "int mnx_src_notify(int src_nr, int dst)";
    /// The same in the name of the task HARDWARE, by a process that is not bound. For root.
    NotifyHardware = 31, "int mnx_hdw_notify(int vmid, int dst)";
    /// Copies a block from one process to another; who does not call must be receiving. For root unless the caller is one of them.
    Copy = 32, "int mnx_vcopy(int src, void *saddr, int dst, void *daddr, int bytes)";
    /// Ends the wait of a process that receives from ANY.
    WakeUp = 33, "int mnx_wakeup(int vmid, int ep)";
    /// Hands a request to another process, which answers it.
    Relay = 34, "int mnx_relay(int ep, message *m)";
    /// Stops messages to a process that is about to move to another node. For root.
    MigrateStart = 35, "int mnx_migr_start(int vmid, int ep)";
    /// Ends a move that does not take place. For root.
    MigrateRollback = 36, "int mnx_migr_rollback(int vmid, int ep)";
    /// Ends a move: the endpoint is now on this node, as `pid`, or on another one. For root.
    MigrateCommit = 37, "int mnx_migr_commit(int pid, int vmid, int ep, int nodeid)";
    /// Registers a pair of proxies. For root.
    ProxiesBind = 38, "int mnx_proxies_bind(const char *name, int pxnr, int spid, int rpid, int maxbytes)";
    /// Ends a pair of proxies. For root.
    ProxiesUnbind = 39, "int mnx_proxies_unbind(int pxnr)";
    /// Tells that a proxy has, or has lost, its connection. For proxies.
    ProxyConnection = 40, "int mnx_proxy_conn(int pxnr, int status)";
    /// Tells what a pair of proxies is.
    ProxyInfo = 41, "int mnx_getproxyinfo(int pxnr, proxies_usr_t *px, proc_usr_t *sproxy, proc_usr_t *rproxy)";
    /// Lets a pair of proxies serve a node. For root.
    NodeUp = 42, "int mnx_node_up(const char *name, int nodeid, int pxnr)";
    /// Ends that. For root.
    NodeDown = 43, "int mnx_node_down(int nodeid)";
    /// Tells what is known of a node.
    NodeInfo = 44, "int mnx_getnodeinfo(int nodeid, node_usr_t *node)";
    /// Extends a container to a node. For root.
    AddNode = 45, "int mnx_add_node(int vmid, int nodeid)";
    /// Takes a node out of a container. For root.
    DelNode = 46, "int mnx_del_node(int vmid, int nodeid)";
    /// Fetches what goes to another node. For sender proxies.
    GetToRemote = 47, "int mnx_get2rmt_T(void *header, void *payload, long ms)";
    /// Delivers what came from another node. For receiver proxies.
    PutToLocal = 48, "int mnx_put2lcl(void *header, void *payload)";
}

/// Prototypes of the calls that wait without a time limit: as those with `_T`, less the last argument.
pub const WITHOUT_LIMIT: &[&str] = &[
    "int mnx_wait4bind(void)",
    "int mnx_wait4bindep(int ep)",
    "int mnx_wait4unbind(int ep)",
    "int mnx_send(int dst, message *m)",
    "int mnx_receive(int src, message *m)",
    "int mnx_sendrec(int ep, message *m)",
    "int mnx_rcvrqst(message *m)",
    "int mnx_reply(int dst, message *m)",
    "int mnx_get2rmt(void *header, void *payload)",
];

/// Prototypes of what the library does by itself, on every back end, with what they do.
pub const OF_THE_LIBRARY: &[(&str, &[&str])] = &[
    (
        "int mnx_alloc(void **buffer, long bytes)",
        &[
            "Allocates a buffer of at most MAXCOPYLEN bytes, which are zeros, and at most MAXBUFFERS of them; its address is that of a page, and what adjoins it is not",
            "mapped. mnx_vcopy is fastest from one buffer to another. A child does not have its parent's.",
        ],
    ),
    ("int mnx_free(void *buffer)", &["Frees a buffer. Nothing else may unmap it or change its protection."]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_and_come_back() {
        for (prototype, number) in PROTOTYPES.iter().zip(1..) {
            assert_eq!(prototype.call as u32, number);
            assert_eq!(Call::from_number(number), Some(prototype.call));
        }
        assert_eq!((Call::from_number(0), Call::from_number(PROTOTYPES.len() as u32 + 1)), (None, None));
    }

    #[test]
    fn calls_without_a_limit_have_one_with_it() {
        for c in WITHOUT_LIMIT {
            let name = c.split('(').next().unwrap();
            assert!(PROTOTYPES.iter().any(|other| other.c.starts_with(&std::format!("{name}_T("))), "{c}");
        }
    }
}
