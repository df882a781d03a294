//! Unpacks one package into a folder of the cache: its files as the host's user may have them, what only root may set as a list
//! (`special`), and its part of dpkg's database.
//!
//! dpkg-deb opens the package; tar's stream is read here, because owners, modes and device nodes are needed as they are in it.
//! Nothing of the package is run.

use super::MERGED;
use super::database::{self, Stanza};
use super::special::{Device, Special};
use crate::process;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tar::{Archive, Entry, EntryType, Header};

/// The parts of a package's folder in the cache.
const ROOT: &str = "root";
const STATUS: &str = "status";
const TRIGGERS: &str = "triggers";
const SPECIAL: &str = "special";
/// Where the files of `DEBIAN/` lie while the package is being unpacked.
const CONTROL: &str = "control";

/// Mode bits without which the host's user could not read a file, or fill a folder.
const FILE_BITS: u32 = 0o400;
const FOLDER_BITS: u32 = 0o700;

/// A package in the cache.
pub struct Unpacked {
    /// Its name.
    pub name: String,
    /// Its stanza of var/lib/dpkg/status.
    pub status: String,
    /// The triggers in which it is interested, a line of [`database::interests`] each.
    pub triggers: String,
    /// What the files below `root` are not.
    pub special: Vec<Special>,
    folder: PathBuf,
}

impl Unpacked {
    /// The package in the folder `folder`, if there is one.
    pub fn open(folder: &Path) -> Option<Self> {
        let read = |part: &str| fs::read_to_string(folder.join(part)).ok();
        let status = read(STATUS)?;
        let special = serde_json::from_str(&read(SPECIAL)?).ok()?;
        let name = Stanza::new(&status).name().ok()?.to_string();
        Some(Self { name, status, triggers: read(TRIGGERS)?, special, folder: folder.to_path_buf() })
    }

    /// Its files.
    pub fn root(&self) -> PathBuf {
        self.folder.join(ROOT)
    }

    /// The paths of everything below its root that is no folder.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let root = self.root();
        let mut files = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
                let entry = entry?;
                match entry.file_type()?.is_dir() {
                    true => folders.push(entry.path()),
                    false => files.push(entry.path().strip_prefix(&root)?.to_path_buf()),
                }
            }
        }
        Ok(files)
    }
}

/// Unpacks the package file `deb` to the folder `to`, which exists only when all of it is there.
///
/// # Errors
/// When the package is not whole, or a file cannot be written.
pub fn unpack(deb: &Path, to: &Path) -> Result<Unpacked> {
    process::replace(to, |folder| {
        // Left by an interrupted start, or by another version of this program.
        for left in [folder, to].into_iter().filter(|left| left.exists()) {
            fs::remove_dir_all(left)?;
        }
        let root = folder.join(ROOT);
        fs::create_dir_all(&root)?;
        let contents = unpack_files(deb, &root)?;
        fs::write(folder.join(SPECIAL), serde_json::to_string(&contents.special)?)?;
        let control = folder.join(CONTROL);
        process::run(Command::new("dpkg-deb").arg("--control").arg(deb).arg(&control))?;
        let description = database::describe(&control, &root, &contents.list)?;
        fs::write(folder.join(STATUS), description.status)?;
        fs::write(folder.join(TRIGGERS), description.triggers)?;
        fs::remove_dir_all(&control).context("cannot remove the control files")
    })
    .with_context(|| format!("cannot unpack {}", deb.display()))?;
    Unpacked::open(to).with_context(|| format!("{} is not whole; remove it", to.display()))
}

/// What a package's tar stream has besides the files.
struct Contents {
    /// The paths as dpkg lists them: not merged, `/.` for the root.
    list: String,
    special: Vec<Special>,
}

fn unpack_files(deb: &Path, root: &Path) -> Result<Contents> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--fsys-tarfile").arg(deb).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start dpkg-deb, of Debian's package dpkg")?;
    let mut stream = child.stdout.take().context("dpkg-deb has no output")?;
    let contents = read_tar(&mut stream, root);
    if contents.is_ok() {
        // dpkg-deb fails when nobody reads the padding after the end of the archive.
        io::copy(&mut stream, &mut io::sink()).context("cannot read dpkg-deb's output")?;
    }
    drop(stream);
    let output = child.wait_with_output().context("cannot wait for dpkg-deb")?;
    // When writing failed here, dpkg-deb has failed because of that.
    let contents = contents?;
    if !output.status.success() {
        bail!("dpkg-deb failed: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(contents)
}

fn read_tar(stream: impl Read, root: &Path) -> Result<Contents> {
    let mut archive = Archive::new(stream);
    archive.set_preserve_permissions(true);
    let (mut list, mut special, mut folders) = (String::new(), Vec::new(), Vec::new());
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = relative(&entry.path()?)?;
        list.push_str(&listed(&path)?);
        let merged = merge(&path);
        let to = root.join(&merged);
        let header = entry.header().clone();
        special.extend(special_of(&merged, &header)?);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        match header.entry_type() {
            EntryType::Directory => {
                fs::create_dir_all(&to)?;
                folders.push((to, header.mode()?, header.mtime()?));
            }
            _ => write(&mut entry, root, &to).with_context(|| format!("cannot write {}", to.display()))?,
        }
    }
    settle_folders(&folders)?;
    Ok(Contents { list, special })
}

/// Writes `entry`, which is no folder, to the path `to` below `root`. A device node is left to `special`.
fn write(entry: &mut Entry<impl Read>, root: &Path, to: &Path) -> Result<()> {
    let (kind, mode) = (entry.header().entry_type(), entry.header().mode()?);
    match kind {
        EntryType::Char | EntryType::Block => {}
        EntryType::Link => {
            let target = relative(&entry.link_name()?.context("a hard link has no target")?)?;
            fs::hard_link(root.join(merge(&target)), to)?;
        }
        EntryType::Regular | EntryType::Symlink | EntryType::Fifo => {
            entry.unpack(to)?;
            if kind == EntryType::Regular && mode & FILE_BITS != FILE_BITS {
                fs::set_permissions(to, Permissions::from_mode(mode | FILE_BITS))?;
            }
        }
        other => bail!("the package has an entry of the unknown kind {other:?}"),
    }
    Ok(())
}

/// Gives folders their modes and times, after their files have been written.
fn settle_folders(folders: &[(PathBuf, u32, u64)]) -> Result<()> {
    for (path, mode, modified) in folders.iter().rev() {
        fs::set_permissions(path, Permissions::from_mode(mode | FOLDER_BITS))?;
        let modified: SystemTime = UNIX_EPOCH + Duration::from_secs(*modified);
        File::open(path)?.set_times(FileTimes::new().set_modified(modified))?;
    }
    Ok(())
}

/// What the host's user cannot set for the entry at `path`: another owner than root, a mode that keeps its owner out, a device.
fn special_of(path: &Path, header: &Header) -> Result<Option<Special>> {
    let kind = header.entry_type();
    let (mode, uid, gid) = (header.mode()?, u32::try_from(header.uid()?)?, u32::try_from(header.gid()?)?);
    let device = match kind {
        EntryType::Char | EntryType::Block => Some(Device {
            is_block: kind == EntryType::Block,
            major: header.device_major()?.unwrap_or(0),
            minor: header.device_minor()?.unwrap_or(0),
        }),
        _ => None,
    };
    let kept = match kind {
        EntryType::Directory => mode & FOLDER_BITS == FOLDER_BITS,
        EntryType::Regular => mode & FILE_BITS == FILE_BITS,
        _ => true,
    };
    if kept && device.is_none() && (uid, gid) == (0, 0) || kind == EntryType::Link {
        return Ok(None);
    }
    let path = path.to_str().with_context(|| format!("the name {} is not UTF-8", path.display()))?.to_string();
    Ok(Some(Special { path, mode, uid, gid, device }))
}

/// `path` below the root, without `.` and `/`.
fn relative(path: &Path) -> Result<PathBuf> {
    let parts = path.components().filter(|part| !matches!(part, Component::CurDir | Component::RootDir));
    let path: PathBuf = parts.collect();
    match path.components().all(|part| matches!(part, Component::Normal(_))) {
        true => Ok(path),
        false => bail!("the path {} leaves the package", path.display()),
    }
}

/// The line of dpkg's list for `path`.
fn listed(path: &Path) -> Result<String> {
    let path = path.to_str().with_context(|| format!("the name {} is not UTF-8", path.display()))?;
    Ok(if path.is_empty() { "/.\n".to_string() } else { format!("/{path}\n") })
}

/// Where `path` lies in a root with merged /usr.
fn merge(path: &Path) -> PathBuf {
    let first: OsString = path.components().next().map(|part| part.as_os_str().to_os_string()).unwrap_or_default();
    match MERGED.iter().any(|name| first == *name) {
        true => Path::new("usr").join(path),
        false => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tar::Builder;

    fn entry(tar: &mut Builder<Vec<u8>>, path: &str, kind: EntryType, mode: u32, owner: (u64, u64), data: &[u8]) {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(owner.0);
        header.set_gid(owner.1);
        header.set_mtime(1000);
        header.set_size(0);
        match kind {
            EntryType::Link | EntryType::Symlink => {
                header.set_link_name(std::str::from_utf8(data).expect("is text")).expect("is short");
            }
            EntryType::Char => {
                header.set_device_major(1).and_then(|()| header.set_device_minor(3)).expect("has devices")
            }
            _ => header.set_size(data.len() as u64),
        }
        let data = if kind == EntryType::Regular { data } else { &[] };
        tar.append_data(&mut header, path, data).expect("is appended");
    }

    fn example() -> Vec<u8> {
        let mut tar = Builder::new(Vec::new());
        entry(&mut tar, "./bin/", EntryType::Directory, 0o755, (0, 0), b"");
        entry(&mut tar, "./bin/su", EntryType::Regular, 0o4755, (0, 0), b"su");
        entry(&mut tar, "./usr/bin/chage", EntryType::Regular, 0o2755, (0, 42), b"chage");
        entry(&mut tar, "./usr/bin/too", EntryType::Link, 0o4755, (0, 0), b"./bin/su");
        entry(&mut tar, "./usr/bin/so", EntryType::Symlink, 0o777, (0, 0), b"su");
        entry(&mut tar, "./etc/secret", EntryType::Regular, 0o000, (0, 0), b"x");
        entry(&mut tar, "./dev/null", EntryType::Char, 0o666, (0, 0), b"");
        tar.into_inner().expect("is whole")
    }

    #[test]
    fn files_are_merged_and_what_only_root_may_set_is_listed() {
        let root = std::env::temp_dir().join(format!("skink-unpack-{}", std::process::id()));
        let contents = read_tar(example().as_slice(), &root).expect("is unpacked");
        let mode = |path: &str| fs::metadata(root.join(path)).expect("is there").permissions().mode();
        assert_eq!((mode("usr/bin/su") & 0o7777, mode("etc/secret") & 0o7777), (0o4755, 0o400));
        assert_eq!(fs::read(root.join("usr/bin/too")).expect("is a link"), b"su");
        assert_eq!(fs::read_link(root.join("usr/bin/so")).expect("is a link"), Path::new("su"));
        assert!(contents.list.starts_with("/bin\n/bin/su\n/usr/bin/chage\n"), "{}", contents.list);
        let special: Vec<_> = contents.special.iter().map(|one| (one.path.as_str(), one.mode, one.gid)).collect();
        assert_eq!(special, [("usr/bin/chage", 0o2755, 42), ("etc/secret", 0, 0), ("dev/null", 0o666, 0)]);
        assert_eq!(contents.special[2].device, Some(Device { is_block: false, major: 1, minor: 3 }));
        fs::remove_dir_all(&root).expect("removed");
    }

    #[test]
    fn a_path_that_leaves_the_package_is_refused() {
        assert!(relative(Path::new("./usr/../../etc/passwd")).is_err());
        assert_eq!(relative(Path::new("./usr/bin/")).expect("stays"), Path::new("usr/bin"));
    }
}
