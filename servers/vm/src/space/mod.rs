//! Address spaces: the `region`s of one, where free addresses are not (`dense`), their pages (`address_space`), those that forks copy
//! (`hot_pages`), and which thread uses which (`processes`).

mod address_space;
mod dense;
mod hot_pages;
pub mod processes;
pub mod region;
#[cfg(test)]
mod region_tests;

pub use address_space::{AddressSpace, Limits, MemoryUse, STACK_GAP};
pub use hot_pages::{HotPage, HotPages};
