//! m3ipc on a made-up kernel.

mod bindings;
mod deaths;
mod files;
mod messages;
mod steps;
mod world;
