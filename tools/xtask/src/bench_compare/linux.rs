//! Debian's Linux with the root file system of a Skink guest.
//!
//! The initial file system has busybox, the modules of ext2 and of a disk in memory, and the image, which the first program copies onto
//! that disk and mounts as Skink does: ext2, no journal, no options. Then it runs the job's command there and prints as Skink's /etc/rc
//! does. The kernel has Debian's settings, mitigations included, but for the addresses of its parts, which are fixed.

use crate::bundle::{Bundle, ROOT_DISK};
use crate::guest::{Guest, Job};
use crate::linux::{self, Linux};
use crate::machine::{Boot, Line, Machine};
use crate::rootfs::{self, Room};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Debian's modules, in the order in which they need each other.
const MODULES: [&str; 6] = [
    "crypto/crc32c_generic.ko",
    "lib/crc16.ko",
    "fs/mbcache.ko",
    "fs/jbd2/jbd2.ko",
    "fs/ext4/ext4.ko",
    "drivers/block/brd.ko",
];

/// The first program, for busybox's shell. The marks are those of systems/root/etc/rc.
const INIT: &str = r#"#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
/bin/busybox mkdir -p /dev /root
/bin/busybox mount -t devtmpfs devtmpfs /dev
for module in MODULES; do /bin/busybox insmod /modules/$module; done
/bin/busybox insmod /modules/brd.ko rd_nr=1 rd_size=DISK_KIB
/bin/busybox dd if=/root.img of=/dev/ram0 bs=1M
/bin/busybox rm /root.img
/bin/busybox mount -t ext2 /dev/ram0 /root
/bin/busybox mount -t devtmpfs devtmpfs /root/dev
/bin/busybox mkdir -p /root/dev/shm /root/dev/pts
/bin/busybox mount -t devpts devpts /root/dev/pts
/bin/busybox mount -t tmpfs tmpfs /root/dev/shm
/bin/busybox mount -t proc proc /root/proc
/bin/busybox mount -t sysfs sysfs /root/sys
export HOME=/root TERM=vt100
/bin/busybox stty raw </dev/ttyS1
printf '\0skink-begin\n'
/bin/busybox chroot /root /bin/sh -c 'cd /root; sh -c "$(cat /etc/skink-exec)" </dev/null; echo $? >/run/status' >/dev/ttyS1
printf '\0skink-exit %d\n' "$(/bin/busybox cat /root/run/status)" >/dev/ttyS1
/bin/busybox reboot -f
"#;

/// Makes the machine for `job`, with the root file system that Skink's guest would have.
///
/// # Errors
/// When an image or the archive cannot be made.
pub fn prepare(workspace: &Workspace, bundle: &Bundle, debian: &Linux, job: &Job) -> Result<Guest> {
    let folder = workspace.run_folder()?;
    let contents = job.contents(workspace, bundle);
    let initial = folder.join("initial");
    fs::create_dir_all(initial.join("modules"))?;
    let image = initial.join(ROOT_DISK);
    rootfs::make(&contents, Room::Memory, folder.path(), &image)?;
    add_files(debian, &initial, fs::metadata(&image)?.len() >> 10)?;
    let archive = folder.join("initial.cpio");
    linux::pack(&initial, &archive)?;
    fs::remove_dir_all(&initial)?;
    let append = ["console=ttyS0", "quiet", "nokaslr"].map(String::from).to_vec();
    let mut machine = Machine::new(Boot::Kernel { kernel: debian.image(), archive, append });
    machine.serial = vec![Line::Stderr, Line::Stdio];
    machine.icount = job.icount;
    machine.memory_mib = job.memory_mib;
    Ok(Guest::of_machine(machine, folder, job.limit))
}

fn add_files(debian: &Linux, initial: &Path, disk_kib: u64) -> Result<()> {
    let mut names = Vec::new();
    for module in MODULES {
        let name = Path::new(module).file_name().context("a module has a name")?;
        fs::copy(debian.module(module), initial.join("modules").join(name)).with_context(|| module.to_string())?;
        names.push(name.to_string_lossy().into_owned());
    }
    let loaded = names.iter().filter(|name| *name != "brd.ko").cloned().collect::<Vec<_>>().join(" ");
    let init = INIT.replace("MODULES", &loaded).replace("DISK_KIB", &disk_kib.to_string());
    let path = initial.join("init");
    fs::write(&path, init)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    fs::create_dir_all(initial.join("bin"))?;
    fs::copy(rootfs::BUSYBOX, initial.join("bin/busybox")).context("cannot copy busybox")?;
    Ok(())
}
