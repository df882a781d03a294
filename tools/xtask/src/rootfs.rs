//! Makes the root file system: an ext2 image of our own files, busybox, our commands and overlays.
//!
//! The same input gives the same bytes, so that runs under `--icount` repeat: identifiers are fixed,
//! files that are not an overlay's have [`EPOCH`] as their time, and `ext2_times` does the rest. Device nodes are not in
//! it: devfs is mounted on /dev, procfs on /proc.

use crate::ext2_times;
use crate::process;
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// 2026-01-01 00:00:00 UTC, in seconds since 1970: the time of every file that is made here, and
/// the machine's clock at its start under `--icount`.
pub const EPOCH: u64 = 1_767_225_600;

const BUSYBOX: &str = "/usr/bin/busybox";
const BLOCK_SIZE: u64 = 4096;
const UUID: &str = "736b696e-6b00-4000-8000-000000000001";
const MIB: u64 = 1 << 20;

/// The folders that are empty in the image.
const EMPTY_FOLDERS: [&str; 12] =
    ["bin", "sbin", "usr/bin", "usr/sbin", "dev", "proc", "mnt", "out", "root", "run", "tmp", "var/log"];

/// What goes into a root file system.
pub struct Contents<'a> {
    /// Our own files, from systems/root.
    pub base: PathBuf,
    /// Our programs: name in /bin, file here.
    pub programs: Vec<(String, PathBuf)>,
    /// Folders laid over the rest, in order.
    pub overlays: &'a [PathBuf],
    /// A command for /etc/rc to run in place of a shell.
    pub command: Option<&'a str>,
}

/// Space that the image offers beyond its contents.
#[derive(Clone, Copy)]
pub enum Room {
    /// For a disk: a sparse file, so it costs nothing here.
    Disk,
    /// For a ramdisk, which the guest pays for in memory.
    Memory,
}

/// Writes an ext2 image of `contents` to `image`, using the folder `work` for staging.
///
/// # Errors
/// When an overlay is missing, busybox is not usable or mke2fs fails.
pub fn make(contents: &Contents, room: Room, work: &Path, image: &Path) -> Result<()> {
    let staging = work.join("root");
    stage(contents, &staging)?;
    let size = size_of_image(&staging, room)?;
    make_ext2(Some(&staging), size, image)?;
    ext2_times::settle(image)?;
    fs::remove_dir_all(&staging).context("cannot remove the staging folder")
}

/// Writes an empty ext2 image of `size_mib` to `image`.
///
/// # Errors
/// When mke2fs fails.
pub fn make_empty(size_mib: u64, image: &Path) -> Result<()> {
    make_ext2(None, size_mib * MIB, image)?;
    ext2_times::settle(image)
}

fn stage(contents: &Contents, staging: &Path) -> Result<()> {
    fs::create_dir_all(staging)?;
    for folder in EMPTY_FOLDERS {
        fs::create_dir_all(staging.join(folder))?;
    }
    set_mode(&staging.join("tmp"), 0o1777)?;
    set_mode(&staging.join("root"), 0o700)?;
    install_busybox(staging)?;
    copy_tree(&contents.base, staging, "--preserve=mode,links")?;
    for (name, file) in &contents.programs {
        install(file, &staging.join("bin").join(name))?;
    }
    if let Some(command) = contents.command {
        fs::write(staging.join("etc/skink-exec"), command)?;
    }
    set_times(staging)?;
    for overlay in contents.overlays {
        copy_tree(overlay, staging, "--preserve=all")?;
    }
    Ok(())
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
    let list = process::output(Command::new(BUSYBOX).arg("--list-full"))?;
    let list = String::from_utf8(list).context("busybox --list-full printed something that is not text")?;
    for applet in list.lines().filter(|applet| *applet != "bin/busybox") {
        let link = staging.join(applet);
        if let Some(folder) = link.parent() {
            fs::create_dir_all(folder)?;
        }
        symlink("/bin/busybox", &link).with_context(|| format!("cannot link the applet {applet}"))?;
    }
    Ok(())
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
/// place of a link of that name, and does not end up where the link points.
///
/// Of overlays everything is kept; of our own files not the times, which are those of the checkout.
fn copy_tree(folder: &Path, staging: &Path, preserve: &str) -> Result<()> {
    if !folder.is_dir() {
        bail!("there is no folder {}", folder.display());
    }
    let mut cp = Command::new("cp");
    cp.args(["--recursive", "--no-dereference", "--remove-destination", preserve, "-T"]);
    process::run(cp.arg(folder).arg(staging))
}

fn size_of_image(staging: &Path, room: Room) -> Result<u64> {
    let needed = disk_use(staging)?;
    let size = match room {
        Room::Disk => needed * 3 + 256 * MIB,
        Room::Memory => needed + needed / 8 + 8 * MIB,
    };
    Ok(size.next_multiple_of(MIB))
}

/// Bytes that the files of `folder` take, in whole blocks.
fn disk_use(folder: &Path) -> Result<u64> {
    let mut sum = BLOCK_SIZE;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        sum += match entry.file_type()? {
            kind if kind.is_dir() => disk_use(&entry.path())?,
            kind if kind.is_file() => entry.metadata()?.len().next_multiple_of(BLOCK_SIZE),
            _ => 0,
        };
    }
    Ok(sum)
}

/// Plain ext2: 4 KiB blocks, no journal, no hashed folders, nothing reserved for root.
fn make_ext2(contents: Option<&Path>, size: u64, image: &Path) -> Result<()> {
    // mke2fs keeps what an older, longer file had beyond the new end.
    let _ = fs::remove_file(image);
    let mut mke2fs = Command::new("mke2fs");
    mke2fs
        .env("E2FSPROGS_FAKE_TIME", EPOCH.to_string())
        .args(["-q", "-F", "-t", "ext2", "-b", "4096", "-I", "256", "-m", "0", "-L", "skink"])
        .args(["-O", "none,filetype,sparse_super,large_file"])
        .args(["-U", UUID, "-E", &format!("hash_seed={UUID},root_owner=0:0,lazy_itable_init=0,nodiscard")])
        .args(["-N", &inodes_for(size).to_string()]);
    if let Some(folder) = contents {
        mke2fs.arg("-d").arg(folder);
    }
    process::run(mke2fs.arg(image).arg((size / BLOCK_SIZE).to_string()))
        .with_context(|| format!("cannot make the file system {}", image.display()))
}

/// One inode for 16 KiB, as mke2fs has it, but enough for a small image full of small files.
fn inodes_for(size: u64) -> u64 {
    (size / (16 << 10)).max(4096)
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
}
