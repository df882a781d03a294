//! Writes all changes into one file, each behind its number: the test that is built once can then be run with any one of them.
//!
//! A place with changes becomes `match mutant::active(&[7, 8]) { 7 => changed, 8 => changed otherwise, _ => as it was }`. Places lie
//! within others; what is inside is changed in the last arm alone, so that the text does not grow beyond measure.

use crate::find::{Change, Mutation};
use std::collections::BTreeMap;
use std::ops::Range;

/// What a crate with changes needs, at the end of its root: the number of the change to make, from the environment.
pub const SUPPORT: &str = "
/// Which change is made.
#[doc(hidden)]
pub mod skink_mutant {
    extern crate std;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static ACTIVE: AtomicUsize = AtomicUsize::new(usize::MAX);
    static REACHED: std::sync::Mutex<std::collections::BTreeSet<usize>> =
        std::sync::Mutex::new(std::collections::BTreeSet::new());

    /// The change that is made, at a place with these changes.
    #[inline]
    pub fn active(here: &[usize]) -> usize {
        let known = ACTIVE.load(Ordering::Relaxed);
        if known == usize::MAX { look(here) } else { known }
    }

    #[cold]
    fn look(here: &[usize]) -> usize {
        if let Some(file) = std::env::var_os(\"SKINK_REACHED\") {
            note(here, &file);
            return 0;
        }
        let text = std::env::var(\"SKINK_MUTANT\");
        let number = text.ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        ACTIVE.store(number, Ordering::Relaxed);
        number
    }

    /// Adds the changes of a place to the file of those that are reached.
    fn note(here: &[usize], file: &std::ffi::OsStr) {
        let mut reached = REACHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if reached.contains(&here[0]) {
            return;
        }
        reached.extend(here);
        let text: std::string::String = here.iter().map(|number| std::format!(\"{number}\\n\")).collect();
        let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
        std::io::Write::write_all(&mut file.expect(\"opens\"), text.as_bytes()).expect(\"writes\");
    }
}
";

/// A file with changes.
pub struct Instrumented {
    /// Its text.
    pub text: String,
    /// Where in the text each change stands, by number.
    pub places: Vec<(usize, Range<usize>)>,
}

/// Puts changes with their numbers (not 0) into a file. They are in the order of `find::mutations`.
pub fn instrument(text: &str, mutations: &[(usize, &Mutation)]) -> Instrumented {
    let mut by_place: BTreeMap<(usize, std::cmp::Reverse<usize>), Vec<(usize, &Mutation)>> = BTreeMap::new();
    for &(number, mutation) in mutations {
        let place = (mutation.place.start, std::cmp::Reverse(mutation.place.end));
        by_place.entry(place).or_default().push((number, mutation));
    }
    let places: Vec<_> = by_place.into_iter().map(|((start, end), changes)| (start..end.0, changes)).collect();
    let mut writer = Writer { source: text, out: Instrumented { text: String::new(), places: Vec::new() } };
    writer.stretch(0..text.len(), &places);
    writer.out
}

type Place<'a> = (Range<usize>, Vec<(usize, &'a Mutation)>);

struct Writer<'a> {
    source: &'a str,
    out: Instrumented,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.out.text.push_str(text);
    }

    /// Writes a stretch of the source with the places in it, which are in order, outer before inner.
    fn stretch(&mut self, range: Range<usize>, mut places: &[Place]) {
        let mut at = range.start;
        while let Some(((place, changes), rest)) = places.split_first() {
            let inner = rest.partition_point(|(other, _)| other.start < place.end);
            let source = self.source;
            self.push(&source[at..place.start]);
            self.place(place, changes, &rest[..inner]);
            at = place.end;
            places = &rest[inner..];
        }
        let source = self.source;
        self.push(&source[at..range.end]);
    }

    fn place(&mut self, place: &Range<usize>, changes: &[(usize, &Mutation)], inner: &[Place]) {
        let numbers: Vec<usize> = changes.iter().map(|(number, _)| *number).collect();
        let active = format!("crate::skink_mutant::active(&{numbers:?})");
        match changes[0].1.change {
            Change::Replace(_) => {
                self.push(&format!("(match {active} {{ "));
                for (number, mutation) in changes {
                    let Change::Replace(other) = &mutation.change else { continue };
                    self.push(&format!("{number} => "));
                    self.mark(*number, &format!("{{ {other} }}"));
                    self.push(" ");
                }
                self.push("_ => { ");
                self.stretch(place.clone(), inner);
                self.push(" } })");
            }
            Change::Drop => {
                let number = changes[0].0;
                self.mark(number, &format!("if {active} != {number} {{ "));
                self.stretch(place.clone(), inner);
                self.push(" }");
            }
            Change::Return(_) => {
                self.push("{ ");
                for (number, mutation) in changes {
                    let Change::Return(value) = &mutation.change else { continue };
                    self.mark(*number, &format!("if {active} == {number} {{ return {value}; }} "));
                }
            }
        }
    }

    fn mark(&mut self, number: usize, text: &str) {
        let start = self.out.text.len();
        self.push(text);
        self.out.places.push((number, start..self.out.text.len()));
    }
}

impl Instrumented {
    /// The changes that stand where the compiler complains; a drop also when it complains within the statement.
    pub fn changes_at(&self, complaint: &Range<usize>) -> Vec<usize> {
        let hit = |place: &Range<usize>| complaint.start < place.end && place.start < complaint.end;
        self.places.iter().filter(|(_, place)| hit(place)).map(|(number, _)| *number).collect()
    }

    /// The change whose place begins last before the complaint: what is to blame when none stands there.
    pub fn change_before(&self, complaint: &Range<usize>) -> Option<usize> {
        let before = self.places.iter().filter(|(_, place)| place.start <= complaint.start);
        before.max_by_key(|(_, place)| place.start).map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    fn instrumented(text: &str) -> String {
        let found = find::mutations(text).expect("is Rust");
        let numbered: Vec<_> = found.iter().enumerate().map(|(index, one)| (index + 1, one)).collect();
        let out = instrument(text, &numbered).text;
        syn::parse_file(&out).expect("is Rust still");
        out
    }

    #[test]
    fn inner_places_change_in_the_last_arm_alone() {
        let out = instrumented("fn f() { a = b < c + 1; }");
        assert_eq!(out.matches("<=").count(), 1);
        assert!(out.contains("{ b <= c + 1 }"), "{out}");
        assert!(out.contains("{ c - 1 }"), "{out}");
        assert!(out.starts_with("fn f() { if crate::skink_mutant::active(&[1]) != 1 { a = (match"), "{out}");
    }

    #[test]
    fn a_function_returns_at_once() {
        let out = instrumented("fn f() -> bool { g() }");
        assert!(out.contains("== 1 { return true; }") && out.contains("== 2 { return false; }"), "{out}");
        assert!(out.ends_with(" g() }"), "{out}");
    }

    #[test]
    fn a_complaint_finds_its_change() {
        let text = "fn f() { a + b; c(); d - e; }";
        let found = find::mutations(text).expect("is Rust");
        let numbered: Vec<_> = found.iter().enumerate().map(|(index, one)| (index + 1, one)).collect();
        let out = instrument(text, &numbered);
        let at = out.text.find("d + e").expect("was changed");
        assert_eq!(out.changes_at(&(at..at + 1)), [3]);
        let call = out.text.find("c()").expect("is there");
        assert_eq!(out.change_before(&(call..call + 1)), Some(2));
    }
}
