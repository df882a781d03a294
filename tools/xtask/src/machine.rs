//! The QEMU command line of every machine that Skink boots in.
//!
//! One kind of machine for everything: q35 with virtio disks, two serial lines, and a port through
//! which the kernel can end QEMU. TCG only: a count of instructions is what we measure.

use crate::monitor;
use crate::rootfs::EPOCH;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Where a serial line or the trace port of the machine leads.
pub enum Line {
    /// To the terminal; Ctrl-A X leaves, Ctrl-A C is QEMU's monitor.
    Terminal,
    /// To QEMU's standard output, and from its standard input.
    Stdio,
    /// To QEMU's standard error.
    Stderr,
    /// To a file; nothing can be received.
    File(PathBuf),
    /// To the listener of this Unix socket.
    Socket(PathBuf),
    /// Nowhere: the machine does not have it.
    None,
}

/// Boot medium.
pub enum Boot {
    /// The kernel's ELF file, its boot archive and its command line.
    Kernel {
        /// The kernel.
        kernel: PathBuf,
        /// The boot archive.
        archive: PathBuf,
        /// Words for the kernel's command line.
        append: Vec<String>,
    },
    /// An ISO image in the CD drive, by the machine's BIOS.
    IsoBios(PathBuf),
    /// An ISO image in the CD drive, by UEFI firmware with this file for its variables.
    IsoUefi {
        /// The image.
        iso: PathBuf,
        /// A writable copy of the firmware's variables.
        variables: PathBuf,
    },
}

impl Boot {
    /// Adds a word to the kernel's command line, if the kernel is booted without a loader.
    pub fn append(&mut self, word: &str) {
        if let Boot::Kernel { append, .. } = self {
            append.push(word.to_string());
        }
    }
}

/// What the machine shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Screen {
    /// It has none.
    #[default]
    None,
    /// It has one that nobody sees but QEMU's monitor.
    Hidden,
    /// A window.
    Window,
}

/// What shows the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Adapter {
    /// A VGA with Bochs' registers.
    #[default]
    Vga,
    /// A virtual machine's GPU.
    Virtio,
    /// Memory of the machine that it is told of by its firmware's interface, and nothing else.
    Ramfb,
    /// A graphics card whose registers no driver of a screen knows: its BIOS sets modes (VBE). Its display tells what it is by DDC.
    Card,
}

/// How the disks are connected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DiskBus {
    /// Each a virtio device.
    Virtio,
    /// By one IDE controller, at most four, on its two channels in turn.
    Ide,
}

/// A machine to start.
pub struct Machine {
    /// Its boot medium.
    pub boot: Boot,
    /// Raw disk images, the first one first.
    pub disks: Vec<PathBuf>,
    /// A further disk and the file in which QEMU records what reaches it, if there is one.
    pub recorded_disk: Option<(PathBuf, PathBuf)>,
    /// Bytes that each of them reads in a second, if there is a limit.
    pub disk_rate: Option<u32>,
    /// How they are connected.
    pub disk_bus: DiskBus,
    /// Devices are behind an IOMMU.
    pub iommu: bool,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Number of processors.
    pub processors: u32,
    /// COM1, COM2 and COM3; the third has interrupt 5, because PCs make 4 the first one's too.
    pub serial: Vec<Line>,
    /// A parallel port, and where what is printed on it goes.
    pub printer: Option<PathBuf>,
    /// Where the kernel's trace goes, byte by byte.
    pub trace: Option<PathBuf>,
    /// Time is the count of instructions.
    pub icount: bool,
    /// How they are counted: QEMU's option.
    pub icount_mode: &'static str,
    /// The screen.
    pub screen: Screen,
    /// What shows it, if there is one.
    pub adapter: Adapter,
    /// A folder with ROMs in place of QEMU's.
    pub roms: Option<PathBuf>,
    /// The socket of QEMU's monitor.
    pub monitor: Option<PathBuf>,
    /// A network card behind QEMU's user-mode network.
    pub net: bool,
    /// Wait for GDB on this TCP port before the first instruction.
    pub gdb_port: Option<u16>,
    /// More arguments, as they are.
    pub extra: Vec<OsString>,
}

/// Where OVMF's package has the firmware.
const UEFI_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
/// Where OVMF's package has the first state of the firmware's variables.
pub const UEFI_VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

impl Machine {
    /// A machine with one processor that boots `boot` and has nothing else.
    pub fn new(boot: Boot) -> Self {
        Self {
            boot,
            disks: Vec::new(),
            recorded_disk: None,
            disk_rate: None,
            disk_bus: DiskBus::Virtio,
            iommu: false,
            memory_mib: 512,
            processors: 1,
            serial: Vec::new(),
            printer: None,
            trace: None,
            icount: false,
            icount_mode: "shift=0,sleep=off",
            screen: Screen::None,
            roms: None,
            adapter: Adapter::Vga,
            monitor: None,
            net: false,
            gdb_port: None,
            extra: Vec::new(),
        }
    }

    /// The command that starts it.
    pub fn command(&self) -> Command {
        let mut qemu = Command::new("qemu-system-x86_64");
        // ERMS is off because with it `rep movsb` would count a tick for each byte.
        qemu.args(["-M", "q35", "-accel", "tcg", "-cpu", "max,-erms", "-nodefaults", "-no-reboot"]);
        qemu.args(["-m", &self.memory_mib.to_string(), "-smp", &self.processors.to_string()]);
        qemu.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        if self.iommu {
            // Before all devices that are behind it.
            qemu.args(["-device", "intel-iommu,intremap=off"]);
        }
        self.add_boot(&mut qemu);
        self.add_disks(&mut qemu);
        self.add_lines(&mut qemu);
        self.add_screen_and_net(&mut qemu);
        self.add_time(&mut qemu);
        if let Some(port) = self.gdb_port {
            qemu.args(["-gdb", &format!("tcp:127.0.0.1:{port}"), "-S"]);
        }
        qemu.args(self.monitor.iter().flat_map(|socket| monitor::option(socket)));
        qemu.args(&self.extra);
        qemu
    }

    fn add_boot(&self, qemu: &mut Command) {
        match &self.boot {
            Boot::Kernel { kernel, archive, append } => {
                qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(archive);
                qemu.args(["-append", &append.join(" ")]);
            }
            Boot::IsoBios(iso) => {
                qemu.arg("-cdrom").arg(iso);
            }
            Boot::IsoUefi { iso, variables } => {
                let flash = "if=pflash,format=raw";
                qemu.args(["-drive", &format!("{flash},readonly=on,file={UEFI_CODE}")]);
                qemu.args(["-drive", &format!("{flash},file={}", variables.display())]);
                qemu.arg("-cdrom").arg(iso);
            }
        }
    }

    fn add_disks(&self, qemu: &mut Command) {
        if self.disk_bus == DiskBus::Ide {
            qemu.args(["-device", "piix3-ide,id=ide"]);
        }
        for (index, disk) in self.disks.iter().enumerate() {
            // The image lives no longer than the run, so the host need not write it through.
            let mut file = format!("if=none,id=disk{index},format=raw,cache=unsafe,file={}", disk.display());
            if let Some(rate) = self.disk_rate {
                file.push_str(&format!(",throttling.bps-read={rate}"));
            }
            qemu.args(["-drive", &file]);
            self.add_disk_device(qemu, index);
        }
        if let Some((disk, record)) = &self.recorded_disk {
            let index = self.disks.len();
            qemu.args(["-blockdev", &format!("driver=file,node-name=image,filename={}", disk.display())]);
            qemu.args(["-blockdev", &format!("driver=file,node-name=record,filename={}", record.display())]);
            qemu.args(["-blockdev", &format!("driver=blklogwrites,node-name=disk{index},file=image,log=record")]);
            self.add_disk_device(qemu, index);
        }
    }

    fn add_disk_device(&self, qemu: &mut Command, index: usize) {
        let device = match self.disk_bus {
            DiskBus::Virtio => {
                let platform = if self.iommu { ",iommu_platform=on" } else { "" };
                format!("virtio-blk-pci,drive=disk{index},disable-legacy=on{platform}")
            }
            DiskBus::Ide => format!("ide-hd,drive=disk{index},bus=ide.{},unit={}", index % 2, index / 2),
        };
        qemu.args(["-device", &device]);
    }

    fn add_lines(&self, qemu: &mut Command) {
        const PLACES: [(u16, u8); 3] = [(0x3f8, 4), (0x2f8, 3), (0x3e8, 5)];
        for (index, (line, (port, irq))) in self.serial.iter().zip(PLACES).enumerate() {
            let id = format!("com{}", index + 1);
            let backend = match line {
                Line::Terminal => format!("stdio,id={id},mux=on,signal=off"),
                Line::Stdio => format!("stdio,id={id},signal=off"),
                Line::Stderr => format!("file,id={id},path=/dev/stderr"),
                Line::File(path) => format!("file,id={id},path={}", path.display()),
                Line::Socket(path) => format!("socket,id={id},path={}", path.display()),
                Line::None => continue,
            };
            qemu.args(["-chardev", &backend]);
            qemu.args(["-device", &format!("isa-serial,chardev={id},iobase={port:#x},irq={irq},index={index}")]);
            if matches!(line, Line::Terminal) {
                qemu.args(["-mon", &format!("chardev={id}")]);
            }
        }
        if let Some(path) = &self.printer {
            qemu.args(["-chardev", &format!("file,id=printer,path={}", path.display())]);
            qemu.args(["-device", "isa-parallel,chardev=printer"]);
        }
        if let Some(path) = &self.trace {
            qemu.args(["-debugcon", &format!("file:{}", path.display())]);
        }
    }

    fn add_screen_and_net(&self, qemu: &mut Command) {
        let display = if self.screen == Screen::Window { "gtk" } else { "none" };
        let has_vga = self.screen != Screen::None && self.adapter == Adapter::Vga;
        qemu.args(["-vga", if has_vga { "std" } else { "none" }, "-display", display]);
        if self.screen != Screen::None && self.adapter == Adapter::Card {
            qemu.args(["-device", "ati-vga,model=rv100"]);
        }
        if self.screen != Screen::None && self.adapter == Adapter::Virtio {
            let platform = if self.iommu { ",iommu_platform=on" } else { "" };
            qemu.args(["-device", &format!("virtio-gpu-pci{platform}")]);
        }
        if self.screen != Screen::None && self.adapter == Adapter::Ramfb {
            qemu.args(["-device", "ramfb"]);
            qemu.args(self.roms.iter().flat_map(|roms| ["-L".into(), roms.clone().into_os_string()]));
        }
        if self.net {
            qemu.args(["-netdev", "user,id=net0", "-device", "virtio-net-pci,netdev=net0,disable-legacy=on"]);
        }
    }

    fn add_time(&self, qemu: &mut Command) {
        if self.icount {
            qemu.args(["-icount", self.icount_mode, "-rtc", &format!("base={},clock=vm", epoch_as_date())]);
            // The processor's random numbers are the same each time, too.
            qemu.args(["-seed", "1"]);
        }
    }
}

/// QEMU wants the clock's start as a date.
fn epoch_as_date() -> &'static str {
    const { assert!(EPOCH == 1_767_225_600) };
    "2026-01-01T00:00:00"
}
