//! Skink as the system under test: the root on a virtio disk, and the RAM disk beside it.

use super::session::{ICOUNT_WITH_DISK, MEMORY_MIB};
use crate::archive::Entry;
use crate::bundle::{Bundle, Media};
use crate::c_programs::CProgram;
use crate::cli::RAMDISK_SYSTEM;
use crate::faults::mutate::Text;
use crate::faults::plan::Target;
use crate::machine::{Boot, Line, Machine};
use crate::workspace::{RunFolder, Workspace};
use anyhow::{Result, bail};
use std::path::Path;

/// The disk's image in the boot archive.
const DISK: &str = "disk.img";
/// The driver under test.
const DRIVER: &str = "ramdisk";
/// The root's place in vfs's arguments: as in the system file, and here.
const ROOT: [&str; 2] = ["root=ext2,ram0", "root=ext2,vda"];

/// The built system.
pub struct Skink {
    bundle: Bundle,
    media: Media,
}

impl Skink {
    /// Builds the system with the RAM disk, whose content is `disk`. Its services keep the settings of systems/ramdisk.toml but for the
    /// root's place.
    ///
    /// # Errors
    /// When something does not build.
    pub fn build(workspace: &Workspace, program: &CProgram, disk: &Path, folder: &RunFolder) -> Result<Self> {
        let mut bundle = Bundle::build(workspace, RAMDISK_SYSTEM)?;
        bundle.change_service(DRIVER, |service| service.module = Some(DISK.to_string()));
        bundle.change_service("vfs", |service| service.arguments = service.arguments.replace(ROOT[0], ROOT[1]));
        // The root's driver.
        bundle.change_service("virtio_blk", |service| service.optional = false);
        bundle.add_module(Entry::from_file(DISK, disk)?);
        let mut contents = bundle.contents(workspace);
        contents.programs.push((program.name.clone(), program.path.clone()));
        let command = format!("exec {}", program.name);
        contents.command = Some(&command);
        let media = bundle.make_media(&contents, folder)?;
        Ok(Self { bundle, media })
    }

    /// The machine that boots it.
    pub fn machine(&self) -> Machine {
        let Media { kernel, archive, disks, .. } = &self.media;
        let (kernel, archive) = (kernel.clone(), archive.clone());
        let mut machine = Machine::new(Boot::Kernel { kernel, archive, append: vec!["exec".to_string()] });
        machine.disks = disks.clone();
        machine.memory_mib = MEMORY_MIB;
        machine.icount = true;
        machine.icount_mode = ICOUNT_WITH_DISK;
        machine.serial = vec![Line::Stderr, Line::Stdio];
        machine
    }

    /// The driver's text, the same in the file and in memory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn text(&self) -> Result<Text> {
        match self.bundle.services().iter().find(|service| service.name == DRIVER) {
            Some(service) => Ok(Target::read(DRIVER, &self.bundle.program(&service.binary), true)?.text),
            None => bail!("the system has no {DRIVER}"),
        }
    }
}
