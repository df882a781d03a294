//! Writes what was read in C.
//!
//! Names: `abi::privilege::way::HAL` is `SKINK_PRIVILEGE_WAY_HAL`, the structure `PortRequest` is `struct skink_port_request`,
//! the message `Read` of the protocol `chardev` is the label `SKINK_CHARDEV_READ` and `struct skink_chardev_read`, kernel call
//! `DevIo` is `SKINK_SYS_DEVIO`. Errors have the names that C programs know.

use super::known::{self, Layout};
use super::read::{Entry, Field, Module};
use abi::call::{KERNEL_CALL_DOCS, KERNEL_CALL_NAMES};
use abi::error::ERRNOS;
use abi::{MessageInfo, PROTOCOLS, ProtocolInfo};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fmt::Write;

const HEADING: &str = "\
/* The contract of Skink for C. This file is long because it is made, whole, from abi/ by `./skink check`, which writes it anew when they differ.
 *
 * Names: abi::privilege::way::HAL is SKINK_PRIVILEGE_WAY_HAL, abi::privilege::PortRequest is struct skink_port_request. A protocol's message, say
 * Read of chardev, has its label SKINK_CHARDEV_READ, struct skink_chardev_read for words 0 and on of the request, and where the reply
 * has more than a result, struct skink_chardev_read_reply for words 1 and on of the reply. Every field of those is one word.
 * Errors are positive here; calls and replies carry them negative.
 */
#ifndef SKINK_ABI_H
#define SKINK_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Who a message goes to and comes from: slot and generation. */
typedef uint32_t endpoint_t;
/* Number of a grant. */
typedef uint32_t cp_grant_id_t;
/* A name of at most 16 bytes, padded with zeros. */
struct skink_name {
    char bytes[16];
};
";

/// Longest line of a comment.
const WIDTH: usize = 140;

/// The whole header.
///
/// # Errors
/// When two things get one name, or abi/ has changed since xtask was built.
pub fn header(modules: &[Module]) -> Result<String> {
    let mut header = Header { text: String::from(HEADING), names: BTreeSet::new() };
    for module in modules {
        header.module(module).with_context(|| format!("abi::{}", module.name))?;
    }
    header.text.push_str("\n#endif\n");
    Ok(header.text)
}

struct Header {
    text: String,
    names: BTreeSet<String>,
}

impl Header {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn name(&mut self, name: String) -> Result<String> {
        if !self.names.insert(name.clone()) {
            bail!("two things would be called {name}");
        }
        Ok(name)
    }

    fn module(&mut self, module: &Module) -> Result<()> {
        self.comment(&module.doc);
        match module.name.as_str() {
            "error" => self.errors(),
            "call" => self.kernel_calls()?,
            _ => {}
        }
        for entry in &module.entries {
            match entry {
                Entry::Heading(doc) => self.comment(doc),
                Entry::Constant { path, value, kind, doc } => self.constant(path, *value, kind, doc)?,
                Entry::Structure { name, align, fields, doc } => self.structure(name, *align, fields, doc)?,
            }
        }
        for protocol in PROTOCOLS.iter().filter(|protocol| protocol.name == module.name) {
            self.protocol(protocol)?;
        }
        Ok(())
    }

    fn errors(&mut self) {
        for (number, name) in ERRNOS {
            // A C library's header says the same of Linux's, which C allows.
            self.line(&format!("#define {name} {number}"));
        }
    }

    fn kernel_calls(&mut self) -> Result<()> {
        for ((name, call), doc) in KERNEL_CALL_NAMES.iter().zip(KERNEL_CALL_DOCS) {
            self.comment(doc);
            let name = self.name(format!("SKINK_SYS_{}", name.to_uppercase()))?;
            self.line(&format!("#define {name} {}", *call as u8));
        }
        Ok(())
    }

    fn constant(&mut self, path: &[String], value: i128, kind: &str, doc: &[String]) -> Result<()> {
        self.comment(doc);
        let name = self.name(format!("SKINK_{}", path.join("_").to_uppercase()))?;
        let suffix = match kind {
            "u64" => "ull",
            "i64" => "ll",
            "i32" => "",
            _ => "u",
        };
        let number = if value < 1024 { value.to_string() } else { format!("{value:#x}") };
        self.line(&format!("#define {name} {number}{suffix}"));
        Ok(())
    }

    fn structure(&mut self, name: &str, align: Option<u64>, fields: &[Field], doc: &[String]) -> Result<()> {
        let layout = layout_of(name, fields)?;
        let tag = self.name(format!("skink_{}", snake(name)))?;
        self.comment(doc);
        self.line(&format!("struct {tag} {{"));
        for (index, (field, place)) in fields.iter().zip(layout.fields).enumerate() {
            let align = align.filter(|_| index == 0).map_or(String::new(), |align| format!("_Alignas({align}) "));
            let count = place.count.map_or(String::new(), |count| format!("[{count}]"));
            self.indented_comment(&field.doc);
            self.line(&format!("    {align}{} {}{count};", c_type(&field.kind)?, field.name));
        }
        self.line("};");
        self.line(&format!("_Static_assert(sizeof(struct {tag}) == {}, \"size of {tag}\");", layout.bytes));
        for known::Place { name, offset, .. } in layout.fields {
            self.line(&format!("_Static_assert(offsetof(struct {tag}, {name}) == {offset}, \"{tag}.{name}\");"));
        }
        Ok(())
    }

    fn protocol(&mut self, protocol: &ProtocolInfo) -> Result<()> {
        self.comment(protocol.doc);
        for message in protocol.messages {
            self.message(protocol.name, message)?;
        }
        Ok(())
    }

    fn message(&mut self, protocol: &str, message: &MessageInfo) -> Result<()> {
        self.comment(message.doc);
        let tag = format!("skink_{protocol}_{}", snake(message.name));
        let label = self.name(tag.to_uppercase())?;
        self.line(&format!("#define {label} {:#x}u", message.label));
        self.words(&tag, message.request)?;
        self.words(&format!("{tag}_reply"), message.reply)
    }

    fn words(&mut self, tag: &str, fields: &[abi::Field]) -> Result<()> {
        if fields.is_empty() {
            return Ok(());
        }
        let tag = self.name(tag.to_string())?;
        self.line(&format!("struct {tag} {{"));
        for field in fields {
            let kind = if matches!(field.kind, "i64" | "i32") { "int64_t" } else { "uint64_t" };
            self.line(&format!("    {kind} {};", field.name));
        }
        self.line("};");
        Ok(())
    }

    /// A comment on what follows, with a blank line before it.
    fn comment(&mut self, lines: &[impl AsRef<str>]) {
        if !lines.is_empty() {
            self.line("");
            self.comment_at("", lines);
        }
    }

    fn indented_comment(&mut self, lines: &[impl AsRef<str>]) {
        self.comment_at("    ", lines);
    }

    fn comment_at(&mut self, indent: &str, lines: &[impl AsRef<str>]) {
        let text = lines.iter().map(|line| line.as_ref().trim()).collect::<Vec<_>>().join(" ");
        // What Rust's documentation marks as code or links is plain here.
        let text = text.replace(['`', '[', ']'], "").replace("/*", "/ *").replace("*/", "* /");
        if text.is_empty() {
            return;
        }
        let mut line = format!("{indent}/*");
        for word in text.split_whitespace() {
            if line.len() + 1 + word.len() > WIDTH {
                self.line(&line);
                line = format!("{indent} *");
            }
            // Writing to a String cannot fail.
            let _ = write!(line, " {word}");
        }
        self.line(&format!("{line} */"));
    }
}

fn layout_of(name: &str, fields: &[Field]) -> Result<&'static Layout> {
    let stale = || format!("{name} was another one when xtask was built");
    let layout = known::layout(name).with_context(stale)?;
    let known = layout.fields.iter().map(|place| place.name);
    if known.eq(fields.iter().map(|field| field.name.as_str())) { Ok(layout) } else { bail!(stale()) }
}

fn c_type(kind: &str) -> Result<String> {
    Ok(match kind {
        "u8" | "u16" | "u32" | "u64" => format!("uint{}_t", &kind[1..]),
        "i8" | "i16" | "i32" | "i64" => format!("int{}_t", &kind[1..]),
        "Endpoint" => "endpoint_t".to_string(),
        "GrantId" => "cp_grant_id_t".to_string(),
        _ if known::layout(kind).is_some() || kind == "Name" => {
            format!("struct skink_{}", snake(kind))
        }
        _ => bail!("the type {kind} has no form in C"),
    })
}

/// `PortRequest` becomes `port_request`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, character) in name.char_indices() {
        if character.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}
