//! Physical memory and what is in it: `frames` and the reserves (`supply`), `pages` in leaves (`leaf`: which frame shows which page),
//! `object` (content that several regions show) with `images` and `shared_pages` of files, the `marks` of changed
//! ones, the `cache` of vfs, the `attaches` of System V segments, the `window`s of devices, and the `vdso`. All see
//! the kernel through the trait in `kernel`.

pub mod attaches;
pub mod cache;
pub mod content;
pub mod frames;
pub mod images;
pub mod kernel;
mod leaf;
pub mod marks;
pub mod object;
#[cfg(test)]
mod object_tests;
pub mod pages;
pub mod shared_pages;
mod supply;
pub mod vdso;
pub mod window;

pub use supply::{Floor, Memory};
