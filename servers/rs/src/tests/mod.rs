//! rs as a whole, by message: its loop, its launcher and its reports over a kernel whose part the test plays.
//!
//! `world` has what a test needs; the other files are named after what they try.

mod boot;
mod commands;
mod crashes;
mod life;
mod recovery;
mod world;
