//! Linux system calls: routed to services, or made by the kernel itself.

pub mod route;
pub mod time;
