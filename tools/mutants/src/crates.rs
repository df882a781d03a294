//! The crates that are tried, and which part of each.

/// One crate.
pub struct Crate {
    /// Name of the package.
    pub name: &'static str,
    /// Its folder in the checkout.
    pub folder: &'static str,
    /// Its root module.
    pub root: &'static str,
    /// Files or folders below `src/` that are changed; none: all.
    pub parts: &'static [&'static str],
    /// Test targets that are not run: they test another build than this one.
    pub without: &'static [&'static str],
}

/// Those of `mutants` without `--crate`, small ones first.
pub const CRATES: [Crate; 6] = [
    Crate { name: "rs", folder: "servers/rs", root: "main.rs", parts: &[], without: &[] },
    Crate { name: "pm", folder: "servers/pm", root: "main.rs", parts: &[], without: &[] },
    Crate { name: "vm", folder: "servers/vm", root: "main.rs", parts: &[], without: &[] },
    Crate { name: "ext2", folder: "fs/ext2", root: "lib.rs", parts: &[], without: &[] },
    Crate {
        name: "vfs",
        folder: "servers/vfs",
        root: "main.rs",
        parts: &["cache", "calls", "files", "keep", "mappings", "objects", "paths"],
        without: &[],
    },
    Crate { name: "kernel_core", folder: "kernel/core", root: "lib.rs", parts: &[], without: &["rooms"] },
];

/// Whether a file below `src/` is changed: tests and what only hands calls to the kernel are not.
pub fn is_changed(one: &Crate, path: &str) -> bool {
    let is_test = path.starts_with("tests/") || path.ends_with("tests.rs") || path == "tests.rs";
    // The host has other code in its place.
    let is_native = ["native.rs", "launch.rs", "main.rs", "program.rs"].contains(&path);
    // What stands for a room that is left out; all rooms are built in.
    let is_twin = path.starts_with("rooms/absent/");
    let is_part = one.parts.is_empty() || one.parts.iter().any(|part| path.split('/').next() == Some(part));
    !is_test && !is_native && !is_twin && is_part
}
