//! dpkg's database (dpkg(1), deb-triggers(5)), as dpkg leaves it after unpacking packages and before configuring them: `dpkg -V` finds
//! their files, and `dpkg --configure -a` runs their scripts.
//!
//! Configuration files are in place already, with their checksums, so that programs run before that: dpkg takes such a file for one
//! that it has dealt with.

use super::unpack::Unpacked;
use crate::process;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

const UNPACKED: &str = "Status: install ok unpacked\n";

/// A package's stanza of dpkg's status, or its control file.
pub struct Stanza<'a> {
    text: &'a str,
}

impl<'a> Stanza<'a> {
    /// Reads `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// The name of the package.
    ///
    /// # Errors
    /// When there is none.
    pub fn name(&self) -> Result<&'a str> {
        self.field("Package").context("the control file has no name of the package")
    }

    /// The first line of a field.
    fn field(&self, name: &str) -> Option<&'a str> {
        let of = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
        self.text.lines().find_map(of)
    }

    /// The name as dpkg has it where packages of several architectures may be installed together.
    fn qualified_name(&self) -> Result<String> {
        let name = self.name()?;
        Ok(match (self.field("Multi-Arch"), self.field("Architecture")) {
            (Some("same"), Some(architecture)) => format!("{name}:{architecture}"),
            _ => name.to_string(),
        })
    }

    /// The stanza of an unpacked package with the configuration files `conffiles`.
    fn unpacked(&self, conffiles: &str) -> Result<String> {
        let (first, rest) = self.text.trim_end().split_once('\n').context("the control file has one line")?;
        let conffiles = if conffiles.is_empty() { String::new() } else { format!("Conffiles:\n{conffiles}") };
        Ok(format!("{first}\n{UNPACKED}{rest}\n{conffiles}"))
    }
}

/// A package's part of the database that is shared by all packages.
pub struct Description {
    /// Its stanza.
    pub status: String,
    /// The triggers in which it is interested.
    pub triggers: String,
}

/// Describes the package whose control files are in `control` and whose files, listed in `list`, are in `root`; moves the control files
/// to where dpkg keeps them below `root`.
///
/// # Errors
/// When a control file is missing, or a file cannot be read or written.
pub fn describe(control: &Path, root: &Path, list: &str) -> Result<Description> {
    let text = fs::read_to_string(control.join("control")).context("the package has no control file")?;
    let stanza = Stanza::new(&text);
    let name = stanza.qualified_name()?;
    let read = |file: &str| fs::read_to_string(control.join(file)).unwrap_or_default();
    let conffiles = conffiles(&read("conffiles"), root)?;
    let description =
        Description { status: stanza.unpacked(&conffiles)?, triggers: interests(&read("triggers"), &name) };
    let info = root.join("var/lib/dpkg/info");
    fs::create_dir_all(&info)?;
    let built = fs::metadata(control.join("control"))?.modified()?;
    for entry in fs::read_dir(control)?.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name() != "control"))
    {
        let entry = entry?;
        fs::rename(entry.path(), info.join(format!("{name}.{}", entry.file_name().to_string_lossy())))?;
    }
    let mut file = File::create(info.join(format!("{name}.list")))?;
    file.write_all(list.as_bytes())?;
    // The same package gives the same image, whenever it was unpacked.
    file.set_modified(built).context("cannot set the time of a list")?;
    Ok(description)
}

/// The lines of the field Conffiles: each configuration file of the list `names`, and the checksum by which dpkg tells later whether it
/// was edited.
fn conffiles(names: &str, root: &Path) -> Result<String> {
    // Lines that begin with a word are about files that an upgrade removes.
    let names: Vec<&str> = names.lines().filter_map(|line| line.trim().strip_prefix('/')).collect();
    if names.is_empty() {
        return Ok(String::new());
    }
    let printed = process::output(Command::new("md5sum").current_dir(root).arg("--").args(&names))?;
    let printed = String::from_utf8(printed).context("md5sum printed something that is not text")?;
    let sums = printed.lines().filter_map(|line| line.split_once("  "));
    Ok(sums.map(|(sum, name)| format!(" /{name} {sum}\n")).collect())
}

/// The triggers that the file `triggers` of `package` names as its interests, a line `NAME PACKAGE` each, with `/noawait` after it
/// where those who activate the trigger do not wait for the package.
pub fn interests(triggers: &str, package: &str) -> String {
    let interest = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let suffix = match words.next()? {
            "interest" | "interest-await" => "",
            "interest-noawait" => "/noawait",
            _ => return None,
        };
        Some(format!("{} {package}{suffix}\n", words.next()?))
    };
    triggers.lines().filter_map(interest).collect()
}

/// Writes the files of the database in the folder `to` that are shared by all packages.
///
/// # Errors
/// When a file cannot be written.
pub fn write(packages: &[Unpacked], to: &Path) -> Result<()> {
    for folder in ["info", "triggers", "alternatives", "updates", "parts"] {
        fs::create_dir_all(to.join(folder))?;
    }
    let stanzas: Vec<&str> = packages.iter().map(|package| package.status.as_str()).collect();
    let triggers: String = packages.iter().map(|package| package.triggers.as_str()).collect();
    let mut files = triggers_files(&triggers);
    files.insert("status".to_string(), stanzas.join("\n"));
    files.insert("info/format".to_string(), "1\n".to_string());
    for empty in ["available", "diversions", "statoverride", "triggers/Unincorp"] {
        files.insert(empty.to_string(), String::new());
    }
    for (name, text) in files {
        fs::write(to.join(&name), text).with_context(|| format!("cannot write dpkg's {name}"))?;
    }
    Ok(())
}

/// The files of dpkg's triggers for the lines of [`interests`]: one for all paths, one for each other name.
fn triggers_files(interests: &str) -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([("triggers/File".to_string(), String::new())]);
    for (name, package) in interests.lines().filter_map(|line| line.split_once(' ')) {
        let (file, line) = match name.starts_with('/') {
            true => ("triggers/File".to_string(), format!("{name} {package}\n")),
            false => (format!("triggers/{name}"), format!("{package}\n")),
        };
        files.entry(file).or_default().push_str(&line);
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: &str =
        "Package: libc6\nVersion: 2.36\nArchitecture: amd64\nMulti-Arch: same\nDescription: GNU C Library\n Long.\n";

    #[test]
    fn an_unpacked_package_has_its_state_and_its_configuration_files() {
        let stanza = Stanza::new(CONTROL);
        assert_eq!(
            (stanza.name().expect("has one"), stanza.qualified_name().expect("has one").as_str()),
            ("libc6", "libc6:amd64")
        );
        let text = stanza.unpacked(" /etc/ld.so.conf 0123\n").expect("is whole");
        assert!(text.starts_with("Package: libc6\nStatus: install ok unpacked\nVersion: 2.36\n"), "{text}");
        assert!(text.ends_with(" Long.\nConffiles:\n /etc/ld.so.conf 0123\n"), "{text}");
    }

    #[test]
    fn a_configuration_file_has_its_checksum() {
        let root = std::env::temp_dir().join(format!("skink-conffiles-{}", std::process::id()));
        fs::create_dir_all(root.join("etc")).expect("made");
        fs::write(root.join("etc/a b"), "").expect("written");
        let lines = conffiles("/etc/a b\nremove-on-upgrade /etc/old\n", &root).expect("is read");
        assert_eq!(lines, " /etc/a b d41d8cd98f00b204e9800998ecf8427e\n");
        fs::remove_dir_all(&root).expect("removed");
    }

    #[test]
    fn interests_in_paths_and_in_names_are_kept_apart() {
        let text = "# comment\ninterest-noawait /usr/share/man\ninterest ldconfig # why\nactivate-noawait other\n";
        let lines = interests(text, "p");
        assert_eq!(lines, "/usr/share/man p/noawait\nldconfig p\n");
        let files = triggers_files(&format!("{lines}ldconfig q\n"));
        assert_eq!(files["triggers/File"], "/usr/share/man p/noawait\n");
        assert_eq!(files["triggers/ldconfig"], "p\nq\n");
        assert_eq!(files.len(), 2);
    }
}
