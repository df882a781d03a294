//! Names of messages.

use abi::message::LINUX_LABELS;
use abi::{Field, linux};
use core::fmt;

/// Arguments of the Linux calls that programs mostly ask about, in order; those of others are `arg0` to `arg5`.
const ARGUMENTS: [(&str, &[&str]); 12] = [
    ("read", &["fd", "buffer", "bytes"]),
    ("write", &["fd", "buffer", "bytes"]),
    ("pread64", &["fd", "buffer", "bytes", "position"]),
    ("pwrite64", &["fd", "buffer", "bytes", "position"]),
    ("lseek", &["fd", "position", "whence"]),
    ("close", &["fd"]),
    ("fstat", &["fd", "buffer"]),
    ("fsync", &["fd"]),
    ("ioctl", &["fd", "request", "argument"]),
    ("getdents64", &["fd", "buffer", "bytes"]),
    ("mmap", &["address", "bytes", "protection", "flags", "fd", "position"]),
    ("munmap", &["address", "bytes"]),
];
const NUMBERED: [&str; 6] = ["arg0", "arg1", "arg2", "arg3", "arg4", "arg5"];

/// The label of a request, shown by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(pub u32);

impl Label {
    /// Whether it is a Linux call.
    pub fn is_linux(self) -> bool {
        self.0 < LINUX_LABELS
    }

    /// Whether it has this name: of the message alone, or with its protocol before it. Letters of either case.
    pub fn is_named(self, name: &str) -> bool {
        match abi::describe(self.0) {
            Some((protocol, info)) => match name.split_once("::") {
                Some((prefix, rest)) => {
                    prefix.eq_ignore_ascii_case(protocol.name) && rest.eq_ignore_ascii_case(info.name)
                }
                None => name.eq_ignore_ascii_case(info.name),
            },
            None => linux::name(self.0).is_some_and(|known| name.eq_ignore_ascii_case(known)),
        }
    }

    /// In which word of the request the field with this name is.
    pub fn field(self, name: &str) -> Option<usize> {
        if let Some((_, info)) = abi::describe(self.0) {
            return index(info.request, name);
        }
        let call = linux::name(self.0)?;
        let known = ARGUMENTS.iter().find(|(listed, _)| *listed == call).map_or(&[][..], |(_, names)| names);
        known.iter().position(|known| *known == name).or(NUMBERED.iter().position(|known| *known == name))
    }

    /// The name of the field in a word of the request.
    pub fn field_name(self, index: usize) -> Option<&'static str> {
        if let Some((_, info)) = abi::describe(self.0) {
            return info.request.get(index).map(|field| field.name);
        }
        let call = linux::name(self.0)?;
        let known = ARGUMENTS.iter().find(|(listed, _)| *listed == call);
        known.map_or(NUMBERED.get(index), |(_, names)| names.get(index)).copied()
    }

    /// In which word of the reply the field with this name is.
    pub fn reply_field(self, name: &str) -> Option<usize> {
        abi::describe(self.0).and_then(|(_, info)| index(info.reply, name)).map(|index| index + 1)
    }
}

fn index(fields: &[Field], name: &str) -> Option<usize> {
    fields.iter().position(|field| field.name == name)
}

/// Whether any message has this name (see [`Label::is_named`]).
pub fn exists(name: &str) -> bool {
    let messages = abi::PROTOCOLS.iter().flat_map(|protocol| protocol.messages);
    messages
        .map(|message| message.label)
        .chain(linux::CALLS.iter().map(|(number, _)| *number))
        .any(|label| Label(label).is_named(name))
}

/// Whether any message has a field with this name.
pub fn is_field(name: &str) -> bool {
    let messages = abi::PROTOCOLS.iter().flat_map(|protocol| protocol.messages);
    let mut fields = messages.flat_map(|message| message.request.iter().chain(message.reply));
    let mut arguments = ARGUMENTS.iter().flat_map(|(_, names)| names.iter()).chain(&NUMBERED);
    fields.any(|field| field.name == name) || arguments.any(|known| *known == name)
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match abi::describe(self.0) {
            Some((protocol, info)) => write!(f, "{}::{}", protocol.name, info.name),
            None => match linux::name(self.0) {
                Some(name) => f.write_str(name),
                None => write!(f, "{:#x}", self.0),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::block;

    #[test]
    fn a_message_is_named_with_and_without_its_protocol() {
        let read = Label(block::Read::LABEL);
        assert_eq!(read.to_string(), "block::Read");
        assert!(read.is_named("Read") && read.is_named("read") && read.is_named("block::Read"));
        assert!(!read.is_named("chardev::Read") && !read.is_named("Write"));
        assert!(Label(0).is_linux() && Label(0).is_named("Read") && Label(0).to_string() == "read");
    }

    #[test]
    fn fields_are_found_by_name() {
        let read = Label(block::Read::LABEL);
        assert_eq!(read.field("minor"), Some(0));
        assert_eq!(read.field("no such"), None);
        assert_eq!(
            (Label(0).field("fd"), Label(0).field("bytes"), Label(0).field("arg5")),
            (Some(0), Some(2), Some(5))
        );
        assert_eq!(Label(99_999).field("fd"), None);
    }
}
