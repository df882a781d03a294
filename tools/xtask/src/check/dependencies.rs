//! Rule: dependencies point one way, from the programs through the libraries to `abi`.

use crate::programs::{Package, Packages};
use std::path::Path;

/// A folder, and the folders that the packages in it may depend on.
struct Layer {
    folder: &'static str,
    may_use: &'static [&'static str],
}

const PROGRAMS_MAY_USE: &[&str] = &[
    "abi",
    "lib/sys",
    "lib/recover",
    "lib/server",
    "lib/driver",
    "lib/jbd",
    "lib/fs",
    "lib/elf",
    "lib/m3ipc",
    "lib/traces",
];

/// It alone maps the vDSO.
const VM_MAY_USE: &[&str] = &["abi", "lib/sys", "lib/recover", "lib/server", "lib/elf", "lib/vdso"];

const LAYERS: &[Layer] = &[
    Layer { folder: "abi", may_use: &[] },
    Layer { folder: "kernel/core", may_use: &["abi"] },
    Layer { folder: "kernel/boot", may_use: &["abi"] },
    Layer { folder: "kernel/x86_64", may_use: &["abi", "kernel/boot", "kernel/core", "lib/elf"] },
    Layer { folder: "lib/elf", may_use: &["abi"] },
    Layer { folder: "lib/m3ipc", may_use: &[] },
    // Code of user programs.
    Layer { folder: "lib/vdso", may_use: &[] },
    Layer { folder: "lib/sys", may_use: &["abi"] },
    Layer { folder: "lib/traces", may_use: &["abi", "lib/sys"] },
    Layer { folder: "lib/recover", may_use: &["abi", "lib/sys"] },
    Layer { folder: "lib/server", may_use: &["abi", "lib/sys", "lib/recover"] },
    Layer { folder: "lib/driver", may_use: &["abi", "lib/sys", "lib/recover", "lib/server"] },
    Layer { folder: "lib/jbd", may_use: &["abi", "lib/sys"] },
    Layer { folder: "lib/fs", may_use: &["abi", "lib/sys", "lib/recover", "lib/server"] },
    Layer { folder: "servers/vm", may_use: VM_MAY_USE },
    Layer { folder: "servers", may_use: PROGRAMS_MAY_USE },
    Layer { folder: "drivers", may_use: PROGRAMS_MAY_USE },
    Layer { folder: "fs", may_use: PROGRAMS_MAY_USE },
    Layer { folder: "user", may_use: PROGRAMS_MAY_USE },
    // For Linux, without anything of Skink but the contract.
    Layer { folder: "host/core", may_use: &["abi", "lib/m3ipc"] },
    Layer { folder: "host", may_use: &["lib/m3ipc", "host/core"] },
];

/// Dependencies between our packages that no layer allows. What tests depend on is free.
pub fn problems(root: &Path, packages: &Packages) -> Vec<String> {
    packages.all().iter().flat_map(|package| problems_of(root, package)).collect()
}

fn problems_of(root: &Path, package: &Package) -> Vec<String> {
    let Some(manifest) = relative(root, &package.manifest_path) else { return Vec::new() };
    let Some(layer) = LAYERS.iter().find(|layer| is_in(&manifest, layer.folder)) else { return Vec::new() };
    let ours = package.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"));
    ours.filter_map(|dependency| relative(root, dependency.path.as_deref()?))
        .filter(|used| !layer.may_use.iter().any(|folder| is_in(used, folder)))
        .map(|used| format!("{manifest}: {} may not depend on {used}", layer.folder))
        .collect()
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(root).ok()?.to_string_lossy().into_owned())
}

fn is_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(folder: &str, kind: &str, used: &str) -> Packages {
        let json = format!(
            r#"{{"packages": [{{"name": "p", "manifest_path": "/r/{folder}/Cargo.toml", "targets": [],
                "dependencies": [{{"name": "d", "kind": {kind}, "path": "/r/{used}"}},
                                 {{"name": "serde", "kind": null, "path": null}}]}}]}}"#
        );
        serde_json::from_str(&json).expect("is what cargo prints")
    }

    fn problems_for(folder: &str, kind: &str, used: &str) -> Vec<String> {
        problems(Path::new("/r"), &packages(folder, kind, used))
    }

    #[test]
    fn downward_dependencies_are_fine() {
        assert!(problems_for("drivers/uart", "null", "lib/driver").is_empty());
        assert!(problems_for("kernel/x86_64", "null", "kernel/core").is_empty());
    }

    #[test]
    fn upward_and_sideways_dependencies_are_named() {
        let upward = problems_for("lib/sys", "null", "lib/server");
        assert_eq!(upward, ["lib/sys/Cargo.toml: lib/sys may not depend on lib/server"]);
        assert_eq!(problems_for("servers/pm", "null", "servers/vm").len(), 1);
        assert_eq!(problems_for("kernel/core", "\"build\"", "lib/fs").len(), 1);
    }

    #[test]
    fn tests_may_depend_on_anything() {
        assert!(problems_for("lib/sys", "\"dev\"", "servers/vm").is_empty());
    }
}
