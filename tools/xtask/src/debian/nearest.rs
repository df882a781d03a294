//! The names most like one that does not exist.

/// How many edits a name may be away, and how many names are suggested.
const MAX_EDITS: usize = 2;
const SUGGESTIONS: usize = 3;

/// The `names` that are at most two edits from `wanted`, the nearest first.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(usize, &str)> = names
        .filter(|name| name.len().abs_diff(wanted.len()) <= MAX_EDITS)
        .map(|name| (edits(wanted, name), name))
        .filter(|(edits, _)| *edits <= MAX_EDITS)
        .collect();
    found.sort_unstable();
    found.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

/// Bytes to insert, delete or change to make `to` of `from` (Levenshtein's distance).
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_insertions_deletions_and_changes() {
        assert_eq!(
            [edits("git", "git"), edits("gti", "git"), edits("pyton3", "python3"), edits("", "ab")],
            [0, 2, 1, 2]
        );
    }

    #[test]
    fn the_nearest_names_come_first_and_strange_ones_not_at_all() {
        let names = ["python3", "python", "pyton", "ruby"];
        assert_eq!(nearest("pyton3", names.into_iter()), ["python3", "pyton", "python"]);
    }
}
