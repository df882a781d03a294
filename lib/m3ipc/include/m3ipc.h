/* M3-IPC: messages between ordinary processes of one container. This file is long because it is made, whole, from lib/m3ipc by
 * `./skink check`, which writes it anew when they differ.
 *
 * Calls return 0 or more, or one of the errors EMOL..., which are negative.
 */
#ifndef M3IPC_H
#define M3IPC_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif

#ifdef __cplusplus
extern "C" {
#define M3IPC_STATIC_ASSERT static_assert
#else
#define M3IPC_STATIC_ASSERT _Static_assert
#endif

/* Limits. A slot's number is at least -NR_TASKS, and below NR_PROCS. */
#define NR_NODES 32
#define NR_VMS 32
#define NR_TASKS 35
#define NR_PROCS 221
#define NR_SYS_PROCS 64
#define NR_PROXIES 32
#define MAXPROCNAME 16
#define MAXBUFFERS 16
#define MAXCOPYLEN 0x400000
#define M3IPC_VERSION 1
#define TIMEOUT_FOREVER (-1)
#define TIMEOUT_NOWAIT 0

/* Nobody, anybody, and the caller. */
#define NONE 0x6ace
#define ANY 0x7ace
#define SELF 0x8ace
#define HARDWARE (-1)
#define _ENDPOINT_DISTANCE 35570
#define _ENDPOINT_LAST_GENERATION 60373
/* The endpoint of a slot's occupant of a generation; and back. */
#define _ENDPOINT(g, p) ((int)((g) * _ENDPOINT_DISTANCE + (p)))
#define _ENDPOINT_P(e) ((((e) + NR_TASKS) % _ENDPOINT_DISTANCE) - NR_TASKS)
#define _ENDPOINT_G(e) (((e) + NR_TASKS) / _ENDPOINT_DISTANCE)

/* What calls fail with. */
/* The caller may not make this call. */
#define EMOLPERM (-1)
/* A signal ended the wait. */
#define EMOLINTR (-4)
/* The call would wait, and its time limit is 0. */
#define EMOLAGAIN (-11)
/* No memory is left for what the call asks. */
#define EMOLNOMEM (-12)
/* An address is not mapped, or not with the access that the call needs. */
#define EMOLFAULT (-14)
/* Another call uses what this one needs. */
#define EMOLBUSY (-16)
/* An argument has no meaning. */
#define EMOLINVAL (-22)
/* A number or length is beyond its limit. */
#define EMOLRANGE (-34)
/* The back end does not have this call. */
#define EMOLNOSYS (-38)
/* The time limit has passed. */
#define EMOLTIMEDOUT (-61)
/* The node is not connected. */
#define EMOLNOTCONN (-64)
/* A block to be copied is not within the memory of its process. */
#define EMOLADDRNOTAVAIL (-71)
/* The wait would close a circle of processes that wait for each other. */
#define EMOLLOCKED (-101)
/* The peer may not be named here: it is the caller itself, or a name that stands for several. */
#define EMOLBADSRCDST (-103)
/* The caller's rights do not allow the call, or this peer. */
#define EMOLCALLDENIED (-104)
/* The peer of a sendrec has ended. */
#define EMOLDEADSRCDST (-105)
/* The peer is not ready. */
#define EMOLNOTREADY (-106)
/* The peer of a receive has ended. */
#define EMOLSRCDIED (-108)
/* The peer of a send has ended. */
#define EMOLDSTDIED (-109)
/* There is no such node. */
#define EMOLBADNODEID (-301)
/* There is no such container. */
#define EMOLBADVMID (-302)
/* The container has not been initialised. */
#define EMOLVMNOTRUN (-303)
/* There is no such slot, or nobody in it. */
#define EMOLBADPROC (-304)
/* There is no such Linux process. */
#define EMOLBADPID (-305)
/* The endpoint is none of the container, or a former one of its slot. */
#define EMOLENDPOINT (-306)
/* No proxy serves the node. */
#define EMOLNOPROXY (-307)
/* The process is on another node. */
#define EMOLRMTPROC (-308)
/* The process is on this node. */
#define EMOLLCLPROC (-309)
/* The caller is not bound. */
#define EMOLNOTBIND (-310)
/* The node is in use. */
#define EMOLNODEBUSY (-315)
/* The node has been initialised already. */
#define EMOLDRVSBUSY (-317)
/* The node has not been initialised. */
#define EMOLDRVSINIT (-318)
/* The container does not extend to this node. */
#define EMOLNOVMNODE (-319)
/* The process does not wait. */
#define EMOLPROCRUN (-320)
/* The container is initialised already. */
#define EMOLVMRUN (-323)
/* The process is not in the state that the call needs. */
#define EMOLPROCSTS (-324)
/* The node is not in use. */
#define EMOLNODEFREE (-325)
/* The container extends to the node already. */
#define EMOLVMNODE (-326)
/* The process takes part in a copy. */
#define EMOLONCOPY (-328)
/* A notification of the same source is pending already. */
#define EMOLOVERRUN (-330)
/* The process moves to another node. */
#define EMOLMIGRATE (-332)
/* The proxy is not in use. */
#define EMOLPROXYFREE (-333)
/* The caller's group leader is not bound in this container. */
#define EMOLGRPLEADER (-334)
/* The process has no privilege to notify or be notified. */
#define EMOLPRIVILEGES (-335)
/* The process was bound in another way. */
#define EMOLBINDTYPE (-336)
/* The slot is occupied. */
#define EMOLSLOTUSED (-337)
/* What the call needs is in use. */
#define EMOLRSCBUSY (-342)
/* Another process ended the wait by wakeup. */
#define EMOLWOKENUP (-348)
/* X(name) for each of them. */
#define EMOL_ERRORS(X) X(EMOLPERM) \
    X(EMOLINTR) \
    X(EMOLAGAIN) \
    X(EMOLNOMEM) \
    X(EMOLFAULT) \
    X(EMOLBUSY) \
    X(EMOLINVAL) \
    X(EMOLRANGE) \
    X(EMOLNOSYS) \
    X(EMOLTIMEDOUT) \
    X(EMOLNOTCONN) \
    X(EMOLADDRNOTAVAIL) \
    X(EMOLLOCKED) \
    X(EMOLBADSRCDST) \
    X(EMOLCALLDENIED) \
    X(EMOLDEADSRCDST) \
    X(EMOLNOTREADY) \
    X(EMOLSRCDIED) \
    X(EMOLDSTDIED) \
    X(EMOLBADNODEID) \
    X(EMOLBADVMID) \
    X(EMOLVMNOTRUN) \
    X(EMOLBADPROC) \
    X(EMOLBADPID) \
    X(EMOLENDPOINT) \
    X(EMOLNOPROXY) \
    X(EMOLRMTPROC) \
    X(EMOLLCLPROC) \
    X(EMOLNOTBIND) \
    X(EMOLNODEBUSY) \
    X(EMOLDRVSBUSY) \
    X(EMOLDRVSINIT) \
    X(EMOLNOVMNODE) \
    X(EMOLPROCRUN) \
    X(EMOLVMRUN) \
    X(EMOLPROCSTS) \
    X(EMOLNODEFREE) \
    X(EMOLVMNODE) \
    X(EMOLONCOPY) \
    X(EMOLOVERRUN) \
    X(EMOLMIGRATE) \
    X(EMOLPROXYFREE) \
    X(EMOLGRPLEADER) \
    X(EMOLPRIVILEGES) \
    X(EMOLBINDTYPE) \
    X(EMOLSLOTUSED) \
    X(EMOLRSCBUSY) \
    X(EMOLWOKENUP)

/* The message: the sender's endpoint, a type, and one of ten layouts. */
typedef struct { int m1i1; int m1i2; int m1i3; char *m1p1; char *m1p2; char *m1p3; } mess_1;
typedef struct { int m2i1; int m2i2; int m2i3; long m2l1; long m2l2; char *m2p1; } mess_2;
typedef struct { int m3i1; int m3i2; char *m3p1; char m3ca1[14]; } mess_3;
typedef struct { long m4l1; long m4l2; long m4l3; long m4l4; long m4l5; } mess_4;
typedef struct { char m5c1; char m5c2; int m5i1; int m5i2; long m5l1; long m5l2; long m5l3; } mess_5;
typedef struct { int m6i1; int m6i2; int m6i3; long m6l1; char *m6p1; } mess_6;
typedef struct { int m7i1; int m7i2; int m7i3; int m7i4; char *m7p1; char *m7p2; } mess_7;
typedef struct { int m8i1; int m8i2; char *m8p1; char *m8p2; char *m8p3; char *m8p4; } mess_8;
typedef struct { unsigned long long m9ull1; unsigned long long m9ull2; long m9l1; long m9l2; long m9l3; long m9l4; short m9s1; short m9s2; short m9s3; short m9s4; } mess_9;
typedef struct { unsigned long long m10ull1; int m10i1; int m10i2; int m10i3; int m10i4; long m10l1; long m10l2; long m10l3; } mess_10;
typedef struct {
    int m_source;
    int m_type;
    union {
        mess_1 m_m1;
        mess_2 m_m2;
        mess_3 m_m3;
        mess_4 m_m4;
        mess_5 m_m5;
        mess_6 m_m6;
        mess_7 m_m7;
        mess_8 m_m8;
        mess_9 m_m9;
        mess_10 m_m10;
    } m_u;
} message;
M3IPC_STATIC_ASSERT(sizeof(message) == 64, "size of message");
#define m1_i1 m_u.m_m1.m1i1
#define m1_i2 m_u.m_m1.m1i2
#define m1_i3 m_u.m_m1.m1i3
#define m1_p1 m_u.m_m1.m1p1
#define m1_p2 m_u.m_m1.m1p2
#define m1_p3 m_u.m_m1.m1p3
#define m2_i1 m_u.m_m2.m2i1
#define m2_i2 m_u.m_m2.m2i2
#define m2_i3 m_u.m_m2.m2i3
#define m2_l1 m_u.m_m2.m2l1
#define m2_l2 m_u.m_m2.m2l2
#define m2_p1 m_u.m_m2.m2p1
#define m3_i1 m_u.m_m3.m3i1
#define m3_i2 m_u.m_m3.m3i2
#define m3_p1 m_u.m_m3.m3p1
#define m3_ca1 m_u.m_m3.m3ca1
#define m4_l1 m_u.m_m4.m4l1
#define m4_l2 m_u.m_m4.m4l2
#define m4_l3 m_u.m_m4.m4l3
#define m4_l4 m_u.m_m4.m4l4
#define m4_l5 m_u.m_m4.m4l5
#define m5_c1 m_u.m_m5.m5c1
#define m5_c2 m_u.m_m5.m5c2
#define m5_i1 m_u.m_m5.m5i1
#define m5_i2 m_u.m_m5.m5i2
#define m5_l1 m_u.m_m5.m5l1
#define m5_l2 m_u.m_m5.m5l2
#define m5_l3 m_u.m_m5.m5l3
#define m6_i1 m_u.m_m6.m6i1
#define m6_i2 m_u.m_m6.m6i2
#define m6_i3 m_u.m_m6.m6i3
#define m6_l1 m_u.m_m6.m6l1
#define m6_p1 m_u.m_m6.m6p1
#define m7_i1 m_u.m_m7.m7i1
#define m7_i2 m_u.m_m7.m7i2
#define m7_i3 m_u.m_m7.m7i3
#define m7_i4 m_u.m_m7.m7i4
#define m7_p1 m_u.m_m7.m7p1
#define m7_p2 m_u.m_m7.m7p2
#define m8_i1 m_u.m_m8.m8i1
#define m8_i2 m_u.m_m8.m8i2
#define m8_p1 m_u.m_m8.m8p1
#define m8_p2 m_u.m_m8.m8p2
#define m8_p3 m_u.m_m8.m8p3
#define m8_p4 m_u.m_m8.m8p4
#define m9_ull1 m_u.m_m9.m9ull1
#define m9_ull2 m_u.m_m9.m9ull2
#define m9_l1 m_u.m_m9.m9l1
#define m9_l2 m_u.m_m9.m9l2
#define m9_l3 m_u.m_m9.m9l3
#define m9_l4 m_u.m_m9.m9l4
#define m9_s1 m_u.m_m9.m9s1
#define m9_s2 m_u.m_m9.m9s2
#define m9_s3 m_u.m_m9.m9s3
#define m9_s4 m_u.m_m9.m9s4
#define m10_ull1 m_u.m_m10.m10ull1
#define m10_i1 m_u.m_m10.m10i1
#define m10_i2 m_u.m_m10.m10i2
#define m10_i3 m_u.m_m10.m10i3
#define m10_i4 m_u.m_m10.m10i4
#define m10_l1 m_u.m_m10.m10l1
#define m10_l2 m_u.m_m10.m10l2
#define m10_l3 m_u.m_m10.m10l3

/* The type of a notification: NOTIFY_FROM(nr); its value is in m9_ull1, its time in m9_ull2. */
#define NOTIFY_MESSAGE 0x1000
#define NOTIFY_FROM(p_nr) (NOTIFY_MESSAGE | ((p_nr) + NR_TASKS))
#define IS_NOTIFY(type) (((type) & ~0xff) == NOTIFY_MESSAGE)

/* Bits of p_rts_flags. */
/* Nobody is bound in the slot. */
#define RTS_BIT_SLOT_FREE 0
#define RTS_SLOT_FREE (1u << RTS_BIT_SLOT_FREE)
/* It waits until its message is received. */
#define RTS_BIT_SENDING 2
#define RTS_SENDING (1u << RTS_BIT_SENDING)
/* It waits for a message. */
#define RTS_BIT_RECEIVING 3
#define RTS_RECEIVING (1u << RTS_BIT_RECEIVING)
/* It has no endpoint any more. */
#define RTS_BIT_NO_ENDPOINT 9
#define RTS_NO_ENDPOINT (1u << RTS_BIT_NO_ENDPOINT)
/* It takes part in a copy. */
#define RTS_BIT_ONCOPY 10
#define RTS_ONCOPY (1u << RTS_BIT_ONCOPY)
/* It moves to another node. */
#define RTS_BIT_MIGRATING 11
#define RTS_MIGRATING (1u << RTS_BIT_MIGRATING)
/* It is on another node. */
#define RTS_BIT_REMOTE 12
#define RTS_REMOTE (1u << RTS_BIT_REMOTE)
/* What it waits for happens on another node. */
#define RTS_BIT_RMTOPER 13
#define RTS_RMTOPER (1u << RTS_BIT_RMTOPER)
/* It waits for the move of another process. */
#define RTS_BIT_WAITMIGR 15
#define RTS_WAITMIGR (1u << RTS_BIT_WAITMIGR)
/* It waits for the end of another process. */
#define RTS_BIT_WAITUNBIND 17
#define RTS_WAITUNBIND (1u << RTS_BIT_WAITUNBIND)
/* It waits until another process is bound. */
#define RTS_BIT_WAITBIND 18
#define RTS_WAITBIND (1u << RTS_BIT_WAITBIND)

/* Bits of p_misc_flags. */
/* It is a proxy. */
#define MIS_BIT_PROXY 0
#define MIS_PROXY (1u << MIS_BIT_PROXY)
/* It is a proxy with a connection. */
#define MIS_BIT_CONNECTED 1
#define MIS_CONNECTED (1u << MIS_BIT_CONNECTED)
/* A notification is pending. */
#define MIS_BIT_NOTIFY 2
#define MIS_NOTIFY (1u << MIS_BIT_NOTIFY)
/* It is about to move to another node. */
#define MIS_BIT_NEEDMIG 3
#define MIS_NEEDMIG (1u << MIS_BIT_NEEDMIG)
/* It will take over the endpoint of a remote process. */
#define MIS_BIT_RMTBACKUP 4
#define MIS_RMTBACKUP (1u << MIS_BIT_RMTBACKUP)
/* It is the leader of its group of threads. */
#define MIS_BIT_GRPLEADER 5
#define MIS_GRPLEADER (1u << MIS_BIT_GRPLEADER)
/* It is a thread of the kernel. */
#define MIS_BIT_KTHREAD 6
#define MIS_KTHREAD (1u << MIS_BIT_KTHREAD)
/* It is a replica. */
#define MIS_BIT_REPLICATED 7
#define MIS_REPLICATED (1u << MIS_BIT_REPLICATED)
/* It was ended with its container. */
#define MIS_BIT_KILLED 8
#define MIS_KILLED (1u << MIS_BIT_KILLED)
/* Another process ended its wait. */
#define MIS_BIT_WOKENUP 9
#define MIS_WOKENUP (1u << MIS_BIT_WOKENUP)

/* Bits of n_flags. */
/* Proxies serve it, or it is this node. */
#define NODE_BIT_ATTACHED 0
#define NODE_ATTACHED (1u << NODE_BIT_ATTACHED)
/* What is sent to it arrives. */
#define NODE_BIT_SCONNECTED 1
#define NODE_SCONNECTED (1u << NODE_BIT_SCONNECTED)
/* What it sends arrives here. */
#define NODE_BIT_RCONNECTED 2
#define NODE_RCONNECTED (1u << NODE_BIT_RCONNECTED)

/* The state of a container. */
#define VM_RUNNING 1
#define VM_OPEN 2

/* priv_level: what a process is. */
#define USER_PRIV 0
#define SERVER_PRIV 1
#define TASK_PRIV 2
#define SYSTEM_PRIV 3
#define KERNEL_PRIV 4
#define PROXY_PRIV 5

/* priv_trap_mask: calls that a process may make. */
#define TRAP_SEND (1u << 1)
#define TRAP_RECEIVE (1u << 2)
#define TRAP_SENDREC (1u << 3)
#define TRAP_NOTIFY (1u << 4)
#define TRAP_REPLY (1u << 5)
#define TRAP_VCOPY (1u << 6)
/* Slot `nr` in priv_ipc_from and priv_ipc_to. */
#define PRIV_SLOT_SET(map, nr) ((map)[((nr) + NR_TASKS) / 64] |= 1ul << (((nr) + NR_TASKS) % 64))
#define PRIV_SLOT_CLEAR(map, nr) ((map)[((nr) + NR_TASKS) / 64] &= ~(1ul << (((nr) + NR_TASKS) % 64)))
#define PRIV_SLOT_TEST(map, nr) ((map)[((nr) + NR_TASKS) / 64] >> (((nr) + NR_TASKS) % 64) & 1)

/* This node, and its limits. */
typedef struct drvs_usr {
    /* Containers. */
    int d_nr_vms;
    /* Nodes. */
    int d_nr_nodes;
    /* Slots of a container for processes. */
    int d_nr_procs;
    /* Slots of a container for tasks. */
    int d_nr_tasks;
    /* Slots of a container for system processes. */
    int d_nr_sysprocs;
    /* Bytes that are copied at a time. */
    int d_max_copybuf;
    /* Bytes of one copy. */
    int d_max_copylen;
    /* How much is logged. */
    int d_dbglvl;
    /* Version of the interface; told, not set. */
    int d_version;
} drvs_usr_t;
M3IPC_STATIC_ASSERT(sizeof(drvs_usr_t) == 36, "size of drvs_usr");
M3IPC_STATIC_ASSERT(offsetof(drvs_usr_t, d_nr_vms) == 0, "drvs_usr.d_nr_vms");
M3IPC_STATIC_ASSERT(offsetof(drvs_usr_t, d_nr_nodes) == 4, "drvs_usr.d_nr_nodes");
M3IPC_STATIC_ASSERT(offsetof(drvs_usr_t, d_nr_procs) == 8, "drvs_usr.d_nr_procs");
M3IPC_STATIC_ASSERT(offsetof(drvs_usr_t, d_nr_tasks) == 12, "drvs_usr.d_nr_tasks");
M3IPC_STATIC_ASSERT(offsetof(drvs_usr_t, d_nr_sysprocs) == 16, "drvs_usr.d_nr_sysprocs");
M3IPC_STATIC_ASSERT(offsetof(drvs_usr_t, d_max_copybuf) == 20, "drvs_usr.d_max_copybuf");
M3IPC_STATIC_ASSERT(offsetof(drvs_usr_t, d_max_copylen) == 24, "drvs_usr.d_max_copylen");
M3IPC_STATIC_ASSERT(offsetof(drvs_usr_t, d_dbglvl) == 28, "drvs_usr.d_dbglvl");
M3IPC_STATIC_ASSERT(offsetof(drvs_usr_t, d_version) == 32, "drvs_usr.d_version");

/* A container. */
typedef struct VM_usr {
    /* Its number. */
    int vm_vmid;
    /* Its state: VM_RUNNING, or 0; and whether every user may join it: VM_OPEN. */
    int vm_flags;
    /* Slots for processes; 0 in vm_init for as many as the node allows, as for the other two. */
    int vm_nr_procs;
    /* Slots for tasks. */
    int vm_nr_tasks;
    /* Slots for system processes. */
    int vm_nr_sysprocs;
    /* How many nodes it extends to. */
    int vm_nr_nodes;
    /* The nodes that it extends to, a bit each. */
    unsigned int vm_nodes;
    /* Slot of the process that is told of ends of processes, or NONE. */
    int vm_warn2proc;
    /* Type of the message that tells of them. */
    int vm_warnmsg;
    /* How many processes are bound in it; told, not set. */
    int vm_bound;
    /* Its name. */
    char vm_name[16];
    /* The processors that its processes may use; 0 for all. */
    unsigned long vm_cpumask;
    /* Who may join it besides root: processes of these users. 0 for none, as below. If nothing is said here, below, or by VM_OPEN, the back end's settings decide. */
    unsigned int vm_uids[8];
    /* Processes of these groups. */
    unsigned int vm_gids[8];
    /* Processes that have one of these capabilities of Linux, a bit each. */
    unsigned long vm_capabilities;
} VM_usr_t;
M3IPC_STATIC_ASSERT(sizeof(VM_usr_t) == 136, "size of VM_usr");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_vmid) == 0, "VM_usr.vm_vmid");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_flags) == 4, "VM_usr.vm_flags");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_nr_procs) == 8, "VM_usr.vm_nr_procs");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_nr_tasks) == 12, "VM_usr.vm_nr_tasks");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_nr_sysprocs) == 16, "VM_usr.vm_nr_sysprocs");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_nr_nodes) == 20, "VM_usr.vm_nr_nodes");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_nodes) == 24, "VM_usr.vm_nodes");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_warn2proc) == 28, "VM_usr.vm_warn2proc");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_warnmsg) == 32, "VM_usr.vm_warnmsg");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_bound) == 36, "VM_usr.vm_bound");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_name) == 40, "VM_usr.vm_name");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_cpumask) == 56, "VM_usr.vm_cpumask");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_uids) == 64, "VM_usr.vm_uids");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_gids) == 96, "VM_usr.vm_gids");
M3IPC_STATIC_ASSERT(offsetof(VM_usr_t, vm_capabilities) == 128, "VM_usr.vm_capabilities");

/* A process that is bound, or a free slot. */
typedef struct proc_usr {
    /* Number of its slot. */
    int p_nr;
    /* Its endpoint. */
    int p_endpoint;
    /* Its container. */
    int p_vmid;
    /* What it does: bits of RTS. */
    unsigned int p_rts_flags;
    /* Its pid, or its thread's; -1 for none here. */
    int p_lpid;
    /* The node it runs on. */
    int p_nodeid;
    /* The nodes it may run on, a bit each. */
    unsigned int p_nodemap;
    /* What it is: bits of MIS. */
    unsigned int p_misc_flags;
    /* Endpoint that it receives from, ANY or NONE. */
    int p_getfrom;
    /* Endpoint that it sends to, or NONE. */
    int p_sendto;
    /* Endpoint whose move it waits for, or NONE. */
    int p_waitmigr;
    /* Endpoint whose end it waits for, or NONE. */
    int p_waitunbind;
    /* The proxies that serve its node, or NONE. */
    int p_proxy;
    /* Its group leader's endpoint; its own for a leader. */
    int p_leader;
    /* Messages sent to processes of this node. */
    unsigned long p_lclsent;
    /* Messages sent to other nodes. */
    unsigned long p_rmtsent;
    /* Copies between processes of this node. */
    unsigned long p_lclcopy;
    /* Copies from or to other nodes. */
    unsigned long p_rmtcopy;
    /* Its name. */
    char p_name[16];
    /* The processors it may use; 0 for all. */
    unsigned long p_cpumask;
} proc_usr_t;
M3IPC_STATIC_ASSERT(sizeof(proc_usr_t) == 112, "size of proc_usr");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_nr) == 0, "proc_usr.p_nr");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_endpoint) == 4, "proc_usr.p_endpoint");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_vmid) == 8, "proc_usr.p_vmid");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_rts_flags) == 12, "proc_usr.p_rts_flags");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_lpid) == 16, "proc_usr.p_lpid");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_nodeid) == 20, "proc_usr.p_nodeid");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_nodemap) == 24, "proc_usr.p_nodemap");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_misc_flags) == 28, "proc_usr.p_misc_flags");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_getfrom) == 32, "proc_usr.p_getfrom");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_sendto) == 36, "proc_usr.p_sendto");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_waitmigr) == 40, "proc_usr.p_waitmigr");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_waitunbind) == 44, "proc_usr.p_waitunbind");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_proxy) == 48, "proc_usr.p_proxy");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_leader) == 52, "proc_usr.p_leader");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_lclsent) == 56, "proc_usr.p_lclsent");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_rmtsent) == 64, "proc_usr.p_rmtsent");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_lclcopy) == 72, "proc_usr.p_lclcopy");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_rmtcopy) == 80, "proc_usr.p_rmtcopy");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_name) == 88, "proc_usr.p_name");
M3IPC_STATIC_ASSERT(offsetof(proc_usr_t, p_cpumask) == 104, "proc_usr.p_cpumask");

/* A node. */
typedef struct node_usr {
    /* Its number. */
    int n_nodeid;
    /* Its state: bits of NODE. */
    unsigned int n_flags;
    /* The proxies that serve it, or NONE. */
    int n_proxies;
    /* The containers that extend to it, a bit each. */
    unsigned int n_vms;
    /* When something was sent to it last, in nanoseconds of CLOCK_MONOTONIC. */
    unsigned long n_stimestamp;
    /* When something came from it last. */
    unsigned long n_rtimestamp;
    /* Frames sent to it. */
    unsigned long n_pxsent;
    /* Frames received from it. */
    unsigned long n_pxrcvd;
    /* Its name. */
    char n_name[16];
} node_usr_t;
M3IPC_STATIC_ASSERT(sizeof(node_usr_t) == 64, "size of node_usr");
M3IPC_STATIC_ASSERT(offsetof(node_usr_t, n_nodeid) == 0, "node_usr.n_nodeid");
M3IPC_STATIC_ASSERT(offsetof(node_usr_t, n_flags) == 4, "node_usr.n_flags");
M3IPC_STATIC_ASSERT(offsetof(node_usr_t, n_proxies) == 8, "node_usr.n_proxies");
M3IPC_STATIC_ASSERT(offsetof(node_usr_t, n_vms) == 12, "node_usr.n_vms");
M3IPC_STATIC_ASSERT(offsetof(node_usr_t, n_stimestamp) == 16, "node_usr.n_stimestamp");
M3IPC_STATIC_ASSERT(offsetof(node_usr_t, n_rtimestamp) == 24, "node_usr.n_rtimestamp");
M3IPC_STATIC_ASSERT(offsetof(node_usr_t, n_pxsent) == 32, "node_usr.n_pxsent");
M3IPC_STATIC_ASSERT(offsetof(node_usr_t, n_pxrcvd) == 40, "node_usr.n_pxrcvd");
M3IPC_STATIC_ASSERT(offsetof(node_usr_t, n_name) == 48, "node_usr.n_name");

/* A pair of proxies. */
typedef struct proxies_usr {
    /* Its number. */
    int px_id;
    /* Its state: bits of MIS. */
    unsigned int px_flags;
    /* Pid of the one that sends. */
    int px_spid;
    /* Pid of the one that receives. */
    int px_rpid;
    /* The nodes it serves, a bit each. */
    unsigned int px_nodes;
    /* Bytes of a frame. */
    int px_maxbytes;
    /* Its name. */
    char px_name[16];
} proxies_usr_t;
M3IPC_STATIC_ASSERT(sizeof(proxies_usr_t) == 40, "size of proxies_usr");
M3IPC_STATIC_ASSERT(offsetof(proxies_usr_t, px_id) == 0, "proxies_usr.px_id");
M3IPC_STATIC_ASSERT(offsetof(proxies_usr_t, px_flags) == 4, "proxies_usr.px_flags");
M3IPC_STATIC_ASSERT(offsetof(proxies_usr_t, px_spid) == 8, "proxies_usr.px_spid");
M3IPC_STATIC_ASSERT(offsetof(proxies_usr_t, px_rpid) == 12, "proxies_usr.px_rpid");
M3IPC_STATIC_ASSERT(offsetof(proxies_usr_t, px_nodes) == 16, "proxies_usr.px_nodes");
M3IPC_STATIC_ASSERT(offsetof(proxies_usr_t, px_maxbytes) == 20, "proxies_usr.px_maxbytes");
M3IPC_STATIC_ASSERT(offsetof(proxies_usr_t, px_name) == 24, "proxies_usr.px_name");

/* The rights of a process. */
typedef struct priv_usr {
    /* Its number among those who may notify: below d_nr_sysprocs. */
    int priv_id;
    /* Slot of the process that is told of its end, or NONE. */
    int priv_warn;
    /* What it is: USER_PRIV to PROXY_PRIV. */
    int priv_level;
    /* Calls that it may make: a bit for each of TRAP. */
    unsigned int priv_trap_mask;
    /* Slots that it may receive from. */
    unsigned long priv_ipc_from[4];
    /* Slots that it may send to. */
    unsigned long priv_ipc_to[4];
    /* Calls to the kernel that it may make; kept for the programs. */
    unsigned long priv_call_mask;
    /* When its alarm comes; kept for the programs. */
    unsigned long priv_alarm;
} priv_usr_t;
M3IPC_STATIC_ASSERT(sizeof(priv_usr_t) == 96, "size of priv_usr");
M3IPC_STATIC_ASSERT(offsetof(priv_usr_t, priv_id) == 0, "priv_usr.priv_id");
M3IPC_STATIC_ASSERT(offsetof(priv_usr_t, priv_warn) == 4, "priv_usr.priv_warn");
M3IPC_STATIC_ASSERT(offsetof(priv_usr_t, priv_level) == 8, "priv_usr.priv_level");
M3IPC_STATIC_ASSERT(offsetof(priv_usr_t, priv_trap_mask) == 12, "priv_usr.priv_trap_mask");
M3IPC_STATIC_ASSERT(offsetof(priv_usr_t, priv_ipc_from) == 16, "priv_usr.priv_ipc_from");
M3IPC_STATIC_ASSERT(offsetof(priv_usr_t, priv_ipc_to) == 48, "priv_usr.priv_ipc_to");
M3IPC_STATIC_ASSERT(offsetof(priv_usr_t, priv_call_mask) == 80, "priv_usr.priv_call_mask");
M3IPC_STATIC_ASSERT(offsetof(priv_usr_t, priv_alarm) == 88, "priv_usr.priv_alarm");

/* A call without a message, as the device of Linux's module takes it. */
typedef struct m3ipc_request {
    /* Its arguments, in the order of its prototype. */
    long arguments[5];
    /* What it has returned, if it has not failed. */
    long value;
} m3ipc_request_t;
M3IPC_STATIC_ASSERT(sizeof(m3ipc_request_t) == 48, "size of m3ipc_request");
M3IPC_STATIC_ASSERT(offsetof(m3ipc_request_t, arguments) == 0, "m3ipc_request.arguments");
M3IPC_STATIC_ASSERT(offsetof(m3ipc_request_t, value) == 40, "m3ipc_request.value");

/* The calls. Those with _T end with EMOLAGAIN or EMOLTIMEDOUT when they have waited so many milliseconds: 0 is not at all,
 * TIMEOUT_FOREVER as long as it takes, as those without. */
/* Starts this node with a number, and limits unless drvs is NULL. Returns the node's number. For root. */
int mnx_drvs_init(int nodeid, drvs_usr_t *drvs);
/* Ends every container of this node. For root. */
int mnx_drvs_end(void);
/* Tells the limits of this node. Returns its number. */
int mnx_getdrvsinfo(drvs_usr_t *drvs);
/* Starts a container. For root. */
int mnx_vm_init(VM_usr_t *vm);
/* Ends a container, and all processes that are bound in it. For root. */
int mnx_vm_end(int vmid);
/* Tells what a container is. */
int mnx_getvminfo(int vmid, VM_usr_t *vm);
/* Writes what a container is to the log of the back end. */
int mnx_vm_dump(int vmid);
/* Binds the caller to a slot. Returns its endpoint. */
int mnx_bind(int vmid, int p_nr);
/* Binds the calling thread; its group leader must be bound in the same container. Returns its endpoint. */
int mnx_tbind(int vmid, int p_nr);
/* Binds another process of this node. Returns its endpoint. */
int mnx_lclbind(int vmid, int pid, int p_nr);
/* Gives a process of another node its endpoint here. */
int mnx_rmtbind(int vmid, const char *name, int ep, int nodeid);
/* Binds a process that will take over the endpoint of a remote one. */
int mnx_bkupbind(int vmid, int pid, int ep, int nodeid);
/* Binds a replica of a process. */
int mnx_replbind(int vmid, int pid, int ep);
/* Waits at most so many milliseconds until another process has bound the caller. Returns its endpoint. */
int mnx_wait4bind(void);
int mnx_wait4bind_T(long ms);
/* Waits until this endpoint is bound in the caller's container. Returns it. */
int mnx_wait4bindep(int ep);
int mnx_wait4bindep_T(int ep, long ms);
/* Waits until this endpoint is not bound any more. */
int mnx_wait4unbind(int ep);
int mnx_wait4unbind_T(int ep, long ms);
/* Ends the binding of a process. The end of a process does so too. */
int mnx_unbind(int vmid, int ep);
/* Returns the endpoint of a process. */
int mnx_getep(int pid);
/* Tells what the process in a slot is and does. */
int mnx_getprocinfo(int vmid, int p_nr, proc_usr_t *proc);
/* Writes what the processes of a container do to the log of the back end. */
int mnx_proc_dump(int vmid);
/* Sets the rights of a process. For root. */
int mnx_setpriv(int vmid, int ep, priv_usr_t *priv);
/* Tells the rights of a process. */
int mnx_getpriv(int vmid, int ep, priv_usr_t *priv);
/* Sends a message; ends when it was received. */
int mnx_send(int dst, message *m);
int mnx_send_T(int dst, message *m, long ms);
/* Receives a pending notification or else a message, from one process or from ANY. */
int mnx_receive(int src, message *m);
int mnx_receive_T(int src, message *m, long ms);
/* Sends a message, and receives the answer. */
int mnx_sendrec(int ep, message *m);
int mnx_sendrec_T(int ep, message *m, long ms);
/* Receives a message from anybody, and no notification. */
int mnx_rcvrqst(message *m);
int mnx_rcvrqst_T(message *m, long ms);
/* Sends to a process that waits for the caller. Never waits. */
int mnx_reply(int dst, message *m);
int mnx_reply_T(int dst, message *m, long ms);
/* Tells a process that something has happened. Never waits. */
int mnx_notify(int dst);
/* The same with a value, which the receiver finds in m9_ull1. */
int mnx_ntfy_value(int dst, int value);
/* The same in the name of another process of this container. For root. */
int mnx_src_notify(int src_nr, int dst);
/* The same in the name of the task HARDWARE, by a process that is not bound. For root. */
int mnx_hdw_notify(int vmid, int dst);
/* Copies a block from one process to another; who does not call must be receiving. For root unless the caller is one of them. */
int mnx_vcopy(int src, void *saddr, int dst, void *daddr, int bytes);
/* Ends the wait of a process that receives from ANY. */
int mnx_wakeup(int vmid, int ep);
/* Hands a request to another process, which answers it. */
int mnx_relay(int ep, message *m);
/* Stops messages to a process that is about to move to another node. For root. */
int mnx_migr_start(int vmid, int ep);
/* Ends a move that does not take place. For root. */
int mnx_migr_rollback(int vmid, int ep);
/* Ends a move: the endpoint is now on this node, as pid, or on another one. For root. */
int mnx_migr_commit(int pid, int vmid, int ep, int nodeid);
/* Registers a pair of proxies. For root. */
int mnx_proxies_bind(const char *name, int pxnr, int spid, int rpid, int maxbytes);
/* Ends a pair of proxies. For root. */
int mnx_proxies_unbind(int pxnr);
/* Tells that a proxy has, or has lost, its connection. For proxies. */
int mnx_proxy_conn(int pxnr, int status);
/* Tells what a pair of proxies is. */
int mnx_getproxyinfo(int pxnr, proxies_usr_t *px, proc_usr_t *sproxy, proc_usr_t *rproxy);
/* Lets a pair of proxies serve a node. For root. */
int mnx_node_up(const char *name, int nodeid, int pxnr);
/* Ends that. For root. */
int mnx_node_down(int nodeid);
/* Tells what is known of a node. */
int mnx_getnodeinfo(int nodeid, node_usr_t *node);
/* Extends a container to a node. For root. */
int mnx_add_node(int vmid, int nodeid);
/* Takes a node out of a container. For root. */
int mnx_del_node(int vmid, int nodeid);
/* Fetches what goes to another node. For sender proxies. */
int mnx_get2rmt(void *header, void *payload);
int mnx_get2rmt_T(void *header, void *payload, long ms);
/* Delivers what came from another node. For receiver proxies. */
int mnx_put2lcl(void *header, void *payload);
/* Allocates a buffer of at most MAXCOPYLEN bytes, which are zeros, and at most MAXBUFFERS of them; its address is that of a page, and what adjoins it is not mapped. mnx_vcopy is fastest from one buffer to another. A child does not have its parent's. */
int mnx_alloc(void **buffer, long bytes);
/* Frees a buffer. Nothing else may unmap it or change its protection. */
int mnx_free(void *buffer);

/* The calls by number, and the device of Linux's module: ioctl(file, M3IPC_IOCTL(number), address). For libraries; programs use the functions above. */
#define M3IPC_CALL_DRVS_INIT 1
#define M3IPC_CALL_DRVS_END 2
#define M3IPC_CALL_DRVS_INFO 3
#define M3IPC_CALL_VM_INIT 4
#define M3IPC_CALL_VM_END 5
#define M3IPC_CALL_VM_INFO 6
#define M3IPC_CALL_VM_DUMP 7
#define M3IPC_CALL_BIND 8
#define M3IPC_CALL_THREAD_BIND 9
#define M3IPC_CALL_LOCAL_BIND 10
#define M3IPC_CALL_REMOTE_BIND 11
#define M3IPC_CALL_BACKUP_BIND 12
#define M3IPC_CALL_REPLICA_BIND 13
#define M3IPC_CALL_WAIT_FOR_BIND 14
#define M3IPC_CALL_WAIT_FOR_BIND_OF 15
#define M3IPC_CALL_WAIT_FOR_UNBIND 16
#define M3IPC_CALL_UNBIND 17
#define M3IPC_CALL_GET_ENDPOINT 18
#define M3IPC_CALL_PROCESS_INFO 19
#define M3IPC_CALL_PROCESS_DUMP 20
#define M3IPC_CALL_SET_PRIVILEGES 21
#define M3IPC_CALL_GET_PRIVILEGES 22
#define M3IPC_CALL_SEND 23
#define M3IPC_CALL_RECEIVE 24
#define M3IPC_CALL_SEND_RECEIVE 25
#define M3IPC_CALL_RECEIVE_REQUEST 26
#define M3IPC_CALL_REPLY 27
#define M3IPC_CALL_NOTIFY 28
#define M3IPC_CALL_NOTIFY_VALUE 29
#define M3IPC_CALL_NOTIFY_AS 30
#define M3IPC_CALL_NOTIFY_HARDWARE 31
#define M3IPC_CALL_COPY 32
#define M3IPC_CALL_WAKE_UP 33
#define M3IPC_CALL_RELAY 34
#define M3IPC_CALL_MIGRATE_START 35
#define M3IPC_CALL_MIGRATE_ROLLBACK 36
#define M3IPC_CALL_MIGRATE_COMMIT 37
#define M3IPC_CALL_PROXIES_BIND 38
#define M3IPC_CALL_PROXIES_UNBIND 39
#define M3IPC_CALL_PROXY_CONNECTION 40
#define M3IPC_CALL_PROXY_INFO 41
#define M3IPC_CALL_NODE_UP 42
#define M3IPC_CALL_NODE_DOWN 43
#define M3IPC_CALL_NODE_INFO 44
#define M3IPC_CALL_ADD_NODE 45
#define M3IPC_CALL_DEL_NODE 46
#define M3IPC_CALL_GET_TO_REMOTE 47
#define M3IPC_CALL_PUT_TO_LOCAL 48
#define M3IPC_DEVICE "/dev/m3ipc"
#define M3IPC_IOCTL(call) (0x4d00 + (call))
#define M3IPC_OWN_NODE "local"
/* What calls with a message take there: the peer is in m_source. Others take an m3ipc_request. */
typedef struct m3ipc_parcel {
    long limit_ms;
    message m;
} m3ipc_parcel_t;

#ifdef __cplusplus
}
#endif
#endif
