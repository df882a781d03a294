//! Text for people.

use abi::container::{ContainerRecord, NO_LIMIT};
use core::fmt::{self, Write};

const NS_PER_MS: u64 = 1_000_000;
const KIB: u64 = 1024;

/// Prints one line for each container.
///
/// # Errors
/// When `out` cannot be written to.
pub fn table(out: &mut impl Write, records: &[ContainerRecord]) -> fmt::Result {
    writeln!(
        out,
        "{:<16} {:>3} {:>6} {:>11} {:>17} {:>13} {:>11} {:>10} {:>5}",
        "NAME", "ID", "FIRST", "PROCESSES", "MEMORY", "DESCRIPTORS", "PIPES", "PROCESSOR", "SHARE"
    )?;
    for record in records {
        let (used, most) = (&record.used, &record.settings);
        write!(out, "{:<16} {:>3} {:>6} ", record.name.as_str(), record.number, record.first_pid)?;
        write!(out, "{:>11} ", Text::of(format_args!("{}/{}", used.processes, Most(most.processes))))?;
        let memory = format_args!("{}K/{}", used.memory_bytes / KIB, Kibibytes(most.memory_bytes));
        write!(out, "{:>17} ", Text::of(memory))?;
        write!(out, "{:>13} ", Text::of(format_args!("{}/{}", used.files, Most(most.files))))?;
        write!(out, "{:>11} ", Text::of(format_args!("{}/{}", used.pipes, Most(most.pipes))))?;
        let run = Text::of(format_args!("{}ms", used.percent / NS_PER_MS));
        writeln!(out, "{run:>10} {:>5}", Text::of(format_args!("{}%", most.percent)))?;
    }
    Ok(())
}

/// A limit.
struct Most(u64);

impl fmt::Display for Most {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NO_LIMIT => f.write_str("-"),
            number => write!(f, "{number}"),
        }
    }
}

/// A limit in bytes.
struct Kibibytes(u64);

impl fmt::Display for Kibibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NO_LIMIT => f.write_str("-"),
            bytes => write!(f, "{}K", bytes / KIB),
        }
    }
}

/// A short text, so that it can be padded as a whole.
struct Text {
    bytes: [u8; 48],
    used: usize,
}

impl Text {
    fn of(what: fmt::Arguments) -> Text {
        let mut text = Text { bytes: [0; 48], used: 0 };
        // What is longer is cut.
        let _ = text.write_fmt(what);
        text
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let to = self.bytes.get_mut(self.used..self.used + part.len()).ok_or(fmt::Error)?;
        to.copy_from_slice(part.as_bytes());
        self.used += part.len();
        Ok(())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(core::str::from_utf8(&self.bytes[..self.used]).unwrap_or("?"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::Name;
    use abi::container::Settings;

    #[test]
    fn the_table_has_a_line_for_each_container() {
        let settings = Settings { memory_bytes: 64 << 20, processes: 50, percent: 20, ..Settings::NONE };
        let used = Settings { memory_bytes: 3 << 12, processes: 2, files: 5, pipes: 1, percent: 7_900_000 };
        let name = Name::new("web").expect("is a name");
        let record = ContainerRecord { name, number: 1, first_pid: 32769, settings, used };
        let mut text = String::new();
        table(&mut text, &[record]).expect("a string can be written to");
        let expected = "\
NAME              ID  FIRST   PROCESSES            MEMORY   DESCRIPTORS       PIPES  PROCESSOR SHARE
web                1  32769        2/50        12K/65536K           5/-         1/-        7ms   20%
";
        assert_eq!(text, expected);
    }
}
