//! The boxes of a container's pairs, and who pays for each: the user whose process asked for it first. A box takes one of the broker's open files until one of the two is
//! unbound, so it counts among what a user may have (`admission`). Neighbours: `container`, which deposits them.

use m3ipc::endpoint::Number;
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;

/// Both ends of a box, the lower slot first.
pub type Ends = (Number, Number);

/// The ends of the box of two slots.
pub fn ends(one: Number, other: Number) -> Ends {
    (one.min(other), one.max(other))
}

/// The boxes of a container.
#[derive(Default)]
pub struct Boxes {
    files: BTreeMap<Ends, (OwnedFd, u32)>,
    /// How many each user pays for.
    counts: BTreeMap<u32, usize>,
}

impl Boxes {
    /// The file of a box that exists.
    pub fn get(&self, ends: Ends) -> Option<&OwnedFd> {
        self.files.get(&ends).map(|(file, _)| file)
    }

    /// All boxes, and who pays for each.
    pub fn all(&self) -> impl Iterator<Item = (Ends, &OwnedFd, u32)> {
        self.files.iter().map(|(ends, (file, uid))| (*ends, file, *uid))
    }

    /// Adds a box that this user pays for.
    pub fn add(&mut self, ends: Ends, file: OwnedFd, uid: u32) {
        self.remove(ends);
        self.files.insert(ends, (file, uid));
        *self.counts.entry(uid).or_default() += 1;
    }

    /// Removes a box; there may be none.
    pub fn remove(&mut self, ends: Ends) {
        if let Some((_, uid)) = self.files.remove(&ends)
            && let Some(count) = self.counts.get_mut(&uid)
        {
            *count -= 1;
            self.counts.retain(|_, count| *count > 0);
        }
    }

    /// The boxes of a slot.
    pub fn of(&self, number: Number) -> Vec<Ends> {
        self.files.keys().copied().filter(|(low, high)| [*low, *high].contains(&number)).collect()
    }

    /// How many boxes this user pays for.
    pub fn paid_by(&self, uid: u32) -> usize {
        self.counts.get(&uid).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_box_is_paid_for_by_one_user_until_it_is_removed() {
        let file = || OwnedFd::from(File::open("/dev/null").expect("there is one"));
        let mut boxes = Boxes::default();
        let [one, two, three] = [1, 2, 3].map(|number| Number::new(number).expect("a slot"));
        boxes.add(ends(two, one), file(), 1000);
        boxes.add(ends(one, three), file(), 1000);
        boxes.add(ends(one, three), file(), 1001);
        assert_eq!((boxes.paid_by(1000), boxes.paid_by(1001)), (1, 1));
        assert_eq!(boxes.of(one), [(one, two), (one, three)]);
        for ends in boxes.of(two) {
            boxes.remove(ends);
        }
        assert_eq!((boxes.paid_by(1000), boxes.get(ends(one, two)).is_none()), (0, true));
        boxes.remove(ends(one, two));
        assert!(boxes.get(ends(three, one)).is_some());
    }
}
