//! pm as a whole, against a fake world: programs are driven call by call, and what pm asks of kernel, vm and vfs is seen.

mod answers;
mod clone;
mod deaths;
mod exec;
mod fake;
mod frame_headers;
mod jobs;
mod life;
mod signals;
mod time;

pub use fake::{MEMORY, World};
