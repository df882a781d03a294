//! `./skink new`: writes the skeleton of a driver or a service, which builds, boots and has a test, and enters
//! it where it has to be known: the workspace's members and the default system, and for a device the nodes of
//! devfs and the drivers that vfs opens. What it enters comes behind the entry of a neighbour.
//!
//! The skeletons are in templates/; NAME in them is replaced.

use crate::cli::Kind;
use crate::programs::Packages;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// What lists the packages, and the system that runs them.
const MANIFEST: &str = "Cargo.toml";
const SYSTEM: &str = "systems/default.toml";
/// The nodes of /dev, and the last of them.
const NODES: &str = "fs/devfs/src/nodes.rs";
const LAST_NODE: &str = "    (\"shm\", Folder),\n";
/// What vfs opens a device's driver by: the entry of another driver, in the folder that has it.
const VFS: &str = "servers/vfs/src";
const OTHER_DRIVER: &str = "            (10, MINOR_RTC) => (\"rtc\", Role::Driver),\n";

/// Major numbers for local and experimental use (devices.txt of Linux).
const MAJORS: std::ops::RangeInclusive<u32> = 60..=63;
/// Bytes of a service's name (`abi::Name`).
const NAME_BYTES: usize = 16;

/// What is written of one kind.
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

/// Writes the skeleton and says what to do with it.
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
    edits.change(SYSTEM, |system| with_entry(system, &skeleton.entry.replace("NAME", name)))?;
    if matches!(kind, Kind::Driver) {
        enter_device(&mut edits, name)?;
    }
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
        bail!("'{name}' is no name: expected at most {NAME_BYTES} small letters, digits and '_', a letter first");
    }
    Ok(())
}

/// Enters the character device /dev/`name`, which the service of that name drives.
fn enter_device(edits: &mut Edits, name: &str) -> Result<()> {
    let major = free_major(&edits.text(NODES)?);
    edits.change(SYSTEM, |system| with_destination(system, "vfs", name))?;
    let node = format!("    (\"{name}\", Character({major}, 0, 0o666)),\n");
    edits.change(NODES, |nodes| behind(nodes, LAST_NODE, &node))?;
    let open = edits.file_with(VFS, OTHER_DRIVER)?;
    let driver = format!("            ({major}, _) => (\"{name}\", Role::Driver),\n");
    edits.change(&open, |open| behind(open, OTHER_DRIVER, &driver))
}

/// The first major number for experiments that no node has; the last when all are taken.
fn free_major(nodes: &str) -> u32 {
    MAJORS.into_iter().find(|major| !nodes.contains(&format!("({major}, "))).unwrap_or(*MAJORS.end())
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

    /// The file below `folder` that holds `text`.
    fn file_with(&self, folder: &str, text: &str) -> Result<String> {
        let mut folders = vec![self.root.join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if fs::read_to_string(&path).is_ok_and(|content| content.contains(text)) {
                    return Ok(path.strip_prefix(self.root).unwrap_or(&path).display().to_string());
                }
            }
        }
        bail!("no file in {folder} holds '{}'", text.trim())
    }

    fn files(&self) -> String {
        let names: Vec<&str> = self.made.iter().map(|(file, _)| file.as_str()).collect();
        names.join(", ")
    }

    fn write(&self) -> Result<()> {
        self.made.iter().try_for_each(|(file, text)| write(&self.root.join(file), text))
    }
}

/// `text` with `line` behind the line `other`.
fn behind(text: &str, other: &str, line: &str) -> Result<String> {
    let at = text.find(other).with_context(|| format!("there is no '{}'", other.trim()))? + other.len();
    Ok(format!("{}{line}{}", &text[..at], &text[at..]))
}

/// The system file with `destination` among those of `service`.
fn with_destination(system: &str, service: &str, destination: &str) -> Result<String> {
    let list = "\ndestinations = [";
    let begin = system.find(&format!("\nname = \"{service}\"\n")).with_context(|| format!("there is no {service}"))?;
    let list =
        system[begin..].find(list).with_context(|| format!("{service} has no destinations"))? + begin + list.len();
    let end = system[list..].find(']').context("the destinations do not end")? + list;
    Ok(format!("{}, \"{destination}\"{}", &system[..end], &system[end..]))
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
        assert_eq!(free_major(""), 60);
        assert_eq!(free_major("(\"counter\", Character(60, 0, 0o666)),"), 61);
    }

    #[test]
    fn a_destination_is_added_to_one_service() {
        let system =
            "[[service]]\nname = \"a\"\ndestinations = [\"x\"]\n\n[[service]]\nname = \"b\"\ndestinations = [\"x\"]\n";
        let added = with_destination(system, "b", "y").expect("has b");
        assert!(added.ends_with("name = \"b\"\ndestinations = [\"x\", \"y\"]\n"), "{added}");
        assert!(added.starts_with("[[service]]\nname = \"a\"\ndestinations = [\"x\"]\n"), "{added}");
    }

    #[test]
    fn the_tree_has_what_a_device_is_entered_behind() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut edits = Edits::new(&root);
        enter_device(&mut edits, "counter").expect("can be entered");
        let nodes = edits.text(NODES).expect("is there");
        assert!(nodes.contains("(\"shm\", Folder),\n    (\"counter\", Character(60, 0, 0o666)),\n"), "{nodes}");
        assert_eq!(edits.made.len(), 3);
    }
}
