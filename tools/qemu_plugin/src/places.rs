//! What `./skink profile` says about the kernel, as arguments of the plug-in.

use profile::Kernel;
use std::collections::HashMap;
use std::path::PathBuf;

/// Addresses in the kernel, and the rest.
pub struct Places {
    /// What the recorder wants to know.
    pub kernel: Kernel,
    /// The instruction before which the registers of a system call have been saved.
    pub syscall_saved: u64,
    /// The same of traps.
    pub trap_saved: u64,
    /// The word that points to the saved registers.
    pub current_frame: u64,
    /// The word with the page table in use.
    pub loaded: u64,
    /// The instructions that load a page table.
    pub switches: Vec<u64>,
    /// Bytes of the guest's memory.
    pub memory_bytes: u64,
    /// Where the recording goes.
    pub out: PathBuf,
}

impl Places {
    /// Reads `name=value` arguments; numbers are hexadecimal.
    ///
    /// # Errors
    /// One sentence: an argument is missing or no number.
    pub fn read(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let pairs =
            arguments.filter_map(|argument| argument.split_once('=').map(|(name, value)| (name.into(), value.into())));
        let given: HashMap<String, String> = pairs.collect();
        let text = |name: &str| given.get(name).ok_or(format!("the argument {name} is missing"));
        let number = |name: &str| hexadecimal(text(name)?);
        Ok(Places {
            kernel: Kernel { syscall_entry: number("syscall_entry")?, trap_stubs: number("trap_stubs")? },
            syscall_saved: number("syscall_saved")?,
            trap_saved: number("trap_saved")?,
            current_frame: number("current_frame")?,
            loaded: number("loaded")?,
            switches: text("switches")?.split(':').map(hexadecimal).collect::<Result<_, _>>()?,
            memory_bytes: number("memory")?,
            out: text("out")?.into(),
        })
    }
}

fn hexadecimal(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| format!("{text} is no number"))
}
