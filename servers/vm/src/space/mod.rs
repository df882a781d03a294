//! Address spaces: the `region`s of one, where free addresses are not (`dense`), their pages (`address_space`), and which thread uses
//! which (`processes`).

mod address_space;
mod dense;
pub mod processes;
pub mod region;

pub use address_space::{AddressSpace, Limits, MemoryUse, STACK_GAP};
