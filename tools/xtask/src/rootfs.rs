//! Makes the root file system: an ext2 image of our own files, busybox, Debian packages, our commands and overlays.
//!
//! A root with packages has merged /usr, as Debian 12. What comes later takes the place of what was there: busybox's links, then the
//! packages, then our own files and commands with init, then overlays.
//!
//! The same input gives the same bytes, so that runs under `--icount` repeat: identifiers are fixed,
//! files that are not an overlay's or a package's have [`EPOCH`] as their time, and `ext2_times` does the rest. Device nodes are not in
//! it: devfs is mounted on /dev, procfs on /proc.

use crate::debian::{MERGED, Set};
use crate::ext2_times::{self, Owner};
use crate::process;
use crate::shell;
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// 2026-01-01 00:00:00 UTC, in seconds since 1970: the time of every file that is made here, and
/// the machine's clock at its start under `--icount`.
pub const EPOCH: u64 = 1_767_225_600;

/// The shell and tools of the guest, as the host has them.
pub const BUSYBOX: &str = "/usr/bin/busybox";
const BUSYBOX_IN_GUEST: &str = "/bin/busybox";
const BLOCK_SIZE: u64 = 4096;
const UUID: &str = "736b696e-6b00-4000-8000-000000000001";
const MIB: u64 = 1 << 20;
const INODE_SIZE: u64 = 256;
const MIN_INODES: u64 = 4096;
/// Size of the journal of an image that has one: the least for its blocks.
const JOURNAL_MIB: u64 = 4;

/// The folders that are empty in the image.
const EMPTY_FOLDERS: [&str; 13] =
    ["bin", "sbin", "usr/bin", "usr/sbin", "dev", "proc", "sys", "mnt", "out", "root", "run", "tmp", "var/log"];

/// What goes into a root file system.
pub struct Contents<'a> {
    /// Our own files, from systems/root.
    pub base: PathBuf,
    /// Our programs: name in /bin, file here.
    pub programs: Vec<(String, PathBuf)>,
    /// Debian packages.
    pub packages: Option<&'a Set>,
    /// Whether it has a journal.
    pub has_journal: bool,
    /// Folders laid over the rest, in order.
    pub overlays: &'a [PathBuf],
    /// A command for /etc/rc to run in place of a shell.
    pub command: Option<&'a str>,
    /// Free space in MiB, beyond the usual.
    pub free_mib: u64,
    /// Files that can be made, beyond the usual.
    pub free_inodes: u64,
}

/// Space that the image offers beyond its contents.
#[derive(Clone, Copy)]
pub enum Room {
    /// For a disk: a sparse file, so it costs nothing here.
    Disk,
    /// For a ramdisk, which the guest pays for in memory.
    Memory,
    /// So many bytes in all.
    Exactly(u64),
}

/// Writes an ext2 image of `contents` to `image`, using the folder `work` for staging.
///
/// # Errors
/// When an overlay is missing, busybox is not usable or mke2fs fails.
pub fn make(contents: &Contents, room: Room, work: &Path, image: &Path) -> Result<()> {
    let staging = work.join("root");
    stage(contents, work, &staging)?;
    let mut used = Use::of_folder(&staging)?;
    used.bytes += contents.free_mib * MIB;
    let journal = if contents.has_journal { Journal::Yes } else { Journal::No };
    if contents.has_journal {
        used.bytes += JOURNAL_MIB * MIB;
    }
    used.inodes += contents.free_inodes;
    let size = Size::of_image(used, room);
    make_ext2(Some(&staging), size, journal, image)?;
    if let Some(packages) = contents.packages {
        packages.apply_special(&staging, image, EPOCH)?;
    }
    ext2_times::settle(image, Owner::of(&staging)?)?;
    fs::remove_dir_all(&staging).context("cannot remove the staging folder")
}

/// Writes an empty ext2 image of `size_mib` to `image`.
///
/// # Errors
/// When mke2fs fails.
pub fn make_empty(size_mib: u64, image: &Path) -> Result<()> {
    make_ext2(None, Size::of_image(Use::default(), Room::Exactly(size_mib * MIB)), Journal::No, image)?;
    ext2_times::settle(image, Owner::ROOT)
}

fn stage(contents: &Contents, work: &Path, staging: &Path) -> Result<()> {
    fs::create_dir_all(staging)?;
    if contents.packages.is_some() {
        merge_usr(staging)?;
    }
    for folder in EMPTY_FOLDERS {
        fs::create_dir_all(staging.join(folder))?;
    }
    set_mode(&staging.join("tmp"), 0o1777)?;
    set_mode(&staging.join("root"), 0o700)?;
    install_busybox(staging)?;
    match contents.packages {
        None => {
            stage_own(contents, staging)?;
            set_times(staging)?;
        }
        Some(packages) => stage_packages(contents, packages, &work.join("own"), staging)?,
    }
    for overlay in contents.overlays {
        copy_tree(overlay, staging, "--preserve=all")?;
    }
    Ok(())
}

/// Stages the packages, and over them our own files, which are completed in the folder `own`. The packages' files are links to the cache:
/// nothing may write to them or change their times.
fn stage_packages(contents: &Contents, packages: &Set, own: &Path, staging: &Path) -> Result<()> {
    set_times(staging)?;
    packages.link_into(staging)?;
    stage_own(contents, own)?;
    keep_init(own)?;
    packages.complete(own)?;
    shell::prefer_packages(own, &replaced_applets(staging)?)?;
    set_times(own)?;
    copy_tree(own, staging, "--preserve=all")?;
    fs::remove_dir_all(own).context("cannot remove the staging folder of our own files")
}

/// Makes /bin and the others links into /usr.
fn merge_usr(staging: &Path) -> Result<()> {
    for name in MERGED {
        let target = Path::new("usr").join(name);
        fs::create_dir_all(staging.join(&target))?;
        symlink(&target, staging.join(name)).with_context(|| format!("cannot link /{name}"))?;
    }
    Ok(())
}

/// Stages our own files, our commands and the command for /etc/rc.
fn stage_own(contents: &Contents, staging: &Path) -> Result<()> {
    fs::create_dir_all(staging.join("bin"))?;
    copy_tree(&contents.base, staging, "--preserve=mode,links")?;
    for (name, file) in &contents.programs {
        install(file, &staging.join("bin").join(name))?;
    }
    if let Some(command) = contents.command {
        fs::write(staging.join("etc/skink-exec"), command)?;
    }
    Ok(())
}

/// The first process is busybox's init, whatever packages bring: it reads our inittab.
fn keep_init(own: &Path) -> Result<()> {
    fs::create_dir_all(own.join("sbin"))?;
    symlink(BUSYBOX_IN_GUEST, own.join("sbin/init")).context("cannot link init")?;
    install(Path::new(BUSYBOX), &own.join("bin/busybox"))
}

/// Gives everything that is staged so far the epoch as its time.
fn set_times(staging: &Path) -> Result<()> {
    let time = format!("@{EPOCH}");
    let mut find = Command::new("find");
    find.arg(staging).args(["-depth", "-exec", "touch", "--no-dereference", "--date", &time, "{}", "+"]);
    process::run(&mut find)
}

/// Puts Debian's busybox into /bin, and a link to it wherever it says an applet belongs.
fn install_busybox(staging: &Path) -> Result<()> {
    install(Path::new(BUSYBOX), &staging.join("bin/busybox"))?;
    for applet in applets()? {
        let link = staging.join(&applet);
        if let Some(folder) = link.parent() {
            fs::create_dir_all(folder)?;
        }
        symlink(BUSYBOX_IN_GUEST, &link).with_context(|| format!("cannot link the applet {applet}"))?;
    }
    Ok(())
}

/// The paths at which busybox says its applets belong.
fn applets() -> Result<Vec<String>> {
    let list = process::output(Command::new(BUSYBOX).arg("--list-full"))?;
    let list = String::from_utf8(list).context("busybox --list-full printed something that is not text")?;
    Ok(list.lines().filter(|applet| *applet != "bin/busybox").map(str::to_string).collect())
}

/// The paths of applets at which a package has a program.
fn replaced_applets(staging: &Path) -> Result<Vec<String>> {
    let is_own =
        |applet: &String| fs::read_link(staging.join(applet)).is_ok_and(|target| target == Path::new(BUSYBOX_IN_GUEST));
    Ok(applets()?.into_iter().filter(|applet| !is_own(applet)).collect())
}

/// Copies a program. It takes the place of a link of that name, and does not end up where the link points: the links of busybox are
/// absolute, and lead to the host's own.
fn install(from: &Path, to: &Path) -> Result<()> {
    if to.is_symlink() {
        fs::remove_file(to).with_context(|| format!("cannot replace {}", to.display()))?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    set_mode(to, 0o755)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}

/// Copies everything in `folder` over `staging`, keeping what the option of cp says. A file takes the
/// place of a link of that name, and does not end up where the link points. Folders of [`MERGED`] end up in /usr where it is merged.
///
/// Of overlays everything is kept; of our own files not the times, which are those of the checkout.
fn copy_tree(folder: &Path, staging: &Path, preserve: &str) -> Result<()> {
    if !folder.is_dir() {
        bail!("there is no folder {}", folder.display());
    }
    if !MERGED.iter().any(|name| staging.join(name).is_symlink()) {
        return copy(folder, staging, preserve);
    }
    for entry in fs::read_dir(folder)? {
        let (name, from) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        let to = staging.join(&name);
        let is_merged = to.is_symlink() && !from.is_symlink() && from.is_dir();
        copy(&from, &if is_merged { staging.join("usr").join(&name) } else { to }, preserve)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, preserve: &str) -> Result<()> {
    let mut cp = Command::new("cp");
    cp.args(["--recursive", "--no-dereference", "--remove-destination", preserve, "-T"]);
    process::run(cp.arg(from).arg(to))
}

/// What files take on a disk.
#[derive(Clone, Copy, Default)]
struct Use {
    /// Bytes, in whole blocks.
    bytes: u64,
    /// Files, folders and links.
    inodes: u64,
}

impl Use {
    fn of_folder(folder: &Path) -> Result<Self> {
        let mut sum = Self { bytes: BLOCK_SIZE, inodes: 1 };
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let used = match entry.file_type()? {
                kind if kind.is_dir() => Self::of_folder(&entry.path())?,
                kind if kind.is_file() => {
                    Self { bytes: entry.metadata()?.len().next_multiple_of(BLOCK_SIZE), inodes: 1 }
                }
                _ => Self { bytes: 0, inodes: 1 },
            };
            sum = Self { bytes: sum.bytes + used.bytes, inodes: sum.inodes + used.inodes };
        }
        Ok(sum)
    }
}

/// Whether an image has a journal.
#[derive(Clone, Copy, PartialEq)]
enum Journal {
    Yes,
    No,
}

/// The size of an image.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Size {
    bytes: u64,
    inodes: u64,
}

impl Size {
    /// An image for what takes `used`, with space for work. One inode for 16 KiB, as mke2fs has it, but enough for a small image full of
    /// small files, and for packages of them.
    fn of_image(used: Use, room: Room) -> Self {
        let bytes = match room {
            Room::Disk => used.bytes * 3 + 256 * MIB,
            Room::Memory => used.bytes + used.bytes / 8 + 8 * MIB,
            Room::Exactly(bytes) => bytes,
        };
        let bytes = bytes.next_multiple_of(MIB);
        let usual = (bytes / (16 << 10)).max(MIN_INODES);
        let inodes = usual.max(used.inodes + used.inodes / 4);
        // What is left for files stays the same with a larger table of inodes.
        Self { bytes: (bytes + (inodes - usual) * INODE_SIZE).next_multiple_of(MIB), inodes }
    }
}

/// Ext2 with indexed directories: 4 KiB blocks, nothing reserved for root.
fn make_ext2(contents: Option<&Path>, size: Size, journal: Journal, image: &Path) -> Result<()> {
    // mke2fs keeps what an older, longer file had beyond the new end.
    let _ = fs::remove_file(image);
    let mut mke2fs = Command::new("mke2fs");
    mke2fs
        .env("E2FSPROGS_FAKE_TIME", EPOCH.to_string())
        .args(["-q", "-F", "-t", "ext2", "-b", "4096", "-I", "256", "-m", "0", "-L", "skink"])
        .args(["-O", "none,filetype,sparse_super,large_file,dir_index"])
        .args(["-U", UUID, "-E", &format!("hash_seed={UUID},root_owner=0:0,lazy_itable_init=0,nodiscard")])
        .args(["-N", &size.inodes.to_string()]);
    if let Some(folder) = contents {
        mke2fs.arg("-d").arg(folder);
    }
    if journal == Journal::Yes {
        mke2fs.args(["-j", "-J", &format!("size={JOURNAL_MIB}")]);
    }
    process::run(mke2fs.arg(image).arg((size.bytes / BLOCK_SIZE).to_string()))
        .with_context(|| format!("cannot make the file system {}", image.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_takes_the_place_of_a_link_and_leaves_its_target_alone() {
        let folder = std::env::temp_dir().join(format!("skink-rootfs-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let [program, target, link] = ["program", "target", "link"].map(|name| folder.join(name));
        fs::write(&program, "new").expect("written");
        fs::write(&target, "old").expect("written");
        symlink(&target, &link).expect("linked");
        install(&program, &link).expect("installed");
        let read = |path: &Path| fs::read_to_string(path).expect("read");
        assert_eq!((read(&target), read(&link)), ("old".to_string(), "new".to_string()));
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn in_a_merged_root_folders_end_up_in_usr_and_other_links_are_replaced() {
        let folder = std::env::temp_dir().join(format!("skink-merged-{}", std::process::id()));
        let (from, staging) = (folder.join("from"), folder.join("staging"));
        fs::create_dir_all(&staging).expect("made");
        merge_usr(&staging).expect("is merged");
        symlink("/nowhere", staging.join("usr/bin/tool")).expect("linked");
        fs::create_dir_all(from.join("bin")).expect("made");
        fs::write(from.join("bin/tool"), "own").expect("written");
        fs::write(from.join("file"), "").expect("written");
        copy_tree(&from, &staging, "--preserve=all").expect("is copied");
        assert!(staging.join("bin").is_symlink() && staging.join("file").is_file());
        assert_eq!(fs::read_to_string(staging.join("usr/bin/tool")).expect("read"), "own");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn an_image_has_inodes_for_many_small_files_and_space_for_work() {
        let few = Size::of_image(Use { bytes: 10 * MIB, inodes: 500 }, Room::Memory);
        assert_eq!(few, Size { bytes: 20 * MIB, inodes: MIN_INODES });
        let many = Size::of_image(Use { bytes: 400 * MIB, inodes: 100_000 }, Room::Memory);
        assert_eq!(many.inodes, 125_000);
        assert!(many.bytes >= (458 + 23) * MIB, "{many:?}");
        let disk = Size::of_image(Use { bytes: 400 * MIB, inodes: 100_000 }, Room::Disk);
        assert!(disk.bytes > 1400 * MIB && disk.inodes >= 125_000, "{disk:?}");
    }
}
