//! Files in use, of whatever file system: vnodes, the name cache, locks and permissions, and the requests that file systems answer.

pub mod locks;
pub mod names;
pub mod nodes;
pub mod permission;
pub mod stat;
pub mod vnode;
