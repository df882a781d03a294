//! The tables as they stand in docs/performance.md. A section is written there as soon as it has been measured, and the picture is drawn of all.

use super::chart::{Bar, Bars};

/// What begins a section.
const HEADING: &str = "\n### ";

/// The page's tables with another introduction before them.
pub fn with_introduction(tables: &str, introduction: &str) -> String {
    let sections = tables.find(HEADING).map_or("", |start| &tables[start..]);
    format!("{introduction}{sections}")
}

/// The tables with this section, which begins with its heading, in place of the one of the same title, or behind the others.
pub fn with_section(tables: &str, title: &str, section: &str) -> String {
    let heading = format!("{HEADING}{title}\n");
    let Some(start) = tables.find(&heading) else { return format!("{tables}{section}") };
    let rest = &tables[start + heading.len()..];
    let after = rest.find(HEADING).map_or("", |end| &rest[end..]);
    format!("{}{section}{after}", &tables[..start])
}

/// What the picture shows of them.
pub fn bars(tables: &str) -> Vec<Bars> {
    let sections = tables.split(HEADING).skip(1);
    let read = |section: &str| {
        let (title, table) = section.split_once('\n').unwrap_or((section, ""));
        Bars { title: title.to_string(), bars: table.lines().filter_map(bar).collect() }
    };
    sections.map(read).collect()
}

/// The row `| name | Skink | Linux | ratio | ...`, if it is one of an operation.
fn bar(line: &str) -> Option<Bar> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [_, name, skink, _, ratio, ..] = cells[..] else { return None };
    let ratio = ratio.parse().ok().filter(|_| !skink.is_empty())?;
    Some(Bar { name: name.to_string(), ratio })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "| | Skink | Linux | ratio | real time |\n|---|---|---|---|---|\n";

    fn section(title: &str, ratio: &str) -> String {
        let mean = "| geometric mean | | | 0.86 | 1.9 |";
        format!("\n### {title}\n\n{ROWS}| op of {title} | 1,204 | 2,000 | {ratio} | 2 (1–3) |\n{mean}\n")
    }

    #[test]
    fn one_section_is_replaced_and_the_others_stay() {
        let tables = format!("same\n{}{}{}", section("a", "0.50"), section("b", "2.00"), section("c", "1.00"));
        for title in ["a", "b", "c"] {
            let new = with_section(&tables, title, &section(title, "3.00"));
            let ratios: Vec<f64> = bars(&new).iter().map(|bars| bars.bars[0].ratio).collect();
            let expected = [("a", 0.5), ("b", 2.0), ("c", 1.0)].map(|(own, old)| if own == title { 3.0 } else { old });
            assert_eq!(ratios, expected);
            assert!(new.starts_with("same\n") && new.len() == tables.len());
        }
        let new = with_introduction(&with_section(&tables, "d", &section("d", "4.00")), "other\n");
        assert!(new.starts_with("other\n\n### a\n"));
        assert_eq!(bars(&new).iter().map(|bars| bars.title.as_str()).collect::<String>(), "abcd");
        assert!(bars(&new).iter().all(|bars| bars.bars.len() == 1), "neither head nor mean");
    }
}
