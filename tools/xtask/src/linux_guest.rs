//! Debian's Linux with the root file system of a Skink guest, in the machine that Skink would have.
//!
//! The kernel has Debian's settings, mitigations included, but for the addresses of its parts, which are fixed. The initial file system
//! has busybox and the modules that the machine needs. Its first program mounts the root as Skink does, ext2, or ext3 with
//! ordered data if it has a journal, runs the job's command there, and prints as Skink's /etc/rc does.
//!
//! The root is a copy in memory, which costs no disk driver anything (`./skink bench compare`), or a virtio disk (`./skink test record`,
//! and tests that go on with the disk that Skink has left).

use crate::bundle::{Bundle, ROOT_DISK};
use crate::guest::{Guest, Job};
use crate::linux::{self, Linux};
use crate::machine::{Boot, Line, Machine, Screen};
use crate::rootfs::{self, Room};
use crate::workspace::{RunFolder, Workspace};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the root file system is.
#[derive(Clone, Copy, PartialEq)]
pub enum Root {
    /// In memory, as Skink's ramdisk.
    Memory,
    /// On a disk, as Skink's virtio_blk.
    Disk,
}

/// Debian's modules for ext2, in the order in which they need each other.
const EXT2: [&str; 5] =
    ["crypto/crc32c_generic.ko", "lib/crc16.ko", "fs/mbcache.ko", "fs/jbd2/jbd2.ko", "fs/ext4/ext4.ko"];
/// For a root in memory.
const RAMDISK: &str = "drivers/block/brd.ko";
/// For a root on a disk.
const DISK: [&str; 6] = [
    "drivers/virtio/virtio_ring.ko",
    "drivers/virtio/virtio.ko",
    "drivers/virtio/virtio_pci_legacy_dev.ko",
    "drivers/virtio/virtio_pci_modern_dev.ko",
    "drivers/virtio/virtio_pci.ko",
    "drivers/block/virtio_blk.ko",
];
/// For a machine with a tablet.
const TABLET: &str = "drivers/virtio/virtio_input.ko";
/// For a machine with a screen, and for mouse and events.
const SCREEN: [&str; 10] = [
    "drivers/media/rc/rc-core.ko",
    "drivers/media/cec/core/cec.ko",
    "drivers/gpu/drm/drm.ko",
    "drivers/gpu/drm/drm_kms_helper.ko",
    "drivers/gpu/drm/ttm/ttm.ko",
    "drivers/gpu/drm/drm_ttm_helper.ko",
    "drivers/gpu/drm/drm_vram_helper.ko",
    "drivers/gpu/drm/tiny/bochs.ko",
    "drivers/input/evdev.ko",
    "drivers/input/mouse/psmouse.ko",
];

/// The first program, for busybox's shell. The marks are those of systems/root/etc/rc.
const INIT: &str = r#"#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
/bin/busybox mkdir -p /dev /proc /root
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t proc proc /proc
for module in MODULES; do /bin/busybox insmod /modules/$module; done
MOUNT
/bin/busybox mount -t devtmpfs devtmpfs /root/dev
/bin/busybox mkdir -p /root/dev/shm /root/dev/pts
/bin/busybox mount -t devpts devpts /root/dev/pts
/bin/busybox mount -t tmpfs tmpfs /root/dev/shm
/bin/busybox mount -t proc proc /root/proc
/bin/busybox mount -t sysfs sysfs /root/sys
export HOME=/root TERM=vt100
# Open from here on: what comes while it is closed is lost.
exec 3<>/dev/ttyS1
/bin/busybox stty raw -echo <&3
printf '\0skink-begin\n'
/bin/busybox chroot /root /bin/sh -c 'cd /root; sh -c "$(cat /etc/skink-exec)" </dev/null; echo $? >/run/status' >&3 3>&-
printf '\0skink-exit %d\n' "$(/bin/busybox cat /root/run/status || echo 125)" >&3
case " $(/bin/busybox cat /proc/cmdline) " in *' hold '*) read -r _ <&3 ;; esac
/bin/busybox sync
/bin/busybox mount -o remount,ro /root
/bin/busybox reboot -f
"#;

/// Makes the machine for `job`, with the root file system that Skink's guest would have.
///
/// # Errors
/// When an image or the archive cannot be made.
pub fn prepare(workspace: &Workspace, bundle: &Bundle, debian: &Linux, job: &Job, root: Root) -> Result<Guest> {
    let folder = workspace.run_folder()?;
    let contents = job.contents(workspace, bundle);
    let room = if root == Root::Memory { Room::Memory } else { Room::Disk };
    let image = folder.join(ROOT_DISK);
    rootfs::make(&contents, room, folder.path(), &image)?;
    boot(folder, bundle, debian, job, root, image)
}

/// Makes the machine for `job` with the root disk that a Skink guest has left, whose command runs again.
///
/// # Errors
/// When the archive cannot be made.
pub fn take_over(workspace: &Workspace, bundle: &Bundle, debian: &Linux, job: &Job, disk: &Path) -> Result<Guest> {
    boot(workspace.run_folder()?, bundle, debian, job, Root::Disk, disk.to_path_buf())
}

fn boot(folder: RunFolder, bundle: &Bundle, debian: &Linux, job: &Job, root: Root, image: PathBuf) -> Result<Guest> {
    let initial = folder.join("initial");
    fs::create_dir_all(initial.join("modules"))?;
    let has_screen = job.screen != Screen::None || job.screenshot.is_some();
    let mut modules: Vec<&str> = EXT2.to_vec();
    if has_screen {
        modules.extend(SCREEN);
    }
    let mount = match root {
        Root::Memory => {
            fs::rename(&image, initial.join(ROOT_DISK))?;
            mount_of_memory(fs::metadata(initial.join(ROOT_DISK))?.len() >> 10, job.has_journal)
        }
        Root::Disk => {
            modules.extend(DISK);
            // Behind keyboard and mouse, as in Skink.
            modules.extend(job.tablet.then_some(TABLET));
            mount("/dev/vda", job.has_journal)
        }
    };
    add_files(debian, &initial, &modules, &mount)?;
    let archive = folder.join("initial.cpio");
    linux::pack(&initial, &archive)?;
    fs::remove_dir_all(&initial)?;
    let append = ["console=ttyS0", "quiet", "nokaslr"].map(String::from).to_vec();
    let mut machine = Machine::new(Boot::Kernel { kernel: debian.image(), archive, append });
    machine.disks = if root == Root::Disk { vec![image] } else { Vec::new() };
    machine.serial = vec![Line::Stderr, Line::Stdio];
    machine.adapter = bundle.adapter();
    machine.icount = job.icount;
    machine.memory_mib = job.memory_mib;
    Ok(Guest::of_machine(machine, folder, job))
}

/// Copies the image onto a disk in memory, and mounts that.
fn mount_of_memory(disk_kib: u64, has_journal: bool) -> String {
    [
        &format!("/bin/busybox insmod /modules/brd.ko rd_nr=1 rd_size={disk_kib}"),
        "/bin/busybox dd if=/root.img of=/dev/ram0 bs=1M",
        "/bin/busybox rm /root.img",
        &mount("/dev/ram0", has_journal),
    ]
    .join("\n")
}

fn mount(device: &str, has_journal: bool) -> String {
    let kind = if has_journal { "ext3 -o data=ordered" } else { "ext2" };
    format!("/bin/busybox mount -t {kind} {device} /root")
}

fn add_files(debian: &Linux, initial: &Path, modules: &[&str], mount: &str) -> Result<()> {
    let copy = |module: &str| -> Result<String> {
        let name = PathBuf::from(module.rsplit('/').next().context("a module has a name")?);
        fs::copy(debian.module(module), initial.join("modules").join(&name)).with_context(|| module.to_string())?;
        Ok(name.to_string_lossy().into_owned())
    };
    copy(RAMDISK)?;
    let loaded = modules.iter().map(|module| copy(module)).collect::<Result<Vec<_>>>()?.join(" ");
    let init = INIT.replace("MODULES", &loaded).replace("MOUNT", mount);
    let path = initial.join("init");
    fs::write(&path, init)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    fs::create_dir_all(initial.join("bin"))?;
    fs::copy(rootfs::BUSYBOX, initial.join("bin/busybox")).context("cannot copy busybox")?;
    Ok(())
}
