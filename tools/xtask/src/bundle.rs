//! What a system boots from: the kernel, the boot archive and, unless it is in the archive, the disk
//! with the root file system.

use crate::archive::{self, Entry};
use crate::c_programs::{self, CProgram};
use crate::c_services::{self, Library};
use crate::machine::{Adapter, DiskBus};
use crate::programs::{self, Built, Packages, Profile};
use crate::progress::Step;
use crate::rootfs::{self, Contents, Room};
use crate::symbols;
use crate::system;
use crate::workspace::{RunFolder, Workspace};
use abi::archive::{ROOT_IMAGE, SYSTEM};
use abi::symbols::{LABELS, SUFFIX};
use abi::system::{Service, System};
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The file name of the disk image with the root file system.
pub const ROOT_DISK: &str = "root.img";

/// QEMU's ROM for its ramfb, and the size of the smallest one.
const RAMFB_ROM: &str = "vgabios-ramfb.bin";
const ROM_BYTES: usize = 512;

/// The folders of user/ with commands in C that every system has.
const C_COMMANDS: [&str; 3] = ["coredump", "paint", "rtop"];

/// The file name of what is printed.
pub const PRINTER: &str = "printed";

/// Where a system keeps its root file system.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Root {
    /// On a disk.
    Disk,
    /// In the boot archive.
    Ramdisk,
}

/// A system that is built, without a root file system yet.
pub struct Bundle {
    built: Built,
    system: System,
    commands: Vec<String>,
    c_commands: Vec<CProgram>,
    /// The services' programs for the archive, and their symbols.
    programs: Vec<Entry>,
    /// Files of the archive for services, besides the root's image.
    modules: Vec<Entry>,
}

/// The files that a machine boots from.
pub struct Media {
    /// The kernel.
    pub kernel: PathBuf,
    /// The boot archive.
    pub archive: PathBuf,
    /// The disks.
    pub disks: Vec<PathBuf>,
    /// How they are connected.
    pub disk_bus: DiskBus,
    /// Whether devices are behind an IOMMU.
    pub iommu: bool,
    /// A folder with ROMs in place of QEMU's.
    pub roms: Option<PathBuf>,
}

impl Bundle {
    /// Reads systems/`name`.toml and builds what it needs, and our commands.
    ///
    /// # Errors
    /// When the system file is wrong or something does not compile.
    pub fn build(workspace: &Workspace, name: &str) -> Result<Self> {
        Self::build_as(workspace, name, Profile::Release)
    }

    /// As [`Bundle::build`], with `profile` for all that is in Rust.
    ///
    /// # Errors
    /// As of [`Bundle::build`].
    pub fn build_as(workspace: &Workspace, name: &str, profile: Profile) -> Result<Self> {
        let packages = Packages::read(workspace)?;
        let system = system::read(workspace, &packages, name)?;
        let commands = packages.programs_in(workspace, "user");
        let services = system.service.iter().map(|service| service.binary.clone());
        let programs: BTreeSet<String> = services.chain(commands.iter().cloned()).collect();
        let built = build_programs(workspace, programs, profile)?;
        let c_commands = c_programs::compile(workspace, &C_COMMANDS)?;
        let programs = archived_programs(&built, &system)?;
        Ok(Self { built, system, commands, c_commands, programs, modules: Vec::new() })
    }

    /// The services of the system.
    pub fn services(&self) -> &[Service] {
        &self.system.service
    }

    /// The services of the system, which may be changed before media are made of it.
    pub fn services_mut(&mut self) -> &mut [Service] {
        &mut self.system.service
    }

    /// The program `name` as it is in the boot archive.
    pub fn program(&self, name: &str) -> PathBuf {
        self.built.program(name)
    }

    /// Where the system's root is: on the ramdisk if a service gets its image.
    pub fn root(&self) -> Root {
        let is_root = |module: &Option<String>| module.as_deref() == Some(ROOT_IMAGE);
        if self.system.service.iter().any(|service| is_root(&service.module)) { Root::Ramdisk } else { Root::Disk }
    }

    /// How the system expects its disks: on an IDE controller if it has a driver for that.
    fn disk_bus(&self) -> DiskBus {
        let has_ata = self.system.service.iter().any(|service| service.binary == "ata");
        if has_ata { DiskBus::Ide } else { DiskBus::Virtio }
    }

    /// Whether the system's pci is told of an IOMMU: the machine then has one.
    fn has_iommu(&self) -> bool {
        self.system.service.iter().any(|service| service.binary == "pci" && service.arguments.contains("iommu="))
    }

    /// What shows the screen, if the machine has one: what the system has a driver for.
    pub fn adapter(&self) -> Adapter {
        let has_gpu = self.system.service.iter().any(|service| service.binary == "virtio_gpu");
        let has_ramfb =
            self.system.service.iter().any(|service| service.binary == "framebuffer" && service.arguments == "ramfb");
        match () {
            () if has_gpu => Adapter::Virtio,
            () if has_ramfb => Adapter::Ramfb,
            () => Adapter::Vga,
        }
    }

    /// Changes what the system file says of a service.
    pub fn change_service(&mut self, name: &str, change: impl Fn(&mut Service)) {
        self.system.service.iter_mut().filter(|service| service.name == name).for_each(change);
    }

    /// Puts a file into the boot archive that a service of the system asks for as its `module`.
    pub fn add_module(&mut self, module: Entry) {
        self.modules.push(module);
    }

    /// Whether a service has the ports of the first parallel port: the machine then has one, with a printer.
    pub fn has_printer(&self) -> bool {
        const PARALLEL_PORT: u16 = 0x378;
        let mut ports = self.system.service.iter().flat_map(|service| &service.ports);
        ports.any(|(first, last)| (*first..=*last).contains(&PARALLEL_PORT))
    }

    /// What every root file system has: the files of systems/root and our commands.
    pub fn contents(&self, workspace: &Workspace) -> Contents<'static> {
        let commands = self.commands.iter().map(|name| (name.clone(), self.built.program(name)));
        let c_commands = self.c_commands.iter().map(|command| (command.name.clone(), command.path.clone()));
        Contents {
            base: workspace.root.join("systems/root"),
            programs: commands.chain(c_commands).collect(),
            packages: None,
            overlays: &[],
            command: None,
            has_journal: false,
            free_mib: 0,
            free_inodes: 0,
        }
    }

    /// Makes the root file system with `contents` and the boot archive in `folder`.
    ///
    /// # Errors
    /// When an image cannot be made.
    pub fn make_media(&self, contents: &Contents, folder: &RunFolder) -> Result<Media> {
        let _step = Step::begin("disk image");
        let kernel = folder.join("kernel");
        fs::copy(&self.built.kernel, &kernel).context("cannot copy the kernel")?;
        let image = folder.join(ROOT_DISK);
        let mut system = self.system.clone();
        let mut images = Vec::new();
        let disks = match self.root() {
            Root::Disk => {
                rootfs::make(contents, Room::Disk, folder.path(), &image)?;
                vec![image]
            }
            Root::Ramdisk => {
                rootfs::make(contents, Room::Memory, folder.path(), &image)?;
                let mut root = Entry::from_file(ROOT_IMAGE, &image)?;
                trim(&mut root.data, &mut system.service);
                images.push(root);
                fs::remove_file(&image)?;
                Vec::new()
            }
        };
        let archive = folder.join("boot.img");
        archive::write(&self.entries(&system, images)?, &archive)?;
        let roms = self.make_roms(folder)?;
        Ok(Media { kernel, archive, disks, disk_bus: self.disk_bus(), iommu: self.has_iommu(), roms })
    }

    /// The firmware's own driver of ramfb would reserve the end of memory, where QEMU puts the boot archive: it gets an empty one.
    fn make_roms(&self, folder: &RunFolder) -> Result<Option<PathBuf>> {
        if self.adapter() != Adapter::Ramfb {
            return Ok(None);
        }
        fs::write(folder.join(RAMFB_ROM), [0; ROM_BYTES]).context("cannot make a ROM")?;
        Ok(Some(folder.path().to_path_buf()))
    }

    /// The kernel with its symbols.
    pub fn kernel(&self) -> &Path {
        &self.built.kernel
    }

    /// The program `name` with its symbols.
    pub fn with_symbols(&self, name: &str) -> PathBuf {
        self.built.with_symbols(name)
    }

    fn entries(&self, system: &System, images: Vec<Entry>) -> Result<Vec<Entry>> {
        let table = system.pack().map_err(|error| anyhow!("cannot pack the system table: {error}"))?;
        let mut entries = vec![Entry { name: SYSTEM.to_string(), data: table }];
        entries.extend(self.programs.iter().chain(&self.modules).cloned().chain(images));
        Ok(entries)
    }
}

/// Leaves the zeros at the end of the root's image out: its driver is told how large the disk is, and has zeros in its preserved memory, which
/// takes none of the machine's until it is used.
fn trim(image: &mut Vec<u8>, services: &mut [Service]) {
    let is_driver = |service: &&mut Service| service.module.as_deref() == Some(ROOT_IMAGE) && service.keep_bytes > 0;
    if let Some(driver) = services.iter_mut().find(is_driver) {
        driver.arguments = format!("{} disk_bytes={}", driver.arguments, image.len()).trim_start().to_string();
        image.truncate(archived_bytes(image, driver.keep_bytes));
    }
}

/// How much of an image has to be in the archive when so many bytes of its end may be zeros elsewhere: whole pages, at least one.
fn archived_bytes(image: &[u8], zeros: u64) -> usize {
    let used = image.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    let least = image.len().saturating_sub(zeros as usize);
    used.max(least).next_multiple_of(archive::PAGE).min(image.len())
}

/// The programs of the system's services and their symbols, once for all media: reading the symbols takes long.
fn archived_programs(built: &Built, system: &System) -> Result<Vec<Entry>> {
    let mut entries = vec![Entry { name: LABELS.to_string(), data: symbols::labels() }];
    let binaries: BTreeSet<&str> = system.service.iter().map(|service| service.binary.as_str()).collect();
    for binary in binaries {
        entries.push(Entry::from_file(binary, &built.program(binary))?);
        let table = symbols::table(&built.with_symbols(binary))?;
        entries.push(Entry { name: format!("{binary}{SUFFIX}"), data: table });
    }
    Ok(entries)
}

/// Builds the kernel and the named programs, those in C and those in Rust.
fn build_programs(workspace: &Workspace, names: BTreeSet<String>, profile: Profile) -> Result<Built> {
    let _alone = workspace.build_alone();
    let (in_c, in_rust): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| c_services::exists(workspace, name));
    let built = programs::build(workspace, &in_rust, profile)?;
    if !in_c.is_empty() {
        let library = Library::build(workspace)?;
        for name in in_c {
            library.build_service(workspace, &name, &built.with_symbols(&name))?;
            built.strip(&name)?;
        }
    }
    Ok(built)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_at_the_end_of_an_image_are_left_out() {
        const PAGE: usize = archive::PAGE;
        let archived = |used: usize, zeros: usize| {
            let mut image = vec![0; 9 * PAGE];
            image[..used].fill(1);
            archived_bytes(&image, zeros as u64)
        };
        assert_eq!(archived(PAGE + 1, 90 * PAGE), 2 * PAGE);
        assert_eq!(archived(0, 90 * PAGE), PAGE);
        assert_eq!(archived(9 * PAGE, 90 * PAGE), 9 * PAGE);
        assert_eq!(archived(PAGE, 3 * PAGE), 6 * PAGE);
    }
}
