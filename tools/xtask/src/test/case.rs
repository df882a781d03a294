//! A case of tests/qemu or tests/host: its files, and what the lines `#: KEY VALUE` in it say.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::DEFAULT_SYSTEM;
use crate::debian;

/// Default time limit of a case.
const USUAL_LIMIT: Duration = Duration::from_secs(600);

/// One case.
#[derive(Debug)]
pub struct Case {
    /// Name of the test.
    pub name: String,
    /// What is run or played: the functions that the case uses, and its main file's text.
    pub text: String,
    /// Its main file.
    pub path: PathBuf,
    /// Its header: limits and expectations.
    pub terms: Terms,
}

/// The terms of a case, each a line `#: KEY VALUE`.
#[derive(Debug, PartialEq)]
pub struct Terms {
    /// `system NAME`: the system to boot.
    pub system: String,
    /// `status N`: the exit status that is expected.
    pub status: u8,
    /// `timeout SECONDS`: the time it may take.
    pub limit: Duration,
    /// `memory MIB`: the machine's memory.
    pub memory_mib: u32,
    /// `icount`: instructions are counted.
    pub icount: bool,
    /// `tablet`: the machine has a tablet.
    pub tablet: bool,
    /// `device SPECIFICATION`: it has this device, as QEMU's option `-device` has it.
    pub devices: Vec<String>,
    /// `traced EVENT`: what QEMU's device tells of these events is kept for `NAME.check`.
    pub traced: Vec<String>,
    /// `disk_rate BYTES`: what the disks read in a second.
    pub disk_rate: Option<u32>,
    /// `package NAMES`: Debian packages for the root file system.
    pub packages: Vec<String>,
    /// `second_disk MIB`: an empty disk besides the root's.
    pub second_disk_mib: Option<u64>,
    /// `journal`: the root file system has one.
    pub has_journal: bool,
    /// `inodes NUMBER`: files that can be made in the root file system, beyond the usual.
    pub free_inodes: u64,
    /// `linux`: the case runs again on Debian's Linux, with the disk that it has left.
    pub linux: bool,
    /// `screen`: the machine has one, of which `NAME.check` finds a picture.
    pub screen: bool,
    /// `functions NAMES`: files of the folder, `NAME.functions`, that the case begins with.
    pub functions: Vec<String>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            system: DEFAULT_SYSTEM.to_string(),
            status: 0,
            limit: USUAL_LIMIT,
            memory_mib: 512,
            icount: false,
            tablet: false,
            devices: Vec::new(),
            traced: Vec::new(),
            disk_rate: None,
            packages: Vec::new(),
            second_disk_mib: None,
            has_journal: false,
            free_inodes: 0,
            linux: false,
            screen: false,
            functions: Vec::new(),
        }
    }
}

impl Case {
    /// The case's file with another extension, if there is one.
    pub fn companion(&self, extension: &str) -> Option<PathBuf> {
        Some(self.path.with_extension(extension)).filter(|path| path.exists())
    }
}

/// The cases in tests/`kind` whose main file has that extension, by name.
///
/// # Errors
/// When a file cannot be read or has a wrong term.
pub fn find(root: &Path, kind: &str, extension: &str) -> Result<Vec<Case>> {
    let folder = root.join("tests").join(kind);
    let Ok(entries) = fs::read_dir(&folder) else { return Ok(Vec::new()) };
    let mut cases = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|own| own == extension) {
            cases.push(read(kind, path)?);
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

fn read(kind: &str, path: PathBuf) -> Result<Case> {
    let own = read_text(&path)?;
    let terms = terms(&own).with_context(|| path.display().to_string())?;
    let used = terms.functions.iter().map(|name| read_text(&path.with_file_name(format!("{name}.functions"))));
    let text = used.chain([Ok(own)]).collect::<Result<String>>().with_context(|| path.display().to_string())?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Case { name: format!("{kind}/{stem}"), text, terms, path })
}

fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn terms(text: &str) -> Result<Terms> {
    let mut terms = Terms::default();
    for line in text.lines().filter_map(|line| line.strip_prefix("#:")) {
        let (key, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let value = value.trim();
        let wrong = || format!("{key}: expected a number, not '{value}'");
        match key {
            "system" => terms.system = value.to_string(),
            "status" => terms.status = value.parse().with_context(wrong)?,
            "timeout" => terms.limit = Duration::from_secs(value.parse().with_context(wrong)?),
            "memory" => terms.memory_mib = value.parse().with_context(wrong)?,
            "icount" => terms.icount = true,
            "tablet" => terms.tablet = true,
            "device" => terms.devices.push(value.to_string()),
            "traced" => terms.traced.push(value.to_string()),
            "disk_rate" => terms.disk_rate = Some(value.parse().with_context(wrong)?),
            "package" => terms.packages.extend(debian::names(value)?),
            "second_disk" => terms.second_disk_mib = Some(value.parse().with_context(wrong)?),
            "journal" => terms.has_journal = true,
            "inodes" => terms.free_inodes = value.parse().with_context(wrong)?,
            "linux" => terms.linux = true,
            "screen" => terms.screen = true,
            "functions" => terms.functions.extend(value.split(' ').map(str::to_string)),
            _ => bail!(
                "expected system, status, timeout, memory, icount, tablet, device, traced, disk_rate, package, second_disk, journal, inodes, linux, screen or functions, not '{key}'"
            ),
        }
    }
    Ok(terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_from_their_lines() {
        let terms =
            terms("# says\n#: status 3\necho\n#: system ramdisk\n#: timeout 5\n#: icount\n").expect("are right");
        assert_eq!((terms.status, terms.system.as_str(), terms.icount), (3, "ramdisk", true));
        assert_eq!((terms.limit, terms.memory_mib), (Duration::from_secs(5), 512));
    }

    #[test]
    fn a_case_begins_with_the_functions_that_it_uses() {
        let folder = std::env::temp_dir().join(format!("case-{}", std::process::id()));
        let qemu = folder.join("tests/qemu");
        fs::create_dir_all(&qemu).expect("is made");
        fs::write(qemu.join("one.functions"), "one() { echo 1; }\n").expect("is written");
        fs::write(qemu.join("uses.sh"), "#: functions one two\none\n").expect("is written");
        let missing = find(&folder, "qemu", "sh").expect_err("was read").root_cause().to_string();
        fs::write(qemu.join("two.functions"), "two() { echo 2; }\n").expect("is written");
        let cases = find(&folder, "qemu", "sh").expect("are there");
        fs::remove_dir_all(&folder).expect("is removed");
        assert_eq!(cases[0].text, "one() { echo 1; }\ntwo() { echo 2; }\n#: functions one two\none\n");
        assert!(missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn wrong_terms_are_named() {
        assert!(terms("#: statsu 3\n").expect_err("was accepted").to_string().contains("'statsu'"));
        assert!(
            format!("{:#}", terms("#: status x\n").expect_err("was accepted")).contains("status: expected a number")
        );
    }
}
