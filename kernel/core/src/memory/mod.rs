//! Memory of programs: address spaces, copies between them, grants.

pub mod copy;
pub mod grants;
pub mod place;
pub mod spaces;
