//! The users and groups that packages take for granted. On Debian the script that the package base-passwd runs before it is unpacked
//! makes /etc/passwd and /etc/group; here these are Skink's, and get what they lack.

use super::unpack::Unpacked;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The files of /etc, and base-passwd's lists of what belongs in them.
const FILES: [(&str, &str); 2] =
    [("etc/passwd", "usr/share/base-passwd/passwd.master"), ("etc/group", "usr/share/base-passwd/group.master")];

/// Adds what the lists of `packages` have to the files below `root`.
pub fn add(packages: &[Unpacked], root: &Path) -> Result<()> {
    for (file, list) in FILES {
        for list in packages.iter().map(|package| package.root().join(list)).filter(|list| list.exists()) {
            let file = root.join(file);
            let own = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            fs::write(&file, merged(&own, &fs::read_to_string(&list)?))?;
        }
    }
    Ok(())
}

/// The lines of `own`, and those of `list` with other names.
fn merged(own: &str, list: &str) -> String {
    fn name(line: &str) -> &str {
        line.split(':').next().unwrap_or(line)
    }
    let known: HashSet<&str> = own.lines().map(name).collect();
    let added = list.lines().filter(|line| !known.contains(name(line)));
    own.lines().chain(added).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_missing_are_added_and_others_stay_as_they_are() {
        let own = "root:x:0:\nuser:x:1000:\n";
        assert_eq!(merged(own, "root:*:0:\nmail:*:8:\n"), "root:x:0:\nuser:x:1000:\nmail:*:8:\n");
        assert_eq!(merged("root:x:0:", ""), "root:x:0:\n");
    }
}
