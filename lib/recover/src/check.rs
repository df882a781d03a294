//! Check words: how a record in preserved memory is told from what a wild store has left there.

/// Odd, with bits all over: spreads what it multiplies.
pub(crate) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The check word of `words`, which lie at `place`; never 0, so that a word of zero is no record.
#[inline]
pub fn check_word(place: usize, words: impl IntoIterator<Item = u64>) -> u64 {
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(SPREAD);
    words.into_iter().fold(place as u64 ^ SPREAD, mix) | 1
}
