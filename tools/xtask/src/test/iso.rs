//! The ISO image starts on BIOS and on UEFI machines: GRUB, multiboot2, to the shell. Two of them have a screen that only their firmware knows how to
//! set up, as those of real PCs: the shell is on it too.

use super::dialogue::{self, Step};
use super::{Setting, Test, Verdict, scripts};
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
const LIMIT: Duration = Duration::from_secs(600);
const SHOWN_LINES: usize = 30;

/// One test for each kind of firmware and for each way in which it sets up a screen, and one of an image with packages.
pub fn tests<'a>(setting: &'a Setting) -> [Test<'a>; 4] {
    [
        Test::new("iso/bios", || run(setting, Firmware::Bios)),
        Test::new("iso/vbe", || run(setting, Firmware::Vbe)),
        Test::new("iso/uefi", || run(setting, Firmware::Uefi)),
        Test::new("iso/packages", || run_packages(setting)),
    ]
}

#[derive(Clone, Copy)]
enum Firmware {
    /// A BIOS, and no screen.
    Bios,
    /// A BIOS, and a graphics card whose own BIOS sets modes.
    Vbe,
    /// UEFI, with a screen by its graphics output protocol.
    Uefi,
}

fn run(setting: &Setting, firmware: Firmware) -> Result<Verdict> {
    let folder = setting.workspace.run_folder()?;
    let picture = folder.join("screen.ppm");
    let (boot, adapter) = match firmware {
        Firmware::Bios => (Boot::IsoBios(make(setting)?), None),
        Firmware::Vbe => (Boot::IsoBios(make_with_ddc(setting)?), Some(Adapter::Card)),
        Firmware::Uefi => {
            let variables = folder.join("variables.fd");
            fs::copy(UEFI_VARIABLES, &variables).context("cannot copy the UEFI firmware's variables")?;
            (Boot::IsoUefi { iso: make(setting)?, variables }, Some(Adapter::Ramfb))
        }
    };
    let mut machine = Machine::new(boot);
    let steps = match adapter {
        None => steps(),
        Some(adapter) => {
            let monitor = folder.join("monitor");
            (machine.screen, machine.adapter) = (Screen::Hidden, adapter);
            machine.monitor = Some(monitor.clone());
            let display = if adapter == Adapter::Card { steps_with_display() } else { Vec::new() };
            steps_with_screen(display, monitor, picture.clone())
        }
    };
    match dialogue::hold(&mut machine, &steps, LIMIT)? {
        Ok(said) if picture.exists() => {
            check_picture(&picture, &said)?;
            Ok(Verdict::passed())
        }
        Ok(_) => Ok(Verdict::passed()),
        Err(failure) => Ok(failed(&failure)),
    }
}

/// Debian's programs on an image run, and dpkg finds all their files whole.
fn run_packages(setting: &Setting) -> Result<Verdict> {
    const NAMES: [&str; 3] = ["hello", "lua5.4", "dpkg"];
    let packages = scripts::packages(setting, &NAMES.map(str::to_string))?;
    let bundle = setting.bundle(RAMDISK_SYSTEM)?;
    let iso = image::make(setting.workspace, bundle, packages.as_ref(), "", "packages.iso")?;
    let command =
        "hello; lua5.4 -e 'print(6 * 7 .. \" in \" .. _VERSION)'; dpkg --verify && echo every file is 'whole'\r";
    let mut steps = vec![expected("# "), typed(command)];
    steps.extend(["Hello, world!", "42 in Lua 5.4", "every file is whole", "# "].map(expected));
    steps.extend([typed("poweroff\r"), Step::End]);
    match dialogue::hold(&mut Machine::new(Boot::IsoBios(iso)), &steps, LIMIT)? {
        Ok(_) => Ok(Verdict::passed()),
        Err(failure) => Ok(failed(&failure)),
    }
}

fn failed(failure: &dialogue::Failure) -> Verdict {
    Verdict::failed(format!("{}\nconsole:\n{}", failure.reason, tail(&failure.console, SHOWN_LINES)))
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

/// The display has told the driver of the screen what it is, by the driver of its bus; one that is dead when it is asked is not waited for.
fn steps_with_display() -> Vec<Step> {
    let display = "the display is RHT 1234 'QEMU Monitor', 325 by 203 mm, by ati_i2c";
    let dead = "service kill ati_i2c; service kill framebuffer; cat /sys/class/graphics/fb0/name\r";
    let alive = "service kill framebuffer\r";
    vec![expected("# "), typed(alive), expected(display), expected("# "), typed(dead), expected("boot\n")]
}

/// As [`steps`], with a picture of the screen when the shell on it has its prompt and all is drawn, behind other steps.
fn steps_with_screen(before: Vec<Step>, monitor: PathBuf, file: PathBuf) -> Vec<Step> {
    let settled = "until grep -q '# ' /dev/vcs1 && cp /dev/fb0 /tmp/seen && sleep 0.5 && cmp /dev/fb0 /tmp/seen; do sleep 0.1; done";
    let told = "cat /sys/class/graphics/fb0/name; md5sum </tmp/seen; echo all 'told'\r";
    let mut steps = before;
    steps.extend([expected("# "), typed(&format!("{settled}\r")), expected("# "), typed(told)]);
    steps.extend([expected("boot\n"), expected("all told"), Step::Picture { monitor, file }]);
    steps.extend(self::steps().into_iter().skip(1));
    steps
}

/// To the prompt, a command, and out.
pub fn steps() -> Vec<Step> {
    let command = "echo from $(whoami)\r";
    vec![expected("# "), typed(command), expected("from root"), expected("# "), typed("poweroff\r"), Step::End]
}

fn typed(text: &str) -> Step {
    Step::Type(text.as_bytes().to_vec())
}

fn expected(text: &str) -> Step {
    Step::Expect(text.as_bytes().to_vec())
}

/// The system in which the display's bus has a driver.
const DDC_SYSTEM: &str = "ati";

fn make_with_ddc(setting: &Setting) -> Result<PathBuf> {
    image::make(setting.workspace, setting.bundle(DDC_SYSTEM)?, None, "", "ddc.iso")
}

/// Three tests boot the same image; the first one makes it.
pub fn make(setting: &Setting) -> Result<PathBuf> {
    static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(iso) = &*made {
        return Ok(iso.clone());
    }
    let iso = image::make(setting.workspace, setting.bundle(RAMDISK_SYSTEM)?, None, "", "skink.iso")?;
    Ok(made.insert(iso).clone())
}
