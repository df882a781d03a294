//! Rule: `unsafe` lives in a few folders; everywhere else the compiler is told to refuse it. And every
//! unsafe block says why it is sound. Requests to the SYSTEM task count as unsafe.

use super::Source;
use super::source::code_only;
use crate::programs::Packages;

/// The folders whose crates may use `unsafe`.
const ALLOWED: [&str; 8] = [
    "kernel/x86_64/",
    "lib/sys/",
    "lib/driver/",
    "lib/c/",
    "lib/vdso/",
    "host/core/",
    "host/libm3ipc/",
    "tools/qemu_plugin/",
];
/// The folders that may name the labels of requests to the SYSTEM task: such a request may have the kernel write the sender's memory.
const MAY_ASK_SYSTEM: [&str; 5] = ["abi/", "kernel/", "lib/sys/", "lib/c/", "tools/"];
const FORBID: &str = "#![forbid(unsafe_code)]";
/// How far above an unsafe block its reason may begin.
const REASON_WITHIN_LINES: usize = 10;

/// Crates that do not forbid `unsafe`, and blocks without a reason.
pub fn problems(packages: &Packages, files: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let allowed = ALLOWED.iter().any(|folder| file.path.starts_with(folder));
        if !allowed && packages.has_crate_root(&file.full_path) && !file.text.contains(FORBID) {
            problems.push(format!("{}: the crate lacks {FORBID}", file.path));
        }
        if allowed {
            problems.extend(blocks_without_reason(file));
        }
        if !MAY_ASK_SYSTEM.iter().any(|folder| file.path.starts_with(folder)) && file.text.contains("SYSTEM_LABELS") {
            problems.push(format!("{}: only lib/sys sends kernel calls to the SYSTEM task", file.path));
        }
    }
    problems
}

fn blocks_without_reason(file: &Source) -> Vec<String> {
    let code = code_only(&file.text);
    let lines: Vec<&str> = file.text.lines().collect();
    let begins_block = |line: &str| line.contains("unsafe {") || line.contains("unsafe impl");
    let has_reason =
        |at: usize| lines[at.saturating_sub(REASON_WITHIN_LINES)..=at].iter().any(|line| line.contains("SAFETY:"));
    code.lines()
        .enumerate()
        .filter(|(at, line)| begins_block(line) && !has_reason(*at))
        .map(|(at, _)| format!("{}:{}: the unsafe block does not say why it is sound", file.path, at + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source;

    fn packages() -> Packages {
        let json = r#"{"packages": [{"name": "pm", "manifest_path": "/checkout/servers/pm/Cargo.toml",
            "dependencies": [], "targets": [{"kind": ["bin"], "src_path": "/checkout/servers/pm/src/main.rs"}]}]}"#;
        serde_json::from_str(json).expect("is what cargo prints")
    }

    fn problems_of(path: &str, text: &str) -> Vec<String> {
        problems(&packages(), &[source(path, text)])
    }

    #[test]
    fn a_crate_outside_the_folders_must_forbid_it() {
        assert_eq!(problems_of("servers/pm/src/main.rs", "fn main() {}\n").len(), 1);
        assert!(problems_of("servers/pm/src/main.rs", "#![forbid(unsafe_code)]\n").is_empty());
        assert!(problems_of("servers/pm/src/other.rs", "fn other() {}\n").is_empty());
    }

    #[test]
    fn a_block_needs_its_reason_above() {
        assert_eq!(problems_of("lib/sys/src/a.rs", "fn f() {\n unsafe { g() }\n}\n").len(), 1);
        assert!(problems_of("lib/sys/src/a.rs", "// SAFETY: g asks nothing\nlet x = unsafe { g() };\n").is_empty());
        assert!(problems_of("lib/sys/src/a.rs", "/// \"unsafe {\" in a comment\n").is_empty());
    }
}
