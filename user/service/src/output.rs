//! Text for people.

use abi::call::inject;
use abi::rs::{ServiceRecord, state};
use abi::{Endpoint, Errno};
use core::fmt::{self, Write};

const NS_PER_S: u64 = 1_000_000_000;

/// Prints one line for each service.
///
/// # Errors
/// When `out` cannot be written to.
pub fn table(out: &mut impl Write, records: &[ServiceRecord], now_ns: u64) -> fmt::Result {
    writeln!(out, "{:<16} {:<10} {:>8} {:>8}  LAST END", "NAME", "STATE", "RESTARTS", "UP")?;
    for record in records {
        write!(out, "{:<16} {:<10} {:>8} ", record.name.as_str(), state_name(record.state), record.restarts)?;
        match up_s(record, now_ns) {
            Some(up_s) => write!(out, "{up_s:>7}s")?,
            None => write!(out, "{:>8}", "-")?,
        }
        writeln!(out, "  {}", LastEnd(record))?;
    }
    Ok(())
}

/// Prints the whole state of one service.
///
/// # Errors
/// When `out` cannot be written to.
pub fn details(out: &mut impl Write, record: &ServiceRecord, now_ns: u64) -> fmt::Result {
    writeln!(out, "name: {}", record.name)?;
    writeln!(out, "state: {}", state_name(record.state))?;
    if record.endpoint != Endpoint::NONE {
        writeln!(out, "slot: {}", record.endpoint.slot())?;
        writeln!(out, "generation: {}", record.endpoint.generation())?;
    }
    writeln!(out, "restarts: {}", record.restarts)?;
    writeln!(out, "missed heartbeats: {}", record.missed)?;
    writeln!(out, "denials: {}", record.denials)?;
    if let Some(up_s) = up_s(record, now_ns) {
        writeln!(out, "up: {up_s}s")?;
    }
    if record.retry_ms > 0 {
        writeln!(out, "next start in: {} ms", record.retry_ms)?;
    }
    writeln!(out, "last end: {}", LastEnd(record))
}

fn up_s(record: &ServiceRecord, now_ns: u64) -> Option<u64> {
    (record.state == state::UP).then(|| now_ns.saturating_sub(record.started_ns) / NS_PER_S)
}

fn state_name(state: u32) -> &'static str {
    match state {
        state::DOWN => "down",
        state::STARTING => "starting",
        state::UP => "up",
        state::RESTARTING => "restarting",
        state::GIVEN_UP => "given up",
        _ => "?",
    }
}

struct LastEnd<'a>(&'a ServiceRecord);

impl fmt::Display for LastEnd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.0.last_status;
        match self.0.reason {
            0 => f.write_str("never"),
            1 if status < 0 => write!(f, "could not start: {}", Errno(status.unsigned_abs() as i32)),
            1 => write!(f, "exited with status {status}"),
            2 if status == inject::VECTOR as i64 => f.write_str("killed by 'service inject'"),
            2 => write!(f, "exception {status}"),
            3 => f.write_str("silent"),
            4 => f.write_str("killed"),
            5 => f.write_str("restarted with a service it depends on"),
            other => write!(f, "reason {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::Name;

    fn record() -> ServiceRecord {
        ServiceRecord {
            name: Name::new("uart").expect("is a name"),
            endpoint: Endpoint::new(11, 3),
            state: state::UP,
            restarts: 2,
            started_ns: NS_PER_S,
            last_status: 14,
            reason: 2,
            ..ServiceRecord::default()
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_service() {
        let mut text = String::new();
        let down = ServiceRecord { state: state::DOWN, reason: 0, restarts: 0, ..record() };
        table(&mut text, &[record(), down], 8 * NS_PER_S).expect("a string can be written to");
        let expected = "NAME             STATE      RESTARTS       UP  LAST END\n\
                        uart             up                2       7s  exception 14\n\
                        uart             down              0        -  never\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn details_name_slot_and_generation() {
        let mut text = String::new();
        details(&mut text, &record(), 8 * NS_PER_S).expect("a string can be written to");
        assert!(text.contains("slot: 11\ngeneration: 3\nrestarts: 2\n"));
        assert!(text.ends_with("up: 7s\nlast end: exception 14\n"));
    }
}
