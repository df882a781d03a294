//! From the text of probes to what they mean.

use super::{Action, Comparison, Condition, Field, Kind, Probe, Value};
use crate::label;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Limits, so that a text cannot make the evaluation of each call long.
const MAX_PROBES: usize = 16;
const MAX_ACTIONS: usize = 8;
const MAX_TESTS: usize = 32;
const MAX_DEPTH: usize = 8;
const MAX_KEYS: usize = 4;
/// Longest text.
const MAX_BYTES: usize = 4096;

const ACTIONS: [(&str, Kind); 8] = [
    ("count", Kind::Count),
    ("sum", Kind::Sum),
    ("min", Kind::Min),
    ("max", Kind::Max),
    ("avg", Kind::Average),
    ("hist", Kind::Histogram),
    ("quantize", Kind::Quantiles),
    ("print", Kind::Print),
];
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];
/// Units behind a number, and how many nanoseconds or bytes they are.
const UNITS: [(&str, i64); 7] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];

/// What is wrong, where (bytes from the beginning), and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub position: usize,
    /// What is wrong there.
    pub what: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}; {}", self.position + 1, self.what, self.hint)
    }
}

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    position: usize,
    text: &'a str,
}

struct Parser<'a> {
    text: &'a str,
    rest: usize,
    tests: usize,
}

/// Reads one or more probes.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(text: &str) -> Result<Vec<Probe>, Problem> {
    if text.len() > MAX_BYTES {
        return Err(problem(MAX_BYTES, "the text is too long", "use at most 4096 bytes"));
    }
    let mut parser = Parser { text, rest: 0, tests: 0 };
    let mut probes = Vec::new();
    while let Some(token) = parser.peek() {
        if probes.len() == MAX_PROBES {
            return Err(problem(token.position, "there are too many probes", "use at most 16"));
        }
        probes.push(parser.probe()?);
    }
    match probes.len() {
        0 => Err(problem(0, "there is no probe", "write for example: vfs read { count by caller }")),
        _ => Ok(probes),
    }
}

fn problem(position: usize, what: impl ToString, hint: impl ToString) -> Problem {
    Problem { position, what: what.to_string(), hint: hint.to_string() }
}

impl<'a> Parser<'a> {
    /// The next token, which stays; `None` at the end.
    fn peek(&self) -> Option<Token<'a>> {
        let rest = &self.text[self.rest..];
        let start = self.rest + rest.find(|letter: char| !letter.is_whitespace())?;
        let rest = &self.text[start..];
        let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':' | '.' | '-' | '/');
        let length = match rest.chars().next()? {
            first if is_word(first) => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            first => match rest.get(..2) {
                Some("==" | "!=" | "<=" | ">=" | "&&" | "||") => 2,
                _ => first.len_utf8(),
            },
        };
        Some(Token { position: start, text: &rest[..length] })
    }

    fn take(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.rest = token.position + token.text.len();
        Some(token)
    }

    /// Takes the next token if it is this one.
    fn take_if(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.text == text);
        if found {
            self.take();
        }
        found
    }

    fn need(&mut self, what: &str) -> Result<Token<'a>, Problem> {
        self.take().ok_or_else(|| problem(self.text.len(), "the text ends", format_args!("{what} has to follow")))
    }

    fn word(&mut self, what: &str) -> Result<Token<'a>, Problem> {
        let token = self.need(what)?;
        match token.text.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
            true => Ok(token),
            false => Err(wrong(token, what)),
        }
    }

    fn probe(&mut self) -> Result<Probe, Problem> {
        let server = self.name_or_any("the name of a service, or * for any")?;
        let label = self.name_or_any("the name of a message or Linux call, or * for any")?;
        if let Some((position, name)) = &label
            && !label::exists(name)
        {
            let hint =
                format_args!("the protocols are in docs/reference.md, Linux calls in lower case: read").to_string();
            return Err(problem(*position, format_args!("there is no message '{name}'"), hint));
        }
        let condition = match self.peek() {
            Some(Token { text: "{", .. }) => Condition::True,
            _ => self.any(0)?,
        };
        let token = self.need("'{' and what to do")?;
        if token.text != "{" {
            return Err(wrong(token, "'{' and what to do, or '&&' or '||'"));
        }
        let mut actions = Vec::new();
        loop {
            if actions.len() == MAX_ACTIONS {
                return Err(problem(self.rest, "there are too many actions", "use at most 8 in a probe"));
            }
            actions.push(self.action()?);
            let token = self.need("';' or '}'")?;
            match token.text {
                "}" => break,
                ";" if self.take_if("}") => break,
                ";" => {}
                _ => return Err(wrong(token, "';' or '}'")),
            }
        }
        let name = |found: Option<(usize, &str)>| found.map(|(_, name)| name.to_string());
        Ok(Probe { server: name(server), label: name(label), condition, actions })
    }

    fn name_or_any(&mut self, what: &str) -> Result<Option<(usize, &'a str)>, Problem> {
        if self.take_if("*") {
            return Ok(None);
        }
        self.word(what).map(|token| Some((token.position, token.text)))
    }

    fn any(&mut self, depth: usize) -> Result<Condition, Problem> {
        let mut parts = Vec::from([self.all(depth)?]);
        while self.take_if("||") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Condition::Any(parts) })
    }

    fn all(&mut self, depth: usize) -> Result<Condition, Problem> {
        let mut parts = Vec::from([self.test(depth)?]);
        while self.take_if("&&") {
            parts.push(self.test(depth)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Condition::All(parts) })
    }

    fn test(&mut self, depth: usize) -> Result<Condition, Problem> {
        let start = self.rest;
        self.tests += 1;
        if depth > MAX_DEPTH || self.tests > MAX_TESTS {
            return Err(problem(start, "the condition is too long", "use at most 32 comparisons, 8 deep"));
        }
        if self.take_if("(") {
            let inner = self.any(depth + 1)?;
            let token = self.need("')'")?;
            return if token.text == ")" { Ok(inner) } else { Err(wrong(token, "')', '&&' or '||'")) };
        }
        let field = self.field()?;
        let operator = self.need("a comparison")?;
        let known = COMPARISONS.iter().find(|(text, _)| *text == operator.text);
        let (_, comparison) = *known.ok_or_else(|| wrong(operator, "one of ==, !=, <, <=, >, >="))?;
        let value = self.value(&field, comparison)?;
        Ok(Condition::Test(field, comparison, value))
    }

    fn field(&mut self) -> Result<Field, Problem> {
        let token = self.word("the name of a field")?;
        Ok(match token.text {
            "latency" => Field::Latency,
            "result" => Field::Result,
            "errno" => Field::Errno,
            "caller" => Field::Caller,
            "server" => Field::Server,
            "label" => Field::Label,
            "origin" => Field::Origin,
            name if label::is_field(name) => Field::Named(name.to_string()),
            name => {
                let hint = "use latency, result, errno, caller, server, label, origin, or a field of docs/reference.md";
                return Err(problem(token.position, format_args!("there is no field '{name}'"), hint));
            }
        })
    }

    fn value(&mut self, field: &Field, comparison: Comparison) -> Result<Value, Problem> {
        let sign = if self.take_if("-") { -1 } else { 1 };
        let token = self.need("what to compare with")?;
        let starts_number = token.text.trim_start_matches('-').starts_with(|letter: char| letter.is_ascii_digit());
        if !field.is_text() || *field == Field::Errno && token.text == "0" {
            let number = number(token).and_then(|number| {
                number
                    .checked_mul(sign)
                    .ok_or_else(|| problem(token.position, "the number is too large", "use a smaller one"))
            });
            return number
                .map(|number| if field.is_text() { Value::Name("0".to_string()) } else { Value::Number(number) });
        }
        let is_word = token.text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
        if !is_word && !starts_number || sign < 0 {
            return Err(wrong(token, "a name"));
        }
        match comparison {
            Comparison::Equal | Comparison::NotEqual => Ok(Value::Name(token.text.to_string())),
            _ => Err(problem(token.position, "names have no order", "compare them with == or !=")),
        }
    }

    fn action(&mut self) -> Result<Action, Problem> {
        let token = self.word("an action: count, sum, min, max, avg, hist, quantize or print")?;
        let known = ACTIONS.iter().find(|(name, _)| *name == token.text);
        let (_, kind) = *known.ok_or_else(|| wrong(token, "count, sum, min, max, avg, hist, quantize or print"))?;
        let field = if self.take_if("(") { Some(self.argument()?) } else { None };
        let wants = !matches!(kind, Kind::Count | Kind::Print);
        match &field {
            None if wants => {
                let hint = format_args!("write for example {}(latency)", token.text).to_string();
                return Err(problem(self.rest, format_args!("'{}' needs a field", token.text), hint));
            }
            Some(_) if !wants => {
                return Err(problem(token.position, format_args!("'{}' has no field", token.text), "leave it away"));
            }
            _ => {}
        }
        let by = if self.take_if("by") { self.keys()? } else { Vec::new() };
        let text = self.text[token.position..self.rest].to_string();
        Ok(Action { kind, field, by, text })
    }

    fn argument(&mut self) -> Result<Field, Problem> {
        let position = self.peek().map_or(self.text.len(), |token| token.position);
        let field = self.field()?;
        if field.is_text() {
            return Err(problem(
                position,
                "this is a name and no number",
                "use it with 'by', or take latency or result",
            ));
        }
        let token = self.need("')'")?;
        if token.text == ")" { Ok(field) } else { Err(wrong(token, "')'")) }
    }

    fn keys(&mut self) -> Result<Vec<Field>, Problem> {
        let mut keys = Vec::from([self.field()?]);
        while self.take_if(",") {
            if keys.len() == MAX_KEYS {
                return Err(problem(self.rest, "there are too many keys", "use at most 4"));
            }
            keys.push(self.field()?);
        }
        Ok(keys)
    }
}

fn wrong(token: Token, expected: &str) -> Problem {
    problem(token.position, format_args!("'{}' cannot stand here", token.text), format_args!("expected {expected}"))
}

/// A number, decimal or with 0x, perhaps with a unit.
fn number(token: Token) -> Result<i64, Problem> {
    let wrong = || {
        problem(
            token.position,
            format_args!("'{}' is no number", token.text),
            "write for example 4096, 0x1000, 4k or 10us",
        )
    };
    let (sign, text) = match token.text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, token.text),
    };
    let magnitude = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => {
            let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
            let (digits, unit) = text.split_at(end);
            let scale = match unit {
                "" => Some(1),
                unit => UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name)).map(|(_, scale)| *scale),
            };
            digits.parse::<i64>().ok().zip(scale).and_then(|(digits, scale)| digits.checked_mul(scale))
        }
    };
    magnitude.filter(|magnitude| *magnitude >= 0).map(|magnitude| sign * magnitude).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Probe {
        parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}")).swap_remove(0)
    }

    #[test]
    fn the_example_of_the_manual_is_understood() {
        let probe = one("vfs Read bytes > 4096 { hist(latency) by caller }");
        assert_eq!((probe.server.as_deref(), probe.label.as_deref()), (Some("vfs"), Some("Read")));
        let bytes = Field::Named("bytes".into());
        assert_eq!(probe.condition, Condition::Test(bytes, Comparison::Greater, Value::Number(4096)));
        let [Action { kind, field, by, text }] = &probe.actions[..] else { panic!("one action") };
        assert_eq!((*kind, field, &by[..]), (Kind::Histogram, &Some(Field::Latency), &[Field::Caller][..]));
        assert_eq!(text, "hist(latency) by caller");
    }

    #[test]
    fn and_binds_more_than_or() {
        let probe =
            one("* * latency >= 10us && result < 0 || (caller == dd || errno != ENOENT) && bytes == 0x10 {count}");
        let Condition::Any(parts) = probe.condition else { panic!("any") };
        let [Condition::All(first), Condition::All(second)] = &parts[..] else { panic!("two products") };
        assert_eq!(first[0], Condition::Test(Field::Latency, Comparison::AtLeast, Value::Number(10_000)));
        assert_eq!(first[1], Condition::Test(Field::Result, Comparison::Less, Value::Number(0)));
        assert!(matches!(&second[0], Condition::Any(inner) if inner.len() == 2));
        assert_eq!(second[1], Condition::Test(Field::Named("bytes".into()), Comparison::Equal, Value::Number(16)));
    }

    #[test]
    fn several_probes_and_actions_are_read_in_order() {
        let probes = parse("vfs read {count by caller, result; sum(bytes);} ext2 * { print }").expect("is right");
        assert_eq!(probes.len(), 2);
        assert_eq!(probes[0].actions.iter().map(|action| action.kind).collect::<Vec<_>>(), [Kind::Count, Kind::Sum]);
        assert_eq!((probes[1].label.as_deref(), probes[1].actions[0].kind), (None, Kind::Print));
    }

    #[test]
    fn numbers_have_units_and_signs() {
        for (text, number) in [("-9", -9), ("4k", 4096), ("2m", 2 << 20), ("3ms", 3_000_000), ("0x1F", 31), ("- 7", -7)]
        {
            let probe = one(&format!("* * result == {text} {{ count }}"));
            assert_eq!(
                probe.condition,
                Condition::Test(Field::Result, Comparison::Equal, Value::Number(number)),
                "{text}"
            );
        }
    }

    #[test]
    fn every_error_has_a_place_and_says_what_would_be_right() {
        for (text, position, what, hint) in [
            ("", 0, "no probe", "for example"),
            ("vfs", 3, "ends", "message"),
            ("vfs reed { count }", 4, "no message 'reed'", "reference.md"),
            ("vfs read", 8, "ends", "field"),
            ("vfs read { }", 11, "'}'", "action"),
            ("vfs read { count", 16, "ends", "'}'"),
            ("vfs read { count ]", 17, "']'", "'}'"),
            ("vfs read bytess > 1 { count }", 9, "no field 'bytess'", "latency"),
            ("vfs read bytes = 1 { count }", 15, "'='", "=="),
            ("vfs read bytes > many { count }", 17, "'many' is no number", "4096"),
            ("vfs read caller > dd { count }", 18, "no order", "=="),
            ("vfs read bytes > 1 & { count }", 19, "'&'", "'&&'"),
            ("vfs read (bytes > 1 { count }", 20, "'{'", "')'"),
            ("vfs read { sum }", 14, "needs a field", "sum(latency)"),
            ("vfs read { count(bytes) }", 11, "has no field", "leave"),
            ("vfs read { sum(caller) }", 15, "no number", "by"),
            ("vfs read { average(bytes) }", 11, "'average'", "avg"),
            ("vfs read bytes > 99999999999999999999 { count }", 17, "no number", "4096"),
            ("{ count }", 0, "'{'", "service"),
        ] {
            let found = parse(text).expect_err(text);
            assert_eq!(found.position, position, "{text}: {found}");
            assert!(found.what.contains(what) && found.hint.contains(hint), "{text}: {found}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let nested = format!("* * {}bytes > 1{} {{ count }}", "(".repeat(100), ")".repeat(100));
        let many = format!("* * {} {{ count }}", ["bytes > 1"; 40].join(" && "));
        let keys = "* * { count by caller, caller, caller, caller, caller }".to_string();
        let actions = format!("* * {{ {} }}", ["count"; 9].join(";"));
        let probes = ["* * { count }"; 17].join(" ");
        for text in [nested, many, keys, actions, probes, " ".repeat(5000)] {
            assert!(parse(&text).is_err(), "{text}");
        }
    }

    /// Numbers that look random, the same in each run.
    fn random(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    #[test]
    fn no_text_makes_the_parser_panic_or_loop() {
        const PIECES: &str = "vfs read * { } ( ) count sum hist by , ; bytes latency caller errno > < == != >= <= = && || & | 4096 - -1 \
             0x 10us 9999999999999999999 ü \u{1F600} :: \0 \"";
        let pieces: Vec<&str> = PIECES.split(' ').collect();
        let mut seed = 7;
        for _ in 0..10_000 {
            let count = random(&mut seed) % 24;
            let text: String = (0..count)
                .flat_map(|_| {
                    [
                        pieces[random(&mut seed) as usize % pieces.len()],
                        if random(&mut seed).is_multiple_of(3) { "" } else { " " },
                    ]
                })
                .collect();
            if let Err(problem) = parse(&text) {
                assert!(problem.position <= text.len() && !problem.hint.is_empty(), "{text:?}");
                assert!(text.is_char_boundary(problem.position), "{text:?}");
            }
        }
    }

    #[test]
    fn a_right_text_with_a_letter_changed_never_panics() {
        let right: Vec<char> =
            "vfs Read bytes > 4096 && (errno == EIO || result < -1) { hist(latency) by caller; count }"
                .chars()
                .collect();
        let mut seed = 3;
        for _ in 0..5_000 {
            let mut text = right.clone();
            for _ in 0..1 + random(&mut seed) % 3 {
                let at = (random(&mut seed) % text.len() as u64) as usize;
                text[at] = char::from_u32((random(&mut seed) % 0x180) as u32).unwrap_or('x');
            }
            let _ = parse(&text.into_iter().collect::<String>());
        }
    }
}
