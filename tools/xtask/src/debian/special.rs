//! What a package's files have and the host's user cannot give them: owners, modes that keep the owner out, device nodes. debugfs
//! sets that in the image.

use super::unpack::Unpacked;
use crate::process;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// The mode's bits that tell the kind of a file.
const KIND_BITS: u32 = 0o170_000;

/// What is to be set for one path.
#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
pub struct Special {
    /// Below the root.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// What it is a node of.
    pub device: Option<Device>,
}

/// The device of a node.
#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
pub struct Device {
    /// Whether it is a block device; otherwise it is one of characters.
    pub is_block: bool,
    /// Its numbers.
    pub major: u32,
    /// Its numbers.
    pub minor: u32,
}

/// Sets what is special about `packages` in the image `image`, which was made of the folder `staging`. What is made has the time `time`,
/// in seconds since 1970.
///
/// # Errors
/// When debugfs fails.
pub fn apply(packages: &[Unpacked], staging: &Path, image: &Path, time: u64) -> Result<()> {
    let mut script = String::new();
    for package in packages {
        for special in &package.special {
            script.push_str(&special.commands(&package.root(), staging));
        }
    }
    if script.is_empty() { Ok(()) } else { debugfs(&script, image, time) }
}

impl Special {
    /// debugfs's commands for it; none if something else of the root has taken its place.
    fn commands(&self, root: &Path, staging: &Path) -> String {
        let staged = fs::symlink_metadata(staging.join(&self.path)).ok();
        let path = quoted(&format!("/{}", self.path));
        let mut commands = String::new();
        // Writing to a string does not fail.
        let kind = match (&self.device, staged) {
            (Some(device), None) => {
                let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", self.path.as_str()));
                let letter = if device.is_block { 'b' } else { 'c' };
                let _ = writeln!(commands, "cd {}", quoted(&format!("/{folder}")));
                let _ = writeln!(commands, "mknod {} {letter} {} {}", quoted(name), device.major, device.minor);
                if device.is_block { 0o060_000 } else { 0o020_000 }
            }
            (None, Some(staged)) if is_same(&staged, &root.join(&self.path)) => staged.mode() & KIND_BITS,
            _ => return commands,
        };
        let _ = writeln!(commands, "set_inode_field {path} mode 0{:o}", kind | self.mode);
        let _ = writeln!(commands, "set_inode_field {path} uid {}", self.uid);
        let _ = writeln!(commands, "set_inode_field {path} gid {}", self.gid);
        commands
    }
}

/// Whether `staged` is what the package has at `own`: a folder too, or a link to the same file.
fn is_same(staged: &fs::Metadata, own: &Path) -> bool {
    let Ok(own) = fs::symlink_metadata(own) else { return false };
    (staged.is_dir() && own.is_dir()) || (staged.ino() == own.ino() && staged.dev() == own.dev())
}

fn debugfs(script: &str, image: &Path, time: u64) -> Result<()> {
    let file = image.with_extension("debugfs");
    fs::write(&file, script)?;
    let mut debugfs = Command::new("debugfs");
    debugfs.env("E2FSPROGS_FAKE_TIME", time.to_string()).args(["-w", "-f"]).arg(&file).arg(image);
    process::debugfs(&mut debugfs).context("cannot set the owners of the packages' files")?;
    fs::remove_file(&file).context("cannot remove debugfs's script")
}

/// `word` as debugfs reads it in quotes.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_something_else_has_replaced_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("skink-special-{}", std::process::id()));
        let (root, staging) = (folder.join("root"), folder.join("staging"));
        for made in [&root, &staging] {
            fs::create_dir_all(made).expect("made");
            fs::write(made.join("other"), "").expect("written");
        }
        fs::write(root.join("own"), "").expect("written");
        fs::hard_link(root.join("own"), staging.join("own")).expect("linked");
        let special = |path: &str| Special { path: path.into(), mode: 0o4755, uid: 1, gid: 42, device: None };
        assert_eq!(special("other").commands(&root, &staging), "");
        let commands =
            "set_inode_field \"/own\" mode 0104755\nset_inode_field \"/own\" uid 1\nset_inode_field \"/own\" gid 42\n";
        assert_eq!(special("own").commands(&root, &staging), commands);
        let device = Some(Device { is_block: true, major: 8, minor: 1 });
        let node = Special { device, ..special("dev/sda 1") }.commands(&root, &staging);
        assert!(node.starts_with("cd \"/dev\"\nmknod \"sda 1\" b 8 1\n") && node.contains("mode 064755"), "{node}");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
