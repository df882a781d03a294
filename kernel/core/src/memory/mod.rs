//! Memory of programs: address spaces, copies between them, grants.

pub mod copy;
pub(crate) mod grants;
pub(crate) mod place;
pub mod spaces;
