//! Shows that both systems run the same files on the same mounts: both print their programs' hashes and their mounts.

use super::both::{Both, Emulation};
use anyhow::{Context, Result, bail};
use std::fmt::Write;

/// Digits of a hash that are written.
const DIGITS: usize = 12;
/// The mount points that sections work on, and how the page calls what is there.
const MOUNTS: [(&str, &str); 2] = [("/", "ext2 with a journal"), ("/dev/shm", "tmpfs")];

/// Asks both systems. Returns what the page says about it.
///
/// # Errors
/// When a program is not the same file on both, or a mount is missing.
pub fn check(both: &Both) -> Result<String> {
    let names: Vec<&str> = both.programs().iter().map(|program| program.name.as_str()).collect();
    let script = format!("cd /bin && sha256sum busybox {} && cat /proc/mounts", names.join(" "));
    let pair = both.run(&script, Emulation::Plain)?;
    let printed = hashes(&pair.skink.text);
    if printed.len() != names.len() + 1 || printed != hashes(&pair.linux.text) {
        bail!("the programs are not the same files:\n{}\n{}", pair.skink.text, pair.linux.text);
    }
    let mut text =
        format!("Linux is Debian's {}.\n\n| mounted | Skink | Linux |\n|---|---|---|\n", both.linux_version());
    for (place, what) in MOUNTS {
        let (skink, linux) = (mount(&pair.skink.text, place)?, mount(&pair.linux.text, place)?);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{place}`, {what} | `{skink}` | `{linux}` |");
    }
    let words: Vec<String> = printed.iter().map(|(name, hash)| format!("`{name}` {hash}")).collect();
    let _ = writeln!(
        text,
        "\nThe programs, by the first digits of their SHA-256, which both systems have printed: {}.",
        words.join(", ")
    );
    Ok(text)
}

/// Names and the first digits of their hashes.
fn hashes(printed: &str) -> Vec<(&str, &str)> {
    printed.lines().filter_map(hash).collect()
}

fn hash(line: &str) -> Option<(&str, &str)> {
    let (hash, name) = line.split_once("  ")?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hash.then_some((name, &hash[..DIGITS]))
}

/// Type and options of what was mounted last at `place`.
fn mount(printed: &str, place: &str) -> Result<String> {
    let fields = printed.lines().rev().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut found = fields.filter(|fields| fields.len() == 6 && fields[1] == place);
    let fields = found.next().with_context(|| format!("nothing is mounted at {place}"))?;
    Ok(format!("{} {}", fields[2], fields[3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_mounts_are_found() {
        let hash = "0123456789abcdef".repeat(4);
        let printed = format!("{hash}  calls\nrootfs / rootfs rw 0 0\n/dev/ram0 / ext3 rw,relatime 0 0\n");
        assert_eq!(hashes(&printed), [("calls", "0123456789ab")]);
        assert_eq!(mount(&printed, "/").expect("is mounted"), "ext3 rw,relatime");
        assert!(mount(&printed, "/dev/shm").is_err());
    }
}
