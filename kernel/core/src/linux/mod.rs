//! Linux system calls: routed to services, or made by the kernel itself.

pub(crate) mod route;
pub(crate) mod time;
