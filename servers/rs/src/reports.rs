//! The newest crash reports, in memory that was allocated when rs started.

use abi::Name;
use abi::rs::{REPORT_BYTES, ReportHead};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// How many are kept.
const KEPT: usize = 8;
const TEXT_BYTES: usize = REPORT_BYTES - size_of::<ReportHead>();

/// A report's text: what is too long for it is left out.
#[derive(Debug)]
pub struct Text(String);

impl Text {
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    fn new() -> Text {
        Text(String::with_capacity(TEXT_BYTES))
    }
}

impl fmt::Write for Text {
    #[expect(clippy::disallowed_methods, reason = "the room is there")]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = TEXT_BYTES - self.0.len();
        let end = (0..=room.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        self.0.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// One report.
#[derive(Debug)]
pub struct Report {
    /// Its number since boot, from 1; 0: this place has not been used.
    pub number: u64,
    /// The service.
    pub name: Name,
    text: Text,
}

impl Report {
    /// Its text.
    pub fn text(&self) -> &str {
        &self.text.0
    }

    /// What stands before the text.
    pub fn head(&self) -> ReportHead {
        ReportHead { number: self.number, name: self.name, bytes: self.text.0.len() as u64 }
    }
}

/// All that are kept.
#[derive(Debug)]
pub struct Reports {
    places: Vec<Report>,
    last: u64,
}

impl Reports {
    /// None yet.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new() -> Reports {
        let empty = || Report { number: 0, name: Name::default(), text: Text::new() };
        Reports { places: (0..KEPT).map(|_| empty()).collect(), last: 0 }
    }

    /// Adds a report in the place of the oldest one. `write` makes its text from its number.
    pub fn add(&mut self, name: Name, write: impl FnOnce(&mut Text, u64) -> fmt::Result) {
        self.last += 1;
        let place = &mut self.places[(self.last % KEPT as u64) as usize];
        place.number = self.last;
        place.name = name;
        place.text.0.clear();
        // What did not fit is left out; the important things come first.
        let _ = write(&mut place.text, self.last);
    }

    /// The newest report of a service.
    pub fn newest_of(&self, name: Name) -> Option<&Report> {
        self.all().filter(|report| report.name == name).max_by_key(|report| report.number)
    }

    /// The report with this number, or if it is gone the oldest after it.
    pub fn from(&self, number: u64) -> Option<&Report> {
        self.all().filter(|report| report.number >= number).min_by_key(|report| report.number)
    }

    fn all(&self) -> impl Iterator<Item = &Report> {
        self.places.iter().filter(|report| report.number > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write;

    fn name(text: &str) -> Name {
        Name::new(text).expect("is a name")
    }

    #[test]
    fn the_newest_report_of_a_service_is_found() {
        let mut reports = Reports::new();
        for (service, text) in [("uart", "one"), ("rtc", "two"), ("uart", "three")] {
            reports.add(name(service), |to, number| write!(to, "{number}: {text}"));
        }
        assert_eq!(reports.newest_of(name("uart")).map(Report::text), Some("3: three"));
        assert_eq!(reports.newest_of(name("rtc")).map(Report::text), Some("2: two"));
        assert!(reports.newest_of(name("ds")).is_none());
    }

    #[test]
    fn a_reader_that_is_late_gets_the_oldest_that_is_kept() {
        let mut reports = Reports::new();
        assert!(reports.from(0).is_none(), "places that were never used are no reports");
        for _ in 0..10 {
            reports.add(name("uart"), |_, _| Ok(()));
        }
        assert_eq!(reports.from(1).map(|report| report.number), Some(3));
        assert_eq!(reports.from(10).map(|report| report.number), Some(10));
        assert!(reports.from(11).is_none());
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let mut reports = Reports::new();
        reports.add(name("uart"), |to, _| (0..1000).try_for_each(|_| to.write_str("ünïcödé")));
        let report = reports.newest_of(name("uart")).expect("was added");
        assert!(report.text().len() <= TEXT_BYTES && report.text().len() > TEXT_BYTES - 4);
        assert_eq!(report.head().bytes, report.text().len() as u64);
    }

    #[test]
    fn a_new_report_takes_the_place_of_the_oldest() {
        let mut reports = Reports::new();
        for number in 1..=9 {
            let service = if number == 1 { "rtc" } else { "uart" };
            reports.add(name(service), |to, given| {
                assert_eq!(given, number);
                write!(to, "text {given}")
            });
        }
        assert!(reports.newest_of(name("rtc")).is_none());
        let kept: Vec<_> = (0..=9).map(|number| reports.from(number).map(|report| report.number)).collect();
        assert_eq!(kept, [2, 2, 2, 3, 4, 5, 6, 7, 8, 9].map(Some));
        let newest = reports.from(9).expect("was added");
        assert_eq!(newest.head(), ReportHead { number: 9, name: name("uart"), bytes: 6 });
        assert_eq!(newest.text(), "text 9");
    }

    #[test]
    fn a_text_that_fits_exactly_is_whole_and_one_byte_more_is_an_error() {
        for (extra, result) in [(0, Ok(())), (1, Err(fmt::Error))] {
            let mut reports = Reports::new();
            let long = "x".repeat(TEXT_BYTES - 3);
            let end = "y".repeat(3 + extra);
            reports.add(name("uart"), |to, _| {
                assert_eq!(to.write_str(&long), Ok(()));
                assert_eq!(to.write_str(&end), result);
                to.write_str("")
            });
            let text = reports.from(1).expect("was added").text();
            assert_eq!((text.len(), text.ends_with("xyyy")), (TEXT_BYTES, true));
        }
    }

    #[test]
    fn no_character_is_cut_in_two() {
        let mut reports = Reports::new();
        let long = "x".repeat(TEXT_BYTES - 1);
        reports.add(name("uart"), |to, _| {
            to.write_str(&long)?;
            assert_eq!(to.write_str("ü"), Err(fmt::Error));
            to.write_str("z")
        });
        let text = reports.from(1).expect("was added").text();
        assert_eq!((text.len(), text.ends_with("xz")), (TEXT_BYTES, true));
    }
}
