//! The contract of M3-IPC: messages between ordinary processes of one container, whoever carries them.
//!
//! M3-IPC gives ordinary programs the rendezvous of a microkernel: fixed-size messages, no buffers, peers named by endpoints. The same
//! program runs on three back ends: Skink, a library in Linux, a module of Linux. What they must agree on is here: numbers, limits, errors,
//! endpoints, layouts, and the rules of the rendezvous as a state machine, which servers use, libraries follow, and tests compare with.
//! There is no input or output and no allocation. The C header, `include/m3ipc.h`, is made from here by `./skink check`.
//!
//! | module | topic |
//! |---|---|
//! | [`limits`] | how many nodes, containers and processes there are, and how much a call copies |
//! | [`error`] | what a call fails with |
//! | [`message`] | the message and its ten layouts |
//! | [`endpoint`] | slots of a container, and the names of those who occupy them |
//! | [`descriptor`] | what calls tell and are told of nodes, containers and processes |
//! | [`call`] | the calls, with their numbers and prototypes in C |
//! | [`device`] | how calls reach the module of Linux |
//! | [`rights`] | what a process may call, and whom it may send to |
//! | [`settings`] | what a node and a container may ask for |
//! | [`rendezvous`] | who waits for whom, and what ends the wait |
//!
//! Names and numbers are those of M3-IPC as published (Pessolani and others, CoNaIISI and WICC 2011 to 2015); where its description leaves a
//! choice, the item says which was made.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod call;
pub mod descriptor;
pub mod device;
pub mod endpoint;
pub mod error;
pub mod limits;
pub mod message;
pub mod rendezvous;
pub mod report;
pub mod rights;
pub mod settings;
