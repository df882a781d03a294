//! The tables: who used the ticks, what calls and requests cost, and which functions.

use super::stacks::{Own, Stacks, frame_name};
use crate::performance::grouped;
use profile::recording::{Frame, Recording, Span};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Functions that are shown.
const FUNCTIONS: usize = 40;
/// Kinds of calls and of requests that are shown.
const KINDS: usize = 40;

/// How long spans of one kind took, in ascending order.
struct Latencies(Vec<u64>);

impl Latencies {
    fn of(mut spans: Vec<u64>) -> Self {
        spans.sort_unstable();
        Latencies(spans)
    }

    /// The smallest that so many hundredths do not exceed.
    fn percentile(&self, hundredths: usize) -> u64 {
        let at = (self.0.len() * hundredths).div_ceil(100).saturating_sub(1);
        self.0.get(at).copied().unwrap_or(0)
    }
}

/// All tables.
pub fn text(command: &str, recording: &Recording, stacks: &Stacks) -> String {
    let mut text = format!("{command}: {} ticks\n", grouped(recording.ticks));
    who(&mut text, recording.ticks, &stacks.own);
    calls(&mut text, recording, stacks);
    requests(&mut text, recording, stacks);
    functions(&mut text, recording.ticks, stacks);
    if recording.lost > 0 {
        let _ = writeln!(text, "\n{} calls and requests were not kept: there were too many.", recording.lost);
    }
    text
}

fn who(text: &mut String, ticks: u64, own: &BTreeMap<String, Own>) {
    let mut rows: Vec<(&String, &Own)> = own.iter().collect();
    rows.sort_by_key(|(name, own)| (u64::MAX - own.user - own.kernel, (*name).clone()));
    let _ = writeln!(text, "\n{:24}{:>16}{:>16}{:>8}", "who", "itself", "kernel for it", "%");
    for (name, own) in rows {
        let share = percent(own.user + own.kernel, ticks);
        let _ = writeln!(text, "{name:24}{:>16}{:>16}{share:>8}", grouped(own.user), grouped(own.kernel));
    }
}

fn calls(text: &mut String, recording: &Recording, stacks: &Stacks) {
    let times = by_kind(recording, stacks, |span| !span.is_work && matches!(span.what, Frame::Call(_)));
    let mut rows: Vec<_> = stacks.calls.iter().collect();
    rows.sort_by_key(|(name, calls)| (u64::MAX - calls.ticks, (*name).clone()));
    let head = ["times", "ticks", "%", "each", "entries", "switches", "p50", "p99", "max"];
    heading(text, "calls of programs", &head);
    for (key, calls) in rows.into_iter().take(KINDS) {
        let empty = Latencies::of(Vec::new());
        let latencies = times.get(key).unwrap_or(&empty);
        let count = latencies.0.len() as u64;
        let each = |sum: u64| if count == 0 { "-".to_string() } else { format!("{:.1}", sum as f64 / count as f64) };
        let (name, call) = key;
        row(
            text,
            &format!("{name} {call}"),
            &[
                grouped(count),
                grouped(calls.ticks),
                percent(calls.ticks, recording.ticks),
                calls.ticks.checked_div(count).map_or_else(|| "-".to_string(), grouped),
                each(calls.entries),
                each(calls.switches),
                grouped(latencies.percentile(50)),
                grouped(latencies.percentile(99)),
                grouped(latencies.percentile(100)),
            ],
        );
    }
    text.push_str("each: ticks of all who work for one call; entries into the kernel and loads of an address space likewise. p50 to max: from the\ncall to its return, with what others did meanwhile.\n");
}

fn requests(text: &mut String, recording: &Recording, stacks: &Stacks) {
    let is_request = |span: &Span| !span.is_work && matches!(span.what, Frame::Message(_));
    let times = by_kind(recording, stacks, is_request);
    let mut rows: Vec<_> = times.into_iter().collect();
    rows.sort_by_key(|(name, latencies)| (usize::MAX - latencies.0.len(), name.clone()));
    heading(text, "requests of services", &["times", "p50", "p99", "max"]);
    for ((name, request), latencies) in rows.into_iter().take(KINDS) {
        let [middle, high, most] = [50, 99, 100].map(|hundredths| grouped(latencies.percentile(hundredths)));
        row(text, &format!("{name} {request}"), &[grouped(latencies.0.len() as u64), middle, high, most]);
    }
}

fn functions(text: &mut String, ticks: u64, stacks: &Stacks) {
    let mut rows: Vec<_> = stacks.functions.iter().collect();
    rows.sort_by_key(|(name, own)| (u64::MAX - **own, (*name).clone()));
    heading(text, "functions themselves", &["ticks", "%"]);
    for ((whose, function), own) in rows.into_iter().take(FUNCTIONS) {
        row(text, &format!("{whose} {function}"), &[grouped(*own), percent(*own, ticks)]);
    }
}

/// Latencies of the spans that are meant and have ended, by who asked and what.
fn by_kind(
    recording: &Recording,
    stacks: &Stacks,
    is_meant: impl Fn(&Span) -> bool,
) -> BTreeMap<(String, String), Latencies> {
    let mut kinds: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for span in recording.spans.iter().filter(|span| is_meant(span) && span.end != u64::MAX) {
        let key = (stacks.actors[span.actor as usize].clone(), frame_name(span.what));
        kinds.entry(key).or_default().push(span.end - span.begin);
    }
    kinds.into_iter().map(|(kind, spans)| (kind, Latencies::of(spans))).collect()
}

fn heading(text: &mut String, title: &str, columns: &[&str]) {
    text.push('\n');
    row(text, title, &columns.iter().map(|column| (*column).to_string()).collect::<Vec<_>>());
}

fn row(text: &mut String, name: &str, columns: &[String]) {
    let _ = write!(text, "{name:40}");
    for column in columns {
        let _ = write!(text, "{column:>12}");
    }
    text.push('\n');
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}", 100.0 * part as f64 / whole.max(1) as f64)
}
