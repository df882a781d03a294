//! The ISO image starts on BIOS and on UEFI machines: GRUB, multiboot2, to the shell. The UEFI machine has a screen that only its firmware knows how to
//! set up, as those of real PCs: the shell is on it too.

use super::dialogue::{self, Step};
use super::{Setting, Test, Verdict};
use crate::cli::RAMDISK_SYSTEM;
use crate::image;
use crate::machine::{Adapter, Boot, Machine, Screen, UEFI_VARIABLES};
use crate::process::{self, tail};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// UEFI firmware alone takes 5 seconds on a quiet machine.
const LIMIT: Duration = Duration::from_secs(180);
const SHOWN_LINES: usize = 30;

/// One test for each kind of firmware.
pub fn tests<'a>(setting: &'a Setting) -> [Test<'a>; 2] {
    [Test::new("iso/bios", || run(setting, Firmware::Bios)), Test::new("iso/uefi", || run(setting, Firmware::Uefi))]
}

#[derive(Clone, Copy)]
enum Firmware {
    Bios,
    Uefi,
}

fn run(setting: &Setting, firmware: Firmware) -> Result<Verdict> {
    let iso = make(setting)?;
    let folder = setting.workspace.run_folder()?;
    let picture = folder.join("screen.ppm");
    let (mut machine, steps) = match firmware {
        Firmware::Bios => (Machine::new(Boot::IsoBios(iso)), steps()),
        Firmware::Uefi => {
            let variables = folder.join("variables.fd");
            fs::copy(UEFI_VARIABLES, &variables).context("cannot copy the UEFI firmware's variables")?;
            let mut machine = Machine::new(Boot::IsoUefi { iso, variables });
            let monitor = folder.join("monitor");
            (machine.screen, machine.adapter) = (Screen::Hidden, Adapter::Ramfb);
            machine.monitor = Some(monitor.clone());
            (machine, steps_with_screen(monitor, picture.clone()))
        }
    };
    match dialogue::hold(&mut machine, &steps, LIMIT)? {
        Ok(said) if picture.exists() => {
            check_picture(&picture, &said)?;
            Ok(Verdict::passed())
        }
        Ok(_) => Ok(Verdict::passed()),
        Err(failure) => {
            Ok(Verdict::failed(format!("{}\nconsole:\n{}", failure.reason, tail(&failure.console, SHOWN_LINES))))
        }
    }
}

/// What the screen shows has the sum that the guest has told of /dev/fb0, and is text.
fn check_picture(picture: &Path, said: &str) -> Result<()> {
    /// Lines of a PPM before its pixels, of 24 bits each.
    const HEADER_LINES: usize = 3;
    const GREY: [u8; 3] = [170; 3];
    let bytes = fs::read(picture)?;
    let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let (end, _) = ends.nth(HEADER_LINES - 1).context("the picture is no PPM")?;
    let pixels = bytes[end + 1..].as_chunks::<3>().0;
    let in_memory: Vec<u8> = pixels.iter().flat_map(|[red, green, blue]| [*blue, *green, *red, 0]).collect();
    let file = picture.with_extension("pixels");
    fs::write(&file, in_memory)?;
    let sum = String::from_utf8(process::output(Command::new("md5sum").arg(&file))?)?;
    let sum = sum.split_whitespace().next().context("md5sum told nothing")?;
    if !said.contains(sum) {
        bail!("the screen shows {sum}, and the guest has told:\n{}", tail(said, SHOWN_LINES));
    }
    match pixels.iter().filter(|pixel| **pixel == GREY).count() {
        1000.. => Ok(()),
        grey => bail!("{grey} pixels of the screen are grey: it shows no text"),
    }
}

/// As [`steps`], with a picture of the screen when the shell on it has its prompt and all is drawn.
fn steps_with_screen(monitor: PathBuf, file: PathBuf) -> Vec<Step> {
    let typed = |text: &str| Step::Type(text.as_bytes().to_vec());
    let expected = |text: &str| Step::Expect(text.as_bytes().to_vec());
    let settled = "until grep -q '# ' /dev/vcs1 && cp /dev/fb0 /tmp/seen && sleep 0.5 && cmp /dev/fb0 /tmp/seen; do sleep 0.1; done";
    let told = "cat /sys/class/graphics/fb0/name; md5sum </tmp/seen; echo all 'told'\r";
    let mut steps = vec![expected("# "), typed(&format!("{settled}\r")), expected("# "), typed(told)];
    steps.extend([expected("boot\n"), expected("all told"), Step::Picture { monitor, file }]);
    steps.extend(self::steps().into_iter().skip(1));
    steps
}

/// To the prompt, a command, and out.
pub fn steps() -> Vec<Step> {
    let typed = |text: &str| Step::Type(text.as_bytes().to_vec());
    let expected = |text: &str| Step::Expect(text.as_bytes().to_vec());
    let command = "echo from $(whoami)\r";
    vec![expected("# "), typed(command), expected("from root"), expected("# "), typed("poweroff\r"), Step::End]
}

/// Both tests boot the same image; the first one makes it.
fn make(setting: &Setting) -> Result<PathBuf> {
    static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(iso) = &*made {
        return Ok(iso.clone());
    }
    let iso = image::make(setting.workspace, setting.bundle(RAMDISK_SYSTEM)?, None, "")?;
    Ok(made.insert(iso).clone())
}
