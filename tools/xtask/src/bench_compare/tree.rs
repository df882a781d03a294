//! The files that the workloads work on: a tree of texts, the same on every machine, as an archive in the root file system.

use crate::process;
use crate::rootfs::EPOCH;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// As many directories, files in each, and bytes of a file at most, as the headers of a C library have, in all some 8 MiB.
const DIRECTORIES: u64 = 73;
const FILES: u64 = 18;
const MAX_FILE_BYTES: u64 = 12 << 10;
/// Lines of the file for sort and awk.
const WORDS: u64 = 100_000;

/// Makes the folder `overlay` with /tree.tar.
///
/// # Errors
/// When a file cannot be written or tar fails.
pub fn overlay(overlay: &Path) -> Result<PathBuf> {
    let tree = overlay.join("tree");
    let mut numbers = Numbers(1);
    for directory in 0..DIRECTORIES {
        let folder = tree.join(format!("part{}", directory % 8)).join(format!("directory{directory}"));
        fs::create_dir_all(&folder)?;
        for file in 0..FILES {
            let text = text(&mut numbers, MAX_FILE_BYTES);
            fs::write(folder.join(format!("file{file}.txt")), text).context("cannot write the tree")?;
        }
    }
    fs::write(tree.join("words.txt"), words(&mut numbers))?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(overlay).args(["--sort=name", "--owner=0", "--group=0", "--mode=u=rwX,go=rX", "--format=ustar"]);
    process::run(tar.arg(format!("--mtime=@{EPOCH}")).arg("-cf").arg(overlay.join("tree.tar")).arg("tree"))?;
    fs::remove_dir_all(&tree)?;
    Ok(overlay.to_path_buf())
}

/// A generator of numbers (Knuth's MMIX).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Words of a small vocabulary in lines.
fn text(numbers: &mut Numbers, max_bytes: u64) -> String {
    const WORDS: [&str; 12] =
        ["int", "struct", "message", "rendezvous", "return", "{", "}", "the", "kernel", "0x40", "process", "grant"];
    let length = max_bytes / 4 + numbers.below(3 * max_bytes / 4);
    let mut text = String::new();
    while (text.len() as u64) < length {
        let word = WORDS[numbers.below(WORDS.len() as u64) as usize];
        text.push_str(word);
        text.push(if numbers.below(8) == 0 { '\n' } else { ' ' });
    }
    text
}

fn words(numbers: &mut Numbers) -> String {
    (0..WORDS).fold(String::new(), |mut text, _| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:x} {}", numbers.below(1 << 30), numbers.below(1000));
        text
    })
}
