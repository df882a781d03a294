//! `./skink bench growth`: what an operation costs beside few things and beside many: names, processes, descriptors, mappings, pages, timers,
//! threads. What Linux does in constant time may not grow.

use super::both::{Both, Emulation};
use super::row::{self, Row, Side};
use crate::performance::{self, grouped};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fmt::Write;

/// Its name on the command line.
pub const NAME: &str = "growth";

/// Prints lines "NAME@COUNT TICKS ROUNDS", each name with the small count before the large one.
const SCRIPT: &str = r#"
set -eo pipefail
of_names() {
    for n in 1000 $3; do
        directories $1 $n | sed "s/^directory_${n}_\([a-z_]*\)/$2: \1@$n/"
    done
}
of_names /tmp 'names, ext2' 100000
of_names /dev/shm 'names, tmpfs' 10000
for few_and_many in 'processes 10 1000' 'descriptors 10 10000' 'mappings 10 5000' 'holes 10 5000' \
    'mebibytes 1 64' 'timers 10 4000' 'threads 10 1000'; do
    set -- $few_and_many
    grows $1 $2
    grows $1 $3
    # What has ended is gone before the next begins.
    sleep 1
done
"#;

const HEAD: &str = "| beside so many | few | many | Skink: few | many | growth | Linux: few | many | growth |\n\
                    |---|---|---|---|---|---|---|---|---|\n";

/// One operation beside few and beside many.
struct Growth {
    name: String,
    few: (String, Row),
    many: (String, Row),
}

/// Measures both systems, prints the table, and writes it into docs/.
///
/// # Errors
/// When a machine fails, or the systems do not print the same rows.
pub fn bench(workspace: &Workspace) -> Result<()> {
    let both = Both::prepare(workspace)?;
    let pair = both.run(SCRIPT, Emulation::Counted)?;
    let rows = row::counted(&pair.skink, &pair.linux)?;
    let table = markdown(&pairs(rows)?);
    println!("{table}");
    performance::write(&workspace.root, NAME, &table)
}

/// Joins the rows of few and of many.
fn pairs(rows: Vec<Row>) -> Result<Vec<Growth>> {
    let mut all: Vec<Growth> = Vec::new();
    let mut small: Vec<(String, String, Row)> = Vec::new();
    for row in rows {
        let (name, count) = row.name.split_once('@').with_context(|| format!("'{}' has no count", row.name))?;
        let (name, count) = (name.to_string(), count.to_string());
        match small.iter().position(|(other, ..)| *other == name) {
            Some(at) => {
                let (name, few, row_of_few) = small.remove(at);
                all.push(Growth { name, few: (few, row_of_few), many: (count, row) });
            }
            None => small.push((name, count, row)),
        }
    }
    if let Some((name, count, _)) = small.first() {
        bail!("{name} was measured beside {count} only");
    }
    Ok(all)
}

fn markdown(all: &[Growth]) -> String {
    let mut text = HEAD.to_string();
    for Growth { name, few: (few, a), many: (many, b) } in all {
        let (skink, linux) = (sides(&a.skink, &b.skink), sides(&a.linux, &b.linux));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {name} | {few} | {many} | {skink} | {linux} |");
    }
    text
}

fn sides(few: &Side, many: &Side) -> String {
    let growth = many.ticks as f64 / few.ticks.max(1) as f64;
    format!("{} | {} | {growth:.2}", grouped(few.ticks), grouped(many.ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, skink: u64, linux: u64) -> Row {
        let side = |ticks| Side { ticks, ..Side::default() };
        Row { name: name.to_string(), skink: side(skink), linux: side(linux), wall: None }
    }

    #[test]
    fn few_and_many_of_a_name_become_one_line() {
        let rows = [row("names: stat@10", 1000, 10), row("names: list@10", 7, 7), row("names: stat@900", 2500, 10)];
        let all = pairs([rows[0].clone(), rows[2].clone()].into()).expect("both counts");
        assert!(markdown(&all).ends_with("| names: stat | 10 | 900 | 1,000 | 2,500 | 2.50 | 10 | 10 | 1.00 |\n"));
        assert!(pairs(rows.into()).is_err(), "a list of 10 names only");
    }
}
