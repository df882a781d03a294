//! docs/reference.md is made from the tables of `abi`, so that it cannot say anything else than the code.

use abi::call::{KERNEL_CALL_DOCS, KERNEL_CALL_NAMES};
use abi::{Field, MessageInfo, PROTOCOLS, ProtocolInfo};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const PATH: &str = "docs/reference.md";
const HEADING: &str = "# Reference

Kernel calls and protocols, made from `abi/` by `./skink check`, which writes this file anew when they differ.
Native calls, registers and vector 33: `abi/src/message.rs` and `abi/src/call.rs`.
";

/// Writes the reference when it is not what `abi` says, and reports that it was not.
pub fn problems(root: &Path) -> Result<Option<String>> {
    let path = root.join(PATH);
    let text = render();
    if fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(None);
    }
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Some(format!("{PATH}: was not what abi/ says; it has been written anew, commit it")))
}

fn render() -> String {
    let mut text = String::from(HEADING);
    text.push_str("\n## Kernel calls\n\n| bit | name | arguments, result, errors, who may call |\n|---|---|---|\n");
    for ((name, call), doc) in KERNEL_CALL_NAMES.iter().zip(KERNEL_CALL_DOCS) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | `{name}` | {} |", *call as u8, cell(doc));
    }
    for protocol in PROTOCOLS {
        render_protocol(&mut text, protocol);
    }
    text
}

fn render_protocol(text: &mut String, protocol: &ProtocolInfo) {
    let _ = write!(text, "\n## Protocol {}\n\n{}\n", protocol.name, paragraph(protocol.doc));
    text.push_str(
        "\n| label | message | words of the request | words 1… of the reply | meaning |\n|---|---|---|---|---|\n",
    );
    for message in protocol.messages {
        render_message(text, message);
    }
}

fn render_message(text: &mut String, message: &MessageInfo) {
    let _ = writeln!(
        text,
        "| {:#x} | `{}` | {} | {} | {} |",
        message.label,
        message.name,
        fields(message.request),
        fields(message.reply),
        cell(message.doc)
    );
}

fn fields(fields: &[Field]) -> String {
    let all: Vec<String> = fields.iter().map(|field| format!("{}: {}", field.name, field.kind)).collect();
    all.join(", ")
}

fn paragraph(doc: &[&str]) -> String {
    doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// A paragraph that does not break a table.
fn cell(doc: &[&str]) -> String {
    paragraph(doc).replace('|', "\\|")
}
