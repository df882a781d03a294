//! The table of device nodes, as text: the system file declares each device in the entry of the service that drives it, and xtask adds
//! one word for each to the arguments of the services with `device_table = true` (vfs and devfs).
//!
//! A word is `dev:NAME=KIND,MAJOR,MINOR,MODE,SERVICE` and may end with further names of the node, each after a comma: symbolic links.
//! `dev:rtc0=char,10,135,600,rtc,rtc`. MODE is octal. xtask has checked that names and numbers are unique.

use core::fmt::{Display, Formatter, Result};

/// Limit of the names in /dev that one system declares, links and folders included: devfs has memory for so many.
pub const MAX_NAMES: usize = 128;

const PREFIX: &str = "dev:";

/// The two kinds of device nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Character devices, by the protocol `chardev`.
    Char,
    /// Block devices, by the protocol `block`.
    Block,
}

impl Kind {
    /// The kind with this name, `char` or `block`.
    pub fn from_name(name: &str) -> Option<Kind> {
        [Kind::Char, Kind::Block].into_iter().find(|kind| kind.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Char => "char",
            Kind::Block => "block",
        }
    }
}

/// One device and its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device<'a> {
    /// Name of the node in /dev.
    pub name: &'a str,
    /// Kind of the node.
    pub kind: Kind,
    /// Major number: Linux's for this device, so that programs find what they know.
    pub major: u8,
    /// Minor number, by which the driver tells its devices apart.
    pub minor: u8,
    /// Permission bits of the node.
    pub mode: u16,
    /// The service that drives it.
    pub service: &'a str,
    /// Names of symbolic links to the node, separated by commas.
    links: &'a str,
}

impl<'a> Device<'a> {
    /// A device without links; `number`: major and minor.
    pub fn new(name: &'a str, kind: Kind, number: (u8, u8), mode: u16, service: &'a str) -> Device<'a> {
        Device { name, kind, major: number.0, minor: number.1, mode, service, links: "" }
    }

    /// Reads one word of the table. `None`: it is another argument.
    pub fn parse(word: &'a str) -> Option<Device<'a>> {
        let (name, rest) = word.strip_prefix(PREFIX)?.split_once('=')?;
        let mut parts = rest.splitn(6, ',');
        let kind = Kind::from_name(parts.next()?)?;
        let (major, minor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let mode = u16::from_str_radix(parts.next()?, 8).ok()?;
        let service = parts.next()?;
        Some(Device { name, kind, major, minor, mode, service, links: parts.next().unwrap_or_default() })
    }

    /// The table among the arguments of a service.
    pub fn table(arguments: &'a str) -> impl Iterator<Item = Device<'a>> {
        arguments.split_ascii_whitespace().filter_map(Device::parse)
    }

    /// The device number: makedev(3) for numbers below 256.
    pub fn number(&self) -> u64 {
        u64::from(self.major) << 8 | u64::from(self.minor)
    }

    /// Names of symbolic links to the node.
    pub fn links(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.links.split(',').filter(|link| !link.is_empty())
    }

    /// The device with these links, separated by commas.
    pub fn with_links(self, links: &'a str) -> Self {
        Device { links, ..self }
    }
}

impl Display for Device<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Device { name, kind, major, minor, mode, service, links } = self;
        let comma = if links.is_empty() { "" } else { "," };
        write!(f, "{PREFIX}{name}={},{major},{minor},{mode:o},{service}{comma}{links}", kind.name())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    const RTC: &str = "dev:rtc0=char,10,135,600,rtc,rtc,clock";

    #[test]
    fn a_word_reads_back_as_it_was_written() {
        let rtc = Device::parse(RTC).expect("is a device");
        assert_eq!((rtc.kind, rtc.number(), rtc.mode, rtc.service), (Kind::Char, 0xa87, 0o600, "rtc"));
        assert_eq!(rtc.links().collect::<Vec<_>>(), ["rtc", "clock"]);
        assert_eq!(rtc.to_string(), RTC);
        let disk = Device::parse("dev:vda=block,254,0,660,virtio_blk").expect("is a device");
        assert_eq!((disk.links().count(), disk.to_string().as_str()), (0, "dev:vda=block,254,0,660,virtio_blk"));
    }

    #[test]
    fn other_arguments_and_malformed_words_are_no_devices() {
        let others = "root=ext2,vda dev:=x dev:a dev:a=char,1,2,666 dev:a=tape,1,2,666,x dev:a=char,256,2,666,x dev:a=char,1,2,9,x";
        assert_eq!(Device::table(others).count(), 0);
        assert_eq!(Device::table("/dev=devfs dev:a=char,1,2,666,x last").count(), 1);
    }
}
