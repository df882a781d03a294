//! Size and offsets of the structures of `abi/`, from the Rust compiler. The C compiler checks them in the header.

/// What Rust knows of a structure.
pub struct Layout {
    /// Its name.
    pub name: &'static str,
    /// Its size in bytes.
    pub bytes: usize,
    /// Its fields and where they begin.
    pub offsets: &'static [(&'static str, usize)],
}

/// All of them, listed by build.rs.
pub const LAYOUTS: &[Layout] = include!(concat!(env!("OUT_DIR"), "/layouts.rs"));
