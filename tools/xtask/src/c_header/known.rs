//! Values of constants, sizes and offsets of structures of `abi/`, as compiled into xtask. build.rs lists them.

/// Layout of a structure.
pub struct Layout {
    /// Its name.
    pub name: &'static str,
    /// Its size in bytes.
    pub bytes: usize,
    /// Its fields.
    pub fields: &'static [Place],
}

/// A field of a structure.
pub struct Place {
    /// Its name.
    pub name: &'static str,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// Number of elements, in arrays.
    pub count: Option<usize>,
}

type Known = (&'static [(&'static str, i128)], &'static [Layout]);

const KNOWN: Known = include!(concat!(env!("OUT_DIR"), "/known.rs"));

/// The value of a constant, named such as `endpoint::slot::RS`.
pub fn value(path: &str) -> Option<i128> {
    KNOWN.0.iter().find(|(known, _)| *known == path).map(|(_, value)| *value)
}

/// The structure of that name.
pub fn layout(name: &str) -> Option<&'static Layout> {
    KNOWN.1.iter().find(|layout| layout.name == name)
}

const fn count<S, T, const N: usize>(_: fn(&S) -> &[T; N]) -> usize {
    N
}
