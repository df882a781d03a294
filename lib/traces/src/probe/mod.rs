//! The language of `probe`, and its evaluation.
//!
//! ```text
//! probe   = service label [ condition ] "{" action { ";" action } "}" [ probe ... ]
//! condition = clause { "||" clause };  clause = test { "&&" test };  test = field operator value | "(" condition ")"
//! action  = ( "count" | "print" | "sum" | "min" | "max" | "avg" | "hist" | "quantize" ) [ "(" field ")" ] [ "by" key { "," key } ]
//! ```
//!
//! `service` and `label` may be `*`. Fields are those of the request and the reply by their names in abi/, and `latency`, `result`, `errno`,
//! `caller`, `server`, `label`, `origin`.
//!
//! * `parse`: from the text to a [`Probe`]; every error has a place and says what would be right;
//! * `evaluate`: what the probes have found, in tables of at most [`evaluate::MAX_KEYS`] keys.

pub mod evaluate;
pub mod parse;

use alloc::string::String;
use alloc::vec::Vec;

/// A probe: which calls, under which condition, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The receiver; `None`: any.
    pub server: Option<String>,
    /// The name of the message; `None`: any.
    pub label: Option<String>,
    /// What has to be true.
    pub condition: Condition,
    /// What to do then, in order.
    pub actions: Vec<Action>,
}

/// A condition, as a sum of products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always true.
    True,
    /// A comparison; false where the field does not exist.
    Test(Field, Comparison, Value),
    /// All of them.
    All(Vec<Condition>),
    /// One of them.
    Any(Vec<Condition>),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number; times are in nanoseconds.
    Number(i64),
    /// A name of a process, a message or an error.
    Name(String),
}

/// What a call has that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Nanoseconds from the request to the reply.
    Latency,
    /// The result, negative if it is an error.
    Result,
    /// The error by its name, or 0.
    Errno,
    /// Name of the process that asked.
    Caller,
    /// Name of the receiver.
    Server,
    /// Name of the message.
    Label,
    /// Name of the process for which all is done.
    Origin,
    /// A field of the request or the reply.
    Named(String),
}

impl Field {
    /// Whether it is a text and not a number.
    pub fn is_text(&self) -> bool {
        matches!(self, Field::Errno | Field::Caller | Field::Server | Field::Label | Field::Origin)
    }
}

/// What is done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// How.
    pub kind: Kind,
    /// The number that it is done with; `None` for `count` and `print`.
    pub field: Option<Field>,
    /// Apart for each value of these.
    pub by: Vec<Field>,
    /// Its text, as the heading of its result.
    pub text: String,
}

/// Kinds of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Count,
    Sum,
    Min,
    Max,
    Average,
    /// A histogram with bars.
    Histogram,
    /// Count, p50, p99 and maximum in a line.
    Quantiles,
    /// A line for each call.
    Print,
}
