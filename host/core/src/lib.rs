//! M3-IPC for programs: what the library and the broker have in common, and the library's calls, on Linux, with the module of Linux ([`module`]),
//! and on Skink ([`skink`]).
//!
//! In Linux, processes of a container exchange messages through shared memory and futexes; the broker (`m3ipcd`) is asked for what is rare: who is
//! bound where, boxes, rights, deaths. Three kinds of shared memory:
//!
//! | what | one for each | who writes | what is in it |
//! |---|---|---|---|
//! | [`board`] | container | the broker alone | who is bound in which slot, with which rights |
//! | [`desk`] | container | all its members | what each member waits for, and the futex that wakes it |
//! | [`pair`] | pair of members | the two | messages and notifications between them, and who waits for them |
//!
//! Who runs finds its peer in the box; desks are for those who sleep.
//!
//! What is believed: the board in all things; a box in what its two ends say to each other; a desk in nothing that matters. A desk tells a
//! sender that it need not wait and a sleeper that it may wake; whoever finds it wrong looks into the boxes again, at least once a second.
//! So a member that scribbles can delay others of its container and spoil the order of messages, but not read, forge or double them.
//!
//! Whatever is read from shared memory is an atomic, read once; every bit pattern has a meaning. `unsafe` is in
//! [`memory`], [`region`] and [`signals`], in `skink::raw`, in [`module`] and in `module::raw`; and where a caller's promise is passed on, in [`backend`], [`skink`]
//! and `copy`.

mod ask;
pub mod backend;
pub mod board;
mod buffers;
mod circles;
pub mod client;
mod copy;
pub mod desk;
mod exchange;
pub mod member;
pub mod memory;
pub mod module;
mod pages;
pub mod pair;
#[cfg(test)]
mod pair_tests;
mod place;
pub mod process;
mod receive;
pub mod region;
pub mod signals;
pub mod skink;
mod sync;
mod take;
pub mod wait;
mod window;
pub mod wire;
