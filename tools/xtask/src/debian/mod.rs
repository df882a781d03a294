//! Debian packages for the guest's root: `--package NAME,...`.
//!
//! [`Set::get`] resolves the names with all that they depend on, downloads the packages and unpacks each one, once,
//! into a folder of the cache (`build/debian`). `rootfs` links these folders into its staging folder and writes dpkg's
//! database beside them.
//!
//! `apt` resolves and downloads, with a state of its own; `unpack` makes a folder of a package; `database` writes
//! dpkg's database; `accounts` adds users and groups; `special` sets in the image what only root may set in a folder.

mod accounts;
mod apt;
mod database;
mod nearest;
mod special;
mod unpack;

use crate::process;
use crate::progress::Step;
use anyhow::{Context, Result, bail};
use apt::{Apt, Package};
use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use unpack::Unpacked;

/// The folders of / that are links into /usr, as in Debian 12.
pub const MERGED: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// The package whose presence in the names brings in all that maintainer scripts may use without declaring it.
const DPKG: &str = "dpkg";

/// The shell of scripts, which comes with all packages: busybox's prefers its own applets to programs in `PATH`.
const SHELL: &str = "dash";

/// Splits the value of `--package`.
///
/// # Errors
/// When a name is not one by Debian's rules.
pub fn names(value: &str) -> Result<Vec<String>> {
    value.split(',').map(|name| checked(name).map(str::to_string)).collect()
}

/// `name`, if it is a package's. apt would read more into other words: `NAME=VERSION`, `NAME-`, patterns.
fn checked(name: &str) -> Result<&str> {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_other = |byte: u8| is_first(byte) || b"+-.".contains(&byte);
    let bytes = name.as_bytes();
    if bytes.len() < 2 || !is_first(bytes[0]) || !bytes.iter().all(|byte| is_other(*byte)) || name.ends_with('-') {
        bail!("--package: '{name}' is no name of a package; expected names with commas between, for example hello,bc");
    }
    Ok(name)
}

/// Packages that are unpacked in the cache, in the order in which dpkg would unpack them.
pub struct Set {
    packages: Vec<Unpacked>,
}

impl Set {
    /// The packages `names` with all that they depend on, or None when there are no names. What the cache in the build folder lacks is
    /// downloaded.
    ///
    /// # Errors
    /// When a name is unknown, packages conflict, a source of packages is not Debian's, or there is no network or space.
    pub fn get(build: &Path, names: &[String]) -> Result<Option<Self>> {
        if names.is_empty() {
            return Ok(None);
        }
        let step = Step::begin("packages");
        let cache = build.join("debian");
        let apt = Apt::open(&cache.join("apt"))?;
        let index = apt.refresh(&step)?;
        let requests = requests(&sorted(names));
        let stored = Stored::new(&cache, &requests, &index);
        if let Some(set) = stored.read().and_then(|files| Self::in_cache(&cache, &files)) {
            return Ok(Some(set));
        }
        let packages = fetch(&apt, &requests, &step)?;
        let set = Self::unpack(&cache, &apt, &packages, &step)?;
        set.check_files()?;
        // The index may be newer than it was: packages that are gone from the mirror make apt fetch it again.
        Stored::new(&cache, &requests, &apt.index_date()?).write(&packages)?;
        Ok(Some(set))
    }

    /// The set of the package files `files`, unless one of them is not unpacked.
    fn in_cache(cache: &Path, files: &[String]) -> Option<Self> {
        let packages = files.iter().map(|file| Unpacked::open(&unpacked_folder(cache, file))).collect::<Option<_>>()?;
        Some(Self { packages })
    }

    fn unpack(cache: &Path, apt: &Apt, packages: &[Package], step: &Step) -> Result<Self> {
        fs::create_dir_all(cache.join(UNPACKED)).with_context(|| format!("cannot make {}", cache.display()))?;
        let mut unpacked = Vec::new();
        for (index, package) in packages.iter().enumerate() {
            step.detail(&format!("unpacking package {} of {}: {}", index + 1, packages.len(), package.name));
            let file = package.file();
            let folder = unpacked_folder(cache, &file);
            let entry = match Unpacked::open(&folder) {
                Some(entry) => entry,
                None => unpack::unpack(&apt.archive(&file), &folder)?,
            };
            unpacked.push(entry);
        }
        Ok(Self { packages: unpacked })
    }

    /// Refuses two packages with the same file: dpkg would, unless one diverts or replaces the other's, which scripts tell that have
    /// not run.
    fn check_files(&self) -> Result<()> {
        let mut owners: HashMap<PathBuf, &str> = HashMap::new();
        for package in &self.packages {
            for path in package.files()? {
                match owners.entry(path) {
                    Entry::Vacant(entry) => _ = entry.insert(&package.name),
                    Entry::Occupied(entry) => bail!(
                        "the packages {} and {} both have the file /{}; leave one of them out",
                        entry.get(),
                        package.name,
                        entry.key().display()
                    ),
                }
            }
        }
        Ok(())
    }

    /// The folders that the packages are unpacked in.
    pub fn roots(&self) -> impl Iterator<Item = PathBuf> {
        self.packages.iter().map(Unpacked::root)
    }

    /// Links the packages' files into `staging`, whose folders in [`MERGED`] are links already. They take the place of files there.
    ///
    /// # Errors
    /// When a link cannot be made.
    pub fn link_into(&self, staging: &Path) -> Result<()> {
        let mut cp = Command::new("cp");
        cp.args(["--archive", "--link", "--remove-destination"]);
        cp.args(self.packages.iter().map(|package| package.root().join(".")));
        process::run(cp.arg(staging)).context("cannot link the packages' files")
    }

    /// Completes our own files, which are below `root`: dpkg's database, but for the files that each package has in var/lib/dpkg/info, and
    /// users and groups.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn complete(&self, root: &Path) -> Result<()> {
        database::write(&self.packages, &root.join("var/lib/dpkg"))?;
        accounts::add(&self.packages, root)
    }

    /// Sets owners, modes and device nodes in the ext2 image `image` that was made of the folder `staging`. What is made has the time
    /// `time`, in seconds since 1970.
    ///
    /// # Errors
    /// When debugfs fails.
    pub fn apply_special(&self, staging: &Path, image: &Path, time: u64) -> Result<()> {
        special::apply(&self.packages, staging, image, time)
    }
}

/// The folder of the cache with the unpacked packages.
const UNPACKED: &str = "unpacked";

fn unpacked_folder(cache: &Path, file: &str) -> PathBuf {
    cache.join(UNPACKED).join(file)
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    names
}

/// What apt is asked for. With dpkg come the essential packages, as on every Debian; apt, which it counts among them, only if named.
/// usr-is-merged says that /bin is a link; without it the package that would make it one comes, with perl.
fn requests(names: &[String]) -> Vec<String> {
    let mut requests = names.to_vec();
    requests.push(SHELL.to_string());
    if names.iter().any(|name| name == DPKG) {
        requests.extend(["?and(?essential,?not(?name(^apt$)))", "usr-is-merged"].map(str::to_string));
    }
    requests
}

/// Downloads the packages of `requests` that the cache lacks. A package that is not to be had is often a newer one meanwhile: the
/// index is then fetched again.
fn fetch(apt: &Apt, requests: &[String], step: &Step) -> Result<Vec<Package>> {
    let packages = apt.resolve(requests)?;
    if download(apt, requests, &packages, step).is_ok() {
        return Ok(packages);
    }
    apt.update(step)?;
    let packages = apt.resolve(requests)?;
    download(apt, requests, &packages, step)?;
    Ok(packages)
}

fn download(apt: &Apt, requests: &[String], packages: &[Package], step: &Step) -> Result<()> {
    match packages.iter().filter(|package| !apt.archive(&package.file()).exists()).count() {
        0 => Ok(()),
        lacking => apt.download(requests, lacking, step),
    }
}

/// The file that keeps the result of resolving some requests with one index.
struct Stored {
    path: PathBuf,
    heading: String,
}

impl Stored {
    fn new(cache: &Path, requests: &[String], index: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        requests.hash(&mut hasher);
        let path = cache.join("sets").join(format!("{:016x}", hasher.finish()));
        // Requests with the same hash, and another index, are told apart by this line.
        Self { path, heading: format!("{} {index}", requests.join(",")) }
    }

    /// The files of the packages, if they were stored for these requests and this index.
    fn read(&self) -> Option<Vec<String>> {
        let text = fs::read_to_string(&self.path).ok()?;
        let (heading, files) = text.split_once('\n')?;
        (heading == self.heading).then(|| files.lines().map(str::to_string).collect())
    }

    fn write(&self, packages: &[Package]) -> Result<()> {
        let files: Vec<String> = packages.iter().map(Package::file).collect();
        let text = format!("{}\n{}\n", self.heading, files.join("\n"));
        fs::create_dir_all(self.path.parent().context("the path has a folder")?)?;
        process::replace(&self.path, |path| Ok(fs::write(path, &text)?)).context("cannot store the list of packages")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    #[test]
    fn names_stand_between_commas() {
        assert_eq!(names("hello,g++,lua5.4").expect("are names"), ["hello", "g++", "lua5.4"]);
    }

    #[test]
    fn what_apt_would_read_more_into_is_refused() {
        for word in ["", "a", "hello,,bc", "bc=1.07", "bc/stable", "bc-", "Hello", "?essential", "-y", "bc:i386", "b c"]
        {
            let refusal = names(word).expect_err("was accepted").to_string();
            assert!(refusal.contains("is no name of a package"), "{refusal}");
        }
    }

    #[test]
    fn dpkg_brings_the_essential_packages_and_others_do_not() {
        assert_eq!(requests(&strings(&["bc", "python3"])), ["bc", "python3", SHELL]);
        assert!(requests(&strings(&["bc", "dpkg"])).iter().any(|request| request.contains("?essential")));
    }

    #[test]
    fn a_stored_set_is_for_its_names_and_its_index_only() {
        let cache = std::env::temp_dir().join(format!("skink-sets-{}", std::process::id()));
        let package = apt::parse_package("Inst bc (1:1.07+b1 Debian:12/stable [amd64])").expect("is a line of apt");
        Stored::new(&cache, &strings(&["bc"]), "1").write(&[package]).expect("is written");
        let read = |names: &[&str], index| Stored::new(&cache, &strings(names), index).read();
        assert_eq!(read(&["bc"], "1"), Some(strings(&["bc_1%3a1.07+b1_amd64.deb"])));
        assert_eq!((read(&["bc"], "2"), read(&["dc"], "1")), (None, None));
        fs::remove_dir_all(&cache).expect("removed");
    }
}
