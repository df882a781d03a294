//! `./skink image --iso`: a disk for real PCs, started by GRUB on BIOS and UEFI machines alike.
//!
//! GRUB hands the kernel over by multiboot2, with the boot archive as its only module. The root is on
//! the ramdisk unless `--system` says otherwise, since the disks of a real PC are not ours to use.

use crate::bundle::{Bundle, Media, Root};
use crate::cli::ImageOptions;
use crate::debian::Set;
use crate::process;
use crate::rootfs::Contents;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// GRUB's parts that the start needs; all of them would make the image five times larger.
const GRUB_MODULES: &str = "normal multiboot2 iso9660 part_msdos part_gpt fat all_video search";

/// Makes build/skink.iso and tells where it is.
///
/// # Errors
/// When the build or a tool fails.
pub fn image(workspace: &Workspace, options: &ImageOptions) -> Result<u8> {
    let bundle = Bundle::build(workspace, &options.system)?;
    let packages = Set::get(&workspace.build, &options.packages)?;
    let iso = make(workspace, &bundle, packages.as_ref(), "", "skink.iso")?;
    println!("{}", iso.display());
    Ok(0)
}

/// Makes the image `name` in the build folder, with `packages` in its root and `append` on the kernel's command line, and returns its path.
///
/// # Errors
/// When the system keeps its root on a disk, or a tool fails.
pub fn make(
    workspace: &Workspace,
    bundle: &Bundle,
    packages: Option<&Set>,
    append: &str,
    name: &str,
) -> Result<PathBuf> {
    if bundle.root() != Root::Ramdisk {
        bail!("an ISO image needs a system with its root on the ramdisk, for example --system ramdisk");
    }
    let folder = workspace.run_folder()?;
    let media = bundle.make_media(&Contents { packages, ..bundle.contents(workspace) }, &folder)?;
    let tree = folder.join("iso");
    lay_out(&media, append, &tree)?;
    let iso = workspace.build.join(name);
    let made = folder.join(name);
    process::run(
        Command::new("grub-mkrescue")
            .args(["--compress=xz", "--locales=", "--fonts=", "--themes="])
            .arg(format!("--install-modules={GRUB_MODULES}"))
            .arg("-o")
            .arg(&made)
            .arg(&tree),
    )?;
    fs::rename(&made, &iso).with_context(|| format!("cannot write {}", iso.display()))?;
    Ok(iso)
}

fn lay_out(media: &Media, append: &str, tree: &Path) -> Result<()> {
    let boot = tree.join("boot");
    fs::create_dir_all(boot.join("grub"))?;
    process::run(Command::new("strip").args(["--strip-debug", "-o"]).arg(boot.join("kernel")).arg(&media.kernel))?;
    fs::copy(&media.archive, boot.join("archive")).context("cannot copy the boot archive")?;
    fs::write(boot.join("grub/grub.cfg"), grub_configuration(append)).context("cannot write grub.cfg")
}

/// Under UEFI there is a framebuffer only with `all_video`.
fn grub_configuration(append: &str) -> String {
    format!(
        "set timeout=0\n\
         insmod all_video\n\
         set gfxmode=1024x768\n\
         menuentry Skink {{\n\
         multiboot2 /boot/kernel {append}\n\
         module2 /boot/archive archive\n\
         boot\n\
         }}\n"
    )
}
