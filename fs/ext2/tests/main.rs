//! Tests of ext2 as a file system and as a service. They are one program, because each program is compiled and linked with all of `common`.
#![forbid(unsafe_code)]

mod common;

mod behaviour;
mod choices;
mod corrupt_images;
mod deaths;
mod failures;
mod format;
mod indexes;
mod journal;
mod messages;
mod overlap;
mod power_cuts;
mod random_operations;
mod rules;
mod xattrs;
