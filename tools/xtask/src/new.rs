//! `./skink new`: writes the skeleton of a driver or a service, which builds, boots and has a test, and enters
//! it where it has to be known: the workspace's members and the default system, which also declares a driver's device.
//!
//! The skeletons are in templates/; NAME in them is replaced, and MAJOR by a major number that no device has.

use crate::cli::Kind;
use crate::programs::Packages;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// The manifest that lists the packages, and the system that runs them.
const MANIFEST: &str = "Cargo.toml";
const SYSTEM: &str = "systems/default.toml";

/// Major numbers for local and experimental use (devices.txt of Linux).
const MAJORS: std::ops::RangeInclusive<u32> = 60..=63;
/// Bytes of a service's name (`abi::Name`).
const NAME_BYTES: usize = 16;

/// The files of one kind.
struct Skeleton {
    /// The folder of the checkout that it goes into.
    folder: &'static str,
    /// Files in its own folder, and their text.
    files: &'static [(&'static str, &'static str)],
    /// Its entry in the system file.
    entry: &'static str,
}

const DRIVER: Skeleton = Skeleton {
    folder: "drivers",
    files: &[
        ("Cargo.toml", include_str!("../templates/driver/Cargo.toml")),
        ("src/main.rs", include_str!("../templates/driver/main.rs")),
        ("src/device.rs", include_str!("../templates/driver/device.rs")),
    ],
    entry: include_str!("../templates/driver/service.toml"),
};

const SERVICE: Skeleton = Skeleton {
    folder: "servers",
    files: &[
        ("Cargo.toml", include_str!("../templates/service/Cargo.toml")),
        ("src/main.rs", include_str!("../templates/service/main.rs")),
    ],
    entry: include_str!("../templates/service/service.toml"),
};

/// Writes the skeleton and prints the next commands.
///
/// # Errors
/// When the name is taken or no name of a service, or a file cannot be written.
pub fn new(workspace: &Workspace, kind: Kind, name: &str) -> Result<u8> {
    let skeleton = match kind {
        Kind::Driver => DRIVER,
        Kind::Service => SERVICE,
    };
    check_name(name)?;
    if Packages::read(workspace)?.all().iter().any(|package| package.name == name) {
        bail!("there is a package '{name}' already; choose another name");
    }
    let folder = format!("{}/{name}", skeleton.folder);
    if workspace.root.join(&folder).exists() {
        bail!("there is a folder {folder} already; choose another name or remove it");
    }
    let mut edits = Edits::new(&workspace.root);
    edits.change(MANIFEST, |manifest| with_member(manifest, skeleton.folder, &folder))?;
    edits.change(SYSTEM, |system| with_entry(system, &entry(&skeleton, name, system)))?;
    for (file, text) in skeleton.files {
        edits.make(&format!("{folder}/{file}"), text.replace("NAME", name));
    }
    edits.write()?;
    println!("Written: {}. Next:", edits.files());
    println!("  cargo test -p {name}");
    match kind {
        Kind::Driver => println!("  ./skink exec --fast 'cat /dev/{name}; cat /dev/{name}'"),
        Kind::Service => println!("  ./skink exec --fast 'service list'"),
    }
    Ok(0)
}

fn check_name(name: &str) -> Result<()> {
    let is_word = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if !is_word || name.len() > NAME_BYTES {
        bail!("'{name}' is no name: expected at most {NAME_BYTES} lower-case letters, digits and '_', a letter first");
    }
    Ok(())
}

/// The entry of the system file for the service `name`.
fn entry(skeleton: &Skeleton, name: &str, system: &str) -> String {
    skeleton.entry.replace("NAME", name).replace("MAJOR", &free_major(system).to_string())
}

/// The first major number for experiments that no device of the system file has; the last when all are taken, which the build refuses.
fn free_major(system: &str) -> u32 {
    MAJORS.into_iter().find(|major| !system.contains(&format!("major = {major},"))).unwrap_or(*MAJORS.end())
}

/// Files as they will be, written together when every change has succeeded.
struct Edits<'a> {
    root: &'a Path,
    made: Vec<(String, String)>,
}

impl<'a> Edits<'a> {
    fn new(root: &'a Path) -> Self {
        Self { root, made: Vec::new() }
    }

    fn text(&self, file: &str) -> Result<String> {
        match self.made.iter().find(|(made, _)| made == file) {
            Some((_, text)) => Ok(text.clone()),
            None => fs::read_to_string(self.root.join(file)).with_context(|| format!("cannot read {file}")),
        }
    }

    fn change(&mut self, file: &str, change: impl FnOnce(&str) -> Result<String>) -> Result<()> {
        let text = change(&self.text(file)?).with_context(|| format!("{file} is not as expected"))?;
        self.made.retain(|(made, _)| made != file);
        self.make(file, text);
        Ok(())
    }

    fn make(&mut self, file: &str, text: String) {
        self.made.push((file.to_string(), text));
    }

    fn files(&self) -> String {
        let names: Vec<&str> = self.made.iter().map(|(file, _)| file.as_str()).collect();
        names.join(", ")
    }

    fn write(&self) -> Result<()> {
        self.made.iter().try_for_each(|(file, text)| write(&self.root.join(file), text))
    }
}

/// The workspace's Cargo.toml with `member` behind the last member in `folder`.
fn with_member(manifest: &str, folder: &str, member: &str) -> Result<String> {
    let last = manifest.rfind(&format!("\"{folder}/")).with_context(|| format!("there is no member in {folder}"))?;
    let comma = manifest[last..].find(',').context("the members do not end with a comma")?;
    let (before, after) = manifest.split_at(last + comma + 1);
    Ok(format!("{before} \"{member}\",{after}"))
}

/// The system file with `entry` behind the last service.
fn with_entry(system: &str, entry: &str) -> Result<String> {
    let routes = system.find("\n[routes]\n").context("there is no [routes]")?;
    // The comment of [routes] stays with it.
    let end = system[..routes].rfind("\n\n").context("there are no services")? + 2;
    let (before, after) = system.split_at(end);
    Ok(format!("{before}{entry}{after}"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_member_comes_behind_its_neighbours() {
        let manifest = "members = [\n  \"drivers/ata\", \"drivers/rtc\",\n  \"user/io\",\n]\n";
        let expected = "members = [\n  \"drivers/ata\", \"drivers/rtc\", \"drivers/counter\",\n  \"user/io\",\n]\n";
        assert_eq!(with_member(manifest, "drivers", "drivers/counter").expect("has drivers"), expected);
    }

    #[test]
    fn the_entry_comes_before_the_routes_and_their_comment() {
        let system = "[[service]]\nname = \"vfs\"\n\n# Who does what.\n[routes]\nvfs = []\n";
        let expected =
            "[[service]]\nname = \"vfs\"\n\n[[service]]\nname = \"x\"\n\n# Who does what.\n[routes]\nvfs = []\n";
        assert_eq!(with_entry(system, "[[service]]\nname = \"x\"\n\n").expect("has routes"), expected);
    }

    #[test]
    fn names_are_those_of_services() {
        assert!(check_name("counter_2").is_ok());
        for wrong in ["", "2nd", "Counter", "my-driver", "a_name_of_17_byte", "../x"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_major_number_is_given_once() {
        let first = entry(&DRIVER, "first", "");
        assert!(first.contains("name = \"first\", kind = \"char\", major = 60,"), "{first}");
        assert!(entry(&DRIVER, "second", &first).contains("major = 61,"));
    }
}
