//! The C header of M3-IPC, lib/m3ipc/include/m3ipc.h, made from the tables of `lib/m3ipc`: every back end is used through it.

use m3ipc::call::{C_PREFIX, OF_THE_LIBRARY, PROTOTYPES, WITHOUT_LIMIT};
use m3ipc::descriptor::{CONTAINER_OPEN, CONTAINER_RUNNING, Flag, STRUCTURES, Structure, misc, node, rts};
use m3ipc::device::{IOCTL, PATH as DEVICE};
use m3ipc::endpoint::{DISTANCE, Endpoint, LAST_GENERATION};
use m3ipc::error::Error;
use m3ipc::message::{Field, LAYOUTS, MESSAGE_BYTES, NOTIFY};
use m3ipc::rights::{Level, Trap};
use m3ipc::settings::OWN_NODE;
use m3ipc::{descriptor, limits};
use std::fmt::{self, Display, Write};

/// Where the header is.
pub const PATH: &str = "lib/m3ipc/include/m3ipc.h";

const HEADING: &str = "\
/* M3-IPC: messages between ordinary processes of one container. This file is long because it is made, whole, from lib/m3ipc by
 * `./skink check`, which writes it anew when they differ.
 *
 * Calls return 0 or more, or one of the errors EMOL..., which are negative.
 */
#ifndef M3IPC_H
#define M3IPC_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif

#ifdef __cplusplus
extern \"C\" {
#define M3IPC_STATIC_ASSERT static_assert
#else
#define M3IPC_STATIC_ASSERT _Static_assert
#endif
";

const ENDPOINTS: &str = "\
/* The endpoint of a slot's occupant of a generation; and back. */
#define _ENDPOINT(g, p) ((int)((g) * _ENDPOINT_DISTANCE + (p)))
#define _ENDPOINT_P(e) ((((e) + NR_TASKS) % _ENDPOINT_DISTANCE) - NR_TASKS)
#define _ENDPOINT_G(e) (((e) + NR_TASKS) / _ENDPOINT_DISTANCE)
";

const BITMAPS: &str = "\
/* Slot `nr` in priv_ipc_from and priv_ipc_to. */
#define PRIV_SLOT_SET(map, nr) ((map)[((nr) + NR_TASKS) / 64] |= 1ul << (((nr) + NR_TASKS) % 64))
#define PRIV_SLOT_CLEAR(map, nr) ((map)[((nr) + NR_TASKS) / 64] &= ~(1ul << (((nr) + NR_TASKS) % 64)))
#define PRIV_SLOT_TEST(map, nr) ((map)[((nr) + NR_TASKS) / 64] >> (((nr) + NR_TASKS) % 64) & 1)
";

const DEVICE_CALLS: &str = "\
/* What calls with a message take there: the peer is in m_source. Others take an m3ipc_request. */
typedef struct m3ipc_parcel {
    long limit_ms;
    message m;
} m3ipc_parcel_t;
";

const END: &str = "
#ifdef __cplusplus
}
#endif
#endif
";

/// The header's text.
pub fn make() -> String {
    let mut header = Header(String::from(HEADING));
    header.limits();
    header.errors();
    header.message();
    header.flags("Bits of p_rts_flags.", rts::ALL);
    header.flags("Bits of p_misc_flags.", misc::ALL);
    header.flags("Bits of n_flags.", node::ALL);
    header.rights();
    for structure in STRUCTURES {
        header.structure(structure);
    }
    header.calls();
    header.device();
    header.0.push_str(END);
    header.0
}

struct Header(String);

impl Header {
    fn line(&mut self, line: fmt::Arguments) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    fn comment(&mut self, indent: &str, doc: &[&str]) {
        let text: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
        self.line(format_args!("{indent}/* {} */", text.join(" ").replace(['`', '[', ']'], "")));
    }

    fn define(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("#define {name} {value}"));
    }

    fn limits(&mut self) {
        self.line(format_args!("\n/* Limits. A slot's number is at least -NR_TASKS, and below NR_PROCS. */"));
        let numbers = [
            ("NR_NODES", limits::NODES),
            ("NR_VMS", limits::CONTAINERS),
            ("NR_TASKS", limits::TASKS),
            ("NR_PROCS", limits::PROCESSES),
            ("NR_SYS_PROCS", limits::SYSTEM_PROCESSES),
            ("NR_PROXIES", limits::PROXIES),
            ("MAXPROCNAME", limits::NAME_BYTES),
        ];
        for (name, value) in numbers {
            self.define(name, value);
        }
        self.define("MAXBUFFERS", limits::BUFFERS);
        self.define("MAXCOPYLEN", format_args!("0x{:x}", limits::MAX_COPY));
        self.define("M3IPC_VERSION", limits::VERSION);
        self.define("TIMEOUT_FOREVER", format_args!("({})", limits::FOREVER));
        self.define("TIMEOUT_NOWAIT", 0);
        self.line(format_args!("\n/* Nobody, anybody, and the caller. */"));
        for (name, endpoint) in [("NONE", Endpoint::NONE), ("ANY", Endpoint::ANY), ("SELF", Endpoint::SELF)] {
            self.define(name, format_args!("0x{:x}", endpoint.raw()));
        }
        self.define("HARDWARE", "(-1)");
        self.define("_ENDPOINT_DISTANCE", DISTANCE);
        self.define("_ENDPOINT_LAST_GENERATION", LAST_GENERATION);
        self.0.push_str(ENDPOINTS);
    }

    fn errors(&mut self) {
        self.line(format_args!("\n/* What calls fail with. */"));
        for error in Error::ALL {
            self.comment("", error.doc());
            self.define(error.c_name(), format_args!("({})", error.to_result()));
        }
        self.line(format_args!("/* X(name) for each of them. */"));
        let all: Vec<String> = Error::ALL.iter().map(|error| format!("X({})", error.c_name())).collect();
        self.define("EMOL_ERRORS(X)", all.join(" \\\n    "));
    }

    fn message(&mut self) {
        self.line(format_args!("\n/* The message: the sender's endpoint, a type, and one of ten layouts. */"));
        for (layout, number) in LAYOUTS.iter().zip(1..) {
            let fields: Vec<String> = names(layout)
                .map(|(field, name)| format!("{};", declaration(field, &format!("m{number}{name}"))))
                .collect();
            self.line(format_args!("typedef struct {{ {} }} mess_{number};", fields.join(" ")));
        }
        self.line(format_args!("typedef struct {{\n    int m_source;\n    int m_type;\n    union {{"));
        for number in 1..=LAYOUTS.len() {
            self.line(format_args!("        mess_{number} m_m{number};"));
        }
        self.line(format_args!("    }} m_u;\n}} message;"));
        self.line(format_args!("M3IPC_STATIC_ASSERT(sizeof(message) == {MESSAGE_BYTES}, \"size of message\");"));
        for (layout, number) in LAYOUTS.iter().zip(1..) {
            for (_, name) in names(layout) {
                self.line(format_args!("#define m{number}_{name} m_u.m_m{number}.m{number}{name}"));
            }
        }
        self.line(format_args!(
            "\n/* The type of a notification: NOTIFY_FROM(nr); its value is in m9_ull1, its time in m9_ull2. */"
        ));
        self.define("NOTIFY_MESSAGE", format_args!("0x{NOTIFY:x}"));
        self.define("NOTIFY_FROM(p_nr)", "(NOTIFY_MESSAGE | ((p_nr) + NR_TASKS))");
        self.define("IS_NOTIFY(type)", "(((type) & ~0xff) == NOTIFY_MESSAGE)");
    }

    fn flags(&mut self, about: &str, flags: &[Flag]) {
        self.line(format_args!("\n/* {about} */"));
        for flag in flags {
            self.comment("", &[flag.doc]);
            self.define(flag.c_name, flag.bit);
            self.define(&flag.c_name.replace("_BIT_", "_"), format_args!("(1u << {})", flag.c_name));
        }
    }

    fn rights(&mut self) {
        self.line(format_args!("\n/* The state of a container. */"));
        self.define("VM_RUNNING", CONTAINER_RUNNING);
        self.define("VM_OPEN", CONTAINER_OPEN);
        self.line(format_args!("\n/* priv_level: what a process is. */"));
        let levels = [
            ("USER_PRIV", Level::User),
            ("SERVER_PRIV", Level::Server),
            ("TASK_PRIV", Level::Task),
            ("SYSTEM_PRIV", Level::System),
            ("KERNEL_PRIV", Level::Kernel),
            ("PROXY_PRIV", Level::Proxy),
        ];
        for (name, level) in levels {
            self.define(name, level as i32);
        }
        self.line(format_args!("\n/* priv_trap_mask: calls that a process may make. */"));
        let traps = [
            ("TRAP_SEND", Trap::Send),
            ("TRAP_RECEIVE", Trap::Receive),
            ("TRAP_SENDREC", Trap::SendReceive),
            ("TRAP_NOTIFY", Trap::Notify),
            ("TRAP_REPLY", Trap::Reply),
            ("TRAP_VCOPY", Trap::Copy),
        ];
        for (name, trap) in traps {
            self.define(name, format_args!("(1u << {})", trap as u32));
        }
        self.0.push_str(BITMAPS);
    }

    fn structure(&mut self, structure: &Structure) {
        let tag = structure.c_name;
        self.line(format_args!(""));
        self.comment("", structure.doc);
        self.line(format_args!("typedef struct {tag} {{"));
        for member in structure.members {
            let count = member.count.map_or(String::new(), |count| format!("[{count}]"));
            self.comment("    ", member.doc);
            self.line(format_args!("    {} {}{count};", member.c_type, member.c_name));
        }
        self.line(format_args!("}} {tag}_t;"));
        self.line(format_args!("M3IPC_STATIC_ASSERT(sizeof({tag}_t) == {}, \"size of {tag}\");", structure.bytes));
        for descriptor::Member { c_name, offset, .. } in structure.members {
            self.line(format_args!(
                "M3IPC_STATIC_ASSERT(offsetof({tag}_t, {c_name}) == {offset}, \"{tag}.{c_name}\");"
            ));
        }
    }

    fn device(&mut self) {
        self.line(format_args!(
            "\n/* The calls by number, and the device of Linux's module: ioctl(file, M3IPC_IOCTL(number), address). For libraries; programs use the \
             functions above. */"
        ));
        for prototype in PROTOTYPES {
            self.define(&number_name(prototype.call), prototype.call as u32);
        }
        self.define("M3IPC_DEVICE", format_args!("\"{DEVICE}\""));
        self.define("M3IPC_IOCTL(call)", format_args!("(0x{IOCTL:x} + (call))"));
        self.define(
            "M3IPC_OWN_NODE",
            format_args!("\"{}\"", String::from_utf8_lossy(&OWN_NODE).trim_end_matches('\0')),
        );
        self.0.push_str(DEVICE_CALLS);
    }

    fn calls(&mut self) {
        self.line(format_args!(
            "\n/* The calls. Those with _T end with EMOLAGAIN or EMOLTIMEDOUT when they have waited so many milliseconds: 0 is not at \
             all,\n * TIMEOUT_FOREVER as long as it takes, as those without. */"
        ));
        for prototype in PROTOTYPES {
            self.comment("", prototype.doc);
            let name = prototype.c.split("_T(").next().unwrap_or_default();
            if let Some(unlimited) = WITHOUT_LIMIT.iter().find(|other| other.split('(').next() == Some(name)) {
                self.line(format_args!("{unlimited};"));
            }
            self.line(format_args!("{};", prototype.c));
        }
        for (c, doc) in OF_THE_LIBRARY {
            self.comment("", doc);
            self.line(format_args!("{c};"));
        }
    }
}

/// The name of a call's number: that of the variant, as C spells constants.
fn number_name(call: impl fmt::Debug) -> String {
    let mut name = String::from(C_PREFIX);
    for (at, letter) in format!("{call:?}").chars().enumerate() {
        if letter.is_ascii_uppercase() && at > 0 {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// The fields of a layout with the parts of their names behind the layout's.
fn names(layout: &'static [Field]) -> impl Iterator<Item = (Field, String)> {
    layout.iter().enumerate().map(|(at, field)| {
        let number = layout[..=at].iter().filter(|other| *other == field).count();
        (*field, format!("{}{number}", field.letters()))
    })
}

fn declaration(field: Field, name: &str) -> String {
    match field {
        Field::Char => format!("char {name}"),
        Field::Short => format!("short {name}"),
        Field::Int => format!("int {name}"),
        Field::Long => format!("long {name}"),
        Field::Wide => format!("unsigned long long {name}"),
        Field::Pointer => format!("char *{name}"),
        Field::Text => format!("char {name}[{}]", field.size().0),
    }
}
