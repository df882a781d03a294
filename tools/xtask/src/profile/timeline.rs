//! The timeline: calls, requests and the work on them, process by process, with an arrow from each request to the work on it. In the JSON
//! form of trace events, which ui.perfetto.dev and chrome://tracing read. A microsecond there is a tick.

use super::stacks::{Stacks, frame_name};
use anyhow::Result;
use profile::recording::{Recording, Span};
use serde_json::{Value, json};

/// Writes the events.
///
/// # Errors
/// When they cannot be written as JSON.
pub fn json(recording: &Recording, stacks: &Stacks) -> Result<String> {
    let mut events: Vec<Value> = Vec::new();
    for (number, name) in stacks.actors.iter().enumerate() {
        let process = json!({"name": format!("{name} ({})", recording.actors[number].slot)});
        events.push(json!({"ph": "M", "pid": number, "name": "process_name", "args": process}));
        for (thread, title) in [(0, "works for others"), (1, "asks")] {
            events
                .push(json!({"ph": "M", "pid": number, "tid": thread, "name": "thread_name", "args": {"name": title}}));
        }
    }
    for (number, span) in recording.spans.iter().enumerate() {
        let end = span.end.min(recording.ticks);
        let (thread, name) = (thread(span), frame_name(span.what));
        events.push(json!({"ph": "X", "pid": span.actor, "tid": thread, "ts": span.begin, "dur": end - span.begin, "name": name}));
        if let Some(cause) = span.cause {
            let from = &recording.spans[cause as usize];
            let flow = |phase: &str, of: &Span, at: u64| json!({"ph": phase, "bp": "e", "id": number, "pid": of.actor, "tid": self::thread(of), "ts": at, "name": "request", "cat": "request"});
            events.push(flow("s", from, from.begin));
            events.push(flow("f", span, span.begin));
        }
    }
    Ok(serde_json::to_string(&json!({"traceEvents": events, "otherData": {"lost": recording.lost}}))?)
}

fn thread(span: &Span) -> u32 {
    u32::from(!span.is_work)
}
