//! What probes have found.
//!
//! Each action has a table by its keys. A table has at most [`MAX_KEYS`] rows: calls with further keys are counted in one row, "others".

use super::{Action, Comparison, Condition, Field, Kind, Probe, Value};
use crate::calls::Call;
use crate::histogram::Histogram;
use crate::names::{Names, Who};
use abi::{Errno, Word};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// Rows of a table.
pub const MAX_KEYS: usize = 256;

/// The probes and their tables.
#[derive(Debug)]
pub struct Evaluation {
    probes: Vec<(Probe, Vec<Table>)>,
    tsc_hz: u64,
}

/// What one action has found.
#[derive(Debug, Default)]
struct Table {
    rows: BTreeMap<Vec<String>, Histogram>,
    others: Option<Histogram>,
    /// Calls that matched, but have no such field.
    without: u64,
}

impl Table {
    fn add(&mut self, keys: Vec<String>, value: u64) {
        let is_full = self.rows.len() >= MAX_KEYS && !self.rows.contains_key(&keys);
        let histogram = match is_full {
            true => self.others.get_or_insert_with(Histogram::new),
            false => self.rows.entry(keys).or_insert_with(Histogram::new),
        };
        histogram.add(value);
    }
}

impl Evaluation {
    /// Nothing found yet. `tsc_hz`: ticks a second.
    pub fn new(probes: Vec<Probe>, tsc_hz: u64) -> Evaluation {
        let with_tables = |probe: Probe| {
            let tables = probe.actions.iter().map(|_| Table::default()).collect();
            (probe, tables)
        };
        Evaluation { probes: probes.into_iter().map(with_tables).collect(), tsc_hz: tsc_hz.max(1) }
    }

    /// Takes a call, and writes a line for each `print` that it meets.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn take(&mut self, call: &Call, names: &Names, out: &mut impl Write) -> fmt::Result {
        let seen = Seen { call, names, tsc_hz: self.tsc_hz };
        for (probe, tables) in &mut self.probes {
            if !seen.is_meant_by(probe) || !seen.satisfies(&probe.condition) {
                continue;
            }
            for (action, table) in probe.actions.iter().zip(tables) {
                match action.kind {
                    Kind::Print => seen.print(&action.by, out)?,
                    _ => match action.field.as_ref().map_or(Some(0), |field| seen.number(field)) {
                        // A negative result counts as 0: an error is no amount.
                        Some(number) => table.add(seen.keys(&action.by), number.max(0) as u64),
                        None => table.without += 1,
                    },
                }
            }
        }
        Ok(())
    }

    /// Writes all tables.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn show(&self, out: &mut impl Write) -> fmt::Result {
        for (action, table) in self.probes.iter().flat_map(|(probe, tables)| probe.actions.iter().zip(tables)) {
            if action.kind != Kind::Print {
                show_table(out, action, table)?;
            }
        }
        Ok(())
    }
}

fn show_table(out: &mut impl Write, action: &Action, table: &Table) -> fmt::Result {
    let unit = if action.field == Some(Field::Latency) { " (ns)" } else { "" };
    writeln!(out, "{}{unit}", action.text)?;
    let mut rows: Vec<_> = table.rows.iter().collect();
    rows.sort_by_key(|(_, histogram)| core::cmp::Reverse(figure(action.kind, histogram)));
    for (keys, histogram) in rows {
        show_row(out, action.kind, &keys.join(", "), histogram)?;
    }
    if let Some(others) = &table.others {
        show_row(out, action.kind, "others", others)?;
    }
    if table.without > 0 {
        writeln!(out, "  {} calls have no such field", table.without)?;
    }
    Ok(())
}

fn show_row(out: &mut impl Write, kind: Kind, keys: &str, found: &Histogram) -> fmt::Result {
    match kind {
        Kind::Histogram => {
            writeln!(
                out,
                " {keys}: count {}, min {}, avg {}, max {}",
                found.count(),
                found.min(),
                found.mean(),
                found.max()
            )?;
            found.draw(out)
        }
        Kind::Quantiles => {
            let [p50, p99] = [50, 99].map(|percent| found.percentile(percent));
            writeln!(out, "  {keys:<32} count {} p50 {p50} p99 {p99} max {}", found.count(), found.max())
        }
        _ => writeln!(out, "  {keys:<32} {}", figure(kind, found)),
    }
}

fn figure(kind: Kind, found: &Histogram) -> u64 {
    match kind {
        Kind::Sum => found.sum(),
        Kind::Min => found.min(),
        Kind::Max => found.max(),
        Kind::Average => found.mean(),
        Kind::Count | Kind::Histogram | Kind::Quantiles | Kind::Print => found.count(),
    }
}

/// A call with what is known about it.
struct Seen<'a> {
    call: &'a Call,
    names: &'a Names,
    tsc_hz: u64,
}

impl Seen<'_> {
    fn is_meant_by(&self, probe: &Probe) -> bool {
        let is_server = |name: &String| self.names.get(self.call.server) == Who::new(name);
        probe.server.as_ref().is_none_or(is_server)
            && probe.label.as_ref().is_none_or(|name| self.call.label.is_named(name))
    }

    fn satisfies(&self, condition: &Condition) -> bool {
        match condition {
            Condition::True => true,
            Condition::All(parts) => parts.iter().all(|part| self.satisfies(part)),
            Condition::Any(parts) => parts.iter().any(|part| self.satisfies(part)),
            Condition::Test(Field::Label, comparison, Value::Name(name)) => {
                self.call.label.is_named(name) == (*comparison == Comparison::Equal)
            }
            Condition::Test(field, comparison, Value::Name(name)) => {
                (self.text(field) == *name) == (*comparison == Comparison::Equal)
            }
            Condition::Test(field, comparison, Value::Number(value)) => {
                self.number(field).is_some_and(|number| holds(*comparison, number, *value))
            }
        }
    }

    /// The number in a field; `None`: the call has no such field.
    fn number(&self, field: &Field) -> Option<i64> {
        match field {
            Field::Latency => {
                let ns = u128::from(self.call.ticks) * 1_000_000_000 / u128::from(self.tsc_hz);
                Some(i64::try_from(ns).unwrap_or(i64::MAX))
            }
            Field::Result => Some(self.call.reply[0] as i64),
            Field::Named(name) => {
                let request = self.call.label.field(name).and_then(|index| self.call.words.get(index));
                let reply = || self.call.label.reply_field(name).and_then(|index| self.call.reply.get(index));
                request.or_else(reply).map(|word| *word as i64)
            }
            Field::Errno | Field::Caller | Field::Server | Field::Label | Field::Origin => None,
        }
    }

    fn text(&self, field: &Field) -> String {
        let name = |thread| self.names.get(thread).as_str().to_string();
        match field {
            Field::Caller => name(self.call.caller),
            Field::Server => name(self.call.server),
            Field::Origin => name(self.call.origin),
            Field::Label => self.call.label.to_string(),
            Field::Errno => match Result::<u64, Errno>::from_word(self.call.reply[0]) {
                Ok(_) => "0".to_string(),
                Err(error) => error.to_string(),
            },
            _ => self.number(field).map_or("-".to_string(), |number| number.to_string()),
        }
    }

    fn keys(&self, by: &[Field]) -> Vec<String> {
        by.iter().map(|field| self.text(field)).collect()
    }

    fn print(&self, by: &[Field], out: &mut impl Write) -> fmt::Result {
        let [caller, server] = [self.call.caller, self.call.server].map(|thread| self.names.get(thread));
        let latency = self.number(&Field::Latency).unwrap_or(0);
        write!(out, "{caller} -> {server} {} = {}, {latency} ns", self.call.label, Outcome(self.call.reply[0]))?;
        by.iter().try_for_each(|field| write!(out, ", {}", self.text(field)))?;
        writeln!(out)
    }
}

struct Outcome(u64);

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Result::<u64, Errno>::from_word(self.0) {
            Ok(value) => write!(f, "{value}"),
            Err(error) => write!(f, "{error}"),
        }
    }
}

fn holds(comparison: Comparison, a: i64, b: i64) -> bool {
    match comparison {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Less => a < b,
        Comparison::AtMost => a <= b,
        Comparison::Greater => a > b,
        Comparison::AtLeast => a >= b,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;
    use crate::label::Label;
    use abi::Endpoint;
    use abi::block;
    use abi::trace::{Record, event};

    const VFS: Endpoint = Endpoint::new(8, 1);
    const DD: Endpoint = Endpoint::new(700, 2);
    const CAT: Endpoint = Endpoint::new(701, 2);

    fn names() -> Names {
        let mut names = Names::new();
        for from in [DD, CAT] {
            names.take(&Record { event: event::MESSAGE, from, to: VFS, ..Record::default() });
        }
        let text = format!("{} 5 dd\n{} 6 cat\n", DD.0, CAT.0);
        names.learn(text.as_bytes(), |thread| (thread == VFS).then(|| Who::new("vfs")));
        names
    }

    /// A read(2) of so many bytes.
    fn read(caller: Endpoint, bytes: u64, ticks: u64) -> Call {
        let words = [3, 0x7000, bytes, 0, 0, 0, 0];
        Call { caller, server: VFS, label: Label(0), words, reply: [bytes, 0, 0, 0, 0, 0, 0], ticks, origin: caller }
    }

    fn failed(caller: Endpoint, error: Errno) -> Call {
        Call { reply: [Err(error).to_word(), 0, 0, 0, 0, 0, 0], ..read(caller, 10, 5) }
    }

    /// What a probe prints, and shows in the end, of these calls. Ticks are nanoseconds.
    fn run(text: &str, calls: &[Call]) -> String {
        let mut evaluation = Evaluation::new(parse(text).expect(text), 1_000_000_000);
        let (mut out, names) = (String::new(), names());
        for call in calls {
            evaluation.take(call, &names, &mut out).expect("a string takes all");
        }
        evaluation.show(&mut out).expect("a string takes all");
        out
    }

    /// The words of each line but the first.
    fn rows(text: &str) -> Vec<Vec<String>> {
        text.lines().skip(1).map(|line| line.split_whitespace().map(String::from).collect()).collect()
    }

    #[test]
    fn calls_are_chosen_by_receiver_name_and_condition() {
        let calls = [
            read(DD, 4096, 10),
            read(DD, 8192, 20),
            read(CAT, 5000, 30),
            Call { label: Label(1), ..read(DD, 9000, 1) },
        ];
        assert_eq!(rows(&run("vfs Read bytes > 4096 { count by caller }", &calls)), [["cat", "1"], ["dd", "1"]]);
        assert_eq!(rows(&run("ext2 read { count }", &calls)), [[""; 0]; 0]);
        assert_eq!(rows(&run("* * { count by label }", &calls)), [["read", "3"], ["write", "1"]]);
        let some = "vfs read caller == dd && latency < 15 || caller == cat { sum(bytes) }";
        assert_eq!(rows(&run(some, &calls)), [["9096"]]);
        assert_eq!(rows(&run("* * label == write { count }", &calls)), [["1"]]);
    }

    #[test]
    fn each_action_has_its_figure() {
        let calls = [read(DD, 10, 100), read(DD, 30, 300)];
        for (action, figure) in
            [("count", "2"), ("sum(bytes)", "40"), ("min(bytes)", "10"), ("max(latency)", "300"), ("avg(bytes)", "20")]
        {
            assert_eq!(rows(&run(&format!("vfs read {{ {action} }}"), &calls)), [[figure]], "{action}");
        }
        let quantiles = rows(&run("* * { quantize(latency) by caller }", &calls));
        assert_eq!(quantiles[0].join(" "), "dd count 2 p50 127 p99 300 max 300");
        let bars = run("* * { hist(latency) by caller }", &calls);
        assert!(bars.starts_with("hist(latency) by caller (ns)\n dd: count 2, min 100, avg 200, max 300\n"), "{bars}");
        assert_eq!(bars.lines().count(), 2 + 3);
    }

    #[test]
    fn errors_are_named_and_are_no_amounts() {
        let calls = [failed(DD, Errno::EIO), read(DD, 10, 5), failed(CAT, Errno::ENOENT)];
        assert_eq!(rows(&run("* * { count by errno }", &calls)), [["0", "1"], ["EIO", "1"], ["ENOENT", "1"]]);
        assert_eq!(rows(&run("* * errno == EIO { count by caller }", &calls)), [["dd", "1"]]);
        assert_eq!(rows(&run("* * errno != 0 { count }", &calls)), [["2"]]);
        assert_eq!(rows(&run("* * result < 0 { count }", &calls)), [["2"]]);
        assert_eq!(rows(&run("* * { sum(result) }", &calls)), [["10"]]);
        assert_eq!(run("* * errno == EIO { print by bytes }", &calls), "dd -> vfs read = EIO, 5 ns, 10\n");
    }

    #[test]
    fn a_call_without_the_field_is_counted_apart() {
        let call = Call { label: Label(block::Flush::LABEL), ..read(DD, 1, 1) };
        let shown = run("* * { sum(bytes) } * * bytes >= 0 { count }", &[call, read(DD, 5, 1)]);
        assert!(shown.contains("1 calls have no such field"), "{shown}");
        assert!(shown.ends_with("count\n                                   1\n"), "{shown}");
    }

    #[test]
    fn a_thousand_keys_take_bounded_room_and_the_rest_is_counted() {
        let calls: Vec<Call> = (0..1000).map(|bytes| read(DD, bytes, 1)).collect();
        let shown = rows(&run("vfs read { count by bytes }", &calls));
        assert_eq!(shown.len(), MAX_KEYS + 1);
        assert_eq!(shown[MAX_KEYS], ["others", "744"]);
    }
}
