//! The shell of the console in a root with Debian packages.
//!
//! Debian's busybox runs its own applets for the names that its shell is given, wherever `PATH` leads. Scripts therefore get dash, which
//! comes with all packages as /bin/sh. On the console busybox's shell stays, because it edits lines and dash does not; aliases lead it to
//! the packages' programs.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Applets that the shell has built in. Programs of these names would know nothing of its jobs.
const BUILT_IN: [&str; 9] = ["[", "[[", "echo", "false", "kill", "printf", "pwd", "test", "true"];

/// Makes the console's shell, in our own files below `root`, prefer the packages' programs at the paths `replaced` to its applets.
///
/// # Errors
/// When a file of /etc cannot be read or written.
pub fn prefer_packages(root: &Path, replaced: &[String]) -> Result<()> {
    change(&root.join("etc/inittab"), |text| text.replace("-/bin/sh", "-/bin/ash"))?;
    change(&root.join("etc/profile"), |text| text + &aliases(replaced))
}

fn change(file: &Path, how: impl FnOnce(String) -> String) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    fs::write(file, how(text)).with_context(|| format!("cannot write {}", file.display()))
}

fn aliases(replaced: &[String]) -> String {
    let names = replaced.iter().filter_map(|path| Some((path.rsplit('/').next()?, path)));
    let names = names.filter(|(name, _)| !BUILT_IN.contains(name));
    names.map(|(name, path)| format!("alias {name}=/{path}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_shell_has_built_in_gets_no_alias() {
        let replaced = ["usr/bin/bc", "bin/kill", "usr/bin/["].map(str::to_string);
        assert_eq!(aliases(&replaced), "alias bc=/usr/bin/bc\n");
    }

    #[test]
    fn the_console_keeps_a_shell_that_edits_lines() {
        let root = std::env::temp_dir().join(format!("skink-shell-{}", std::process::id()));
        fs::create_dir_all(root.join("etc")).expect("made");
        fs::write(root.join("etc/inittab"), "ttyS0::respawn:-/bin/sh\n").expect("written");
        fs::write(root.join("etc/profile"), "cd\n").expect("written");
        prefer_packages(&root, &["bin/tar".to_string()]).expect("is changed");
        let read = |file| fs::read_to_string(root.join(file)).expect("read");
        assert_eq!(read("etc/inittab"), "ttyS0::respawn:-/bin/ash\n");
        assert_eq!(read("etc/profile"), "cd\nalias tar=/bin/tar\n");
        fs::remove_dir_all(&root).expect("removed");
    }
}
