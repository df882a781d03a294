//! Rule: what answers programs allocates so that it may fail (ADR 35). Its crates deny the lint whose list is in clippy.toml.

use super::Source;
use crate::programs::Packages;

/// The folders whose crates answer programs.
const FOLDERS: [&str; 6] = ["servers/", "fs/", "lib/fs/", "lib/jbd/", "lib/recover/", "lib/server/"];
const DENY: &str = "#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]";

/// Crates that do not deny allocations that cannot fail.
pub fn problems(packages: &Packages, files: &[Source]) -> Vec<String> {
    let lacks_it = |file: &&Source| {
        FOLDERS.iter().any(|folder| file.path.starts_with(folder))
            && !file.path.contains("/tests/")
            && packages.has_crate_root(&file.full_path)
            && !file.text.contains(DENY)
    };
    files.iter().filter(lacks_it).map(|file| format!("{}: the crate lacks {DENY}", file.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source;

    fn problems_of(path: &str, text: &str) -> usize {
        let json = r#"{"packages": [{"name": "pm", "manifest_path": "/checkout/servers/pm/Cargo.toml",
            "dependencies": [], "targets": [{"kind": ["bin"], "src_path": "/checkout/servers/pm/src/main.rs"}]}]}"#;
        let packages = serde_json::from_str(json).expect("is what cargo prints");
        problems(&packages, &[source(path, text)]).len()
    }

    #[test]
    fn a_server_denies_allocations_that_cannot_fail() {
        assert_eq!(problems_of("servers/pm/src/main.rs", "fn main() {}\n"), 1);
        assert_eq!(problems_of("servers/pm/src/main.rs", DENY), 0);
        assert_eq!(problems_of("servers/pm/src/other.rs", "fn other() {}\n"), 0);
    }
}
