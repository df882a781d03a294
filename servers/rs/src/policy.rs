//! When a service counts as hung, when it is started again, and when rs stops doing so.

use abi::system::Service;
use alloc::collections::VecDeque;

const NS_PER_MS: u64 = 1_000_000;

/// What to do about a service's heart now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// It is not time yet.
    NotYet,
    /// Ask for a sign of life.
    Ask,
    /// It has been silent for too long.
    Silent,
}

/// What a service is seen doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// It waits for another service, which is to blame if it does not answer, and is watched itself.
    pub waits_for_service: bool,
    /// Messages it has sent and received so far.
    pub messages: u64,
}

/// A service that exchanges messages with others but does not answer is at work on something long: it may miss this many times more.
const PATIENCE_WITH_WORK: u32 = 20;

/// Heartbeats of one incarnation.
#[derive(Clone, Debug)]
pub struct Heart {
    period_ns: u64,
    limit: u32,
    next_ns: u64,
    asked: bool,
    messages: u64,
    /// Heartbeats missed in a row without any sign of work.
    pub missed: u32,
    /// All heartbeats missed in a row.
    missed_at_work: u32,
}

impl Heart {
    /// Asked every `period_ns` (0: never); hung after `limit` misses in a row.
    pub fn new(period_ns: u64, limit: u32, now_ns: u64) -> Heart {
        let (limit, next_ns) = (limit.max(1), now_ns + period_ns);
        Heart { period_ns, limit, next_ns, asked: false, messages: 0, missed: 0, missed_at_work: 0 }
    }

    /// As the system file wants it.
    pub fn of(service: &Service, now_ns: u64) -> Heart {
        Heart::new(u64::from(service.heartbeat_ms) * NS_PER_MS, service.heartbeat_misses, now_ns)
    }

    /// While a new program is on trial: so often that silence is found within half of it.
    pub fn on_trial(service: &Service, now_ns: u64) -> Heart {
        let beats = 2 * (u64::from(service.heartbeat_misses) + 1);
        let period_ns = u64::from(service.trial_ms) * NS_PER_MS / beats;
        let usual_ns = u64::from(service.heartbeat_ms) * NS_PER_MS;
        Heart::new(period_ns.min(usual_ns), service.heartbeat_misses, now_ns)
    }

    /// When to look next; `None`: never.
    pub fn deadline_ns(&self) -> Option<u64> {
        (self.period_ns > 0).then_some(self.next_ns)
    }

    /// Looks, when it is time.
    pub fn beat(&mut self, now_ns: u64, look: impl FnOnce() -> Activity) -> Beat {
        if self.period_ns == 0 || now_ns < self.next_ns {
            return Beat::NotYet;
        }
        // Counted from now: after a long pause of the whole machine everybody gets a full period.
        self.next_ns = now_ns + self.period_ns;
        let activity = look();
        let works = activity.messages != self.messages;
        self.messages = activity.messages;
        if self.asked && !activity.waits_for_service {
            self.missed = if works { 0 } else { self.missed + 1 };
            self.missed_at_work += 1;
        }
        if self.missed >= self.limit || self.missed_at_work >= self.limit.saturating_mul(PATIENCE_WITH_WORK) {
            return Beat::Silent;
        }
        self.asked = true;
        Beat::Ask
    }

    /// It has given a sign of life.
    pub fn answered(&mut self) {
        self.asked = false;
        self.missed = 0;
        self.missed_at_work = 0;
    }
}

/// How often a service may be started again.
#[derive(Clone, Debug)]
pub struct Budget {
    restarts: usize,
    window_ns: u64,
    spent: VecDeque<u64>,
}

impl Budget {
    /// `restarts` within `window_ns`; 0: none at all.
    pub fn new(restarts: u32, window_ns: u64) -> Budget {
        Budget { restarts: restarts as usize, window_ns, spent: VecDeque::new() }
    }

    /// Takes one restart, if one is left.
    #[expect(clippy::disallowed_methods, reason = "bounded by the budget: from the heap's reserve")]
    pub fn take(&mut self, now_ns: u64) -> bool {
        while self.spent.front().is_some_and(|&at| at + self.window_ns <= now_ns) {
            self.spent.pop_front();
        }
        let left = self.spent.len() < self.restarts;
        if left {
            self.spent.push_back(now_ns);
        }
        left
    }

    /// Forgets what was spent.
    pub fn reset(&mut self) {
        self.spent.clear();
    }
}

/// The longest wait before a restart.
pub const LONGEST_WAIT_NS: u64 = 10_000_000_000;
/// The wait halves with every so many first waits that pass.
const HALVED_AFTER: u64 = 32;
/// Doublings beyond this make no difference.
const MAX_DOUBLINGS: u32 = 30;

/// How long the next restart has to wait: exponential back-off that decays.
#[derive(Clone, Debug)]
pub struct Backoff {
    first_ns: u64,
    /// Deaths that count: the wait is `first_ns` doubled this often, less one; 0: none.
    level: u32,
    /// When the level was last right.
    since_ns: u64,
}

impl Backoff {
    /// The first wait is `first_ns`; 0: never a wait.
    pub fn new(first_ns: u64) -> Backoff {
        Backoff { first_ns, level: 0, since_ns: 0 }
    }

    /// Records a death. Returns how long the successor has to wait.
    pub fn died(&mut self, now_ns: u64) -> u64 {
        if self.first_ns == 0 {
            return 0;
        }
        self.decay(now_ns);
        let wait_ns = match self.level {
            0 => 0,
            level => self.first_ns.saturating_mul(1 << (level - 1)).min(LONGEST_WAIT_NS),
        };
        self.level = (self.level + 1).min(MAX_DOUBLINGS);
        wait_ns
    }

    /// Forgets earlier deaths.
    pub fn reset(&mut self) {
        self.level = 0;
    }

    fn decay(&mut self, now_ns: u64) {
        if self.level == 0 {
            self.since_ns = now_ns;
            return;
        }
        let halving_ns = self.first_ns.saturating_mul(HALVED_AFTER);
        let halvings = now_ns.saturating_sub(self.since_ns) / halving_ns;
        self.level = self.level.saturating_sub(u32::try_from(halvings).unwrap_or(u32::MAX));
        self.since_ns = if self.level == 0 { now_ns } else { self.since_ns + halvings * halving_ns };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor_tests::service;

    fn idle() -> Activity {
        Activity::default()
    }

    #[test]
    fn a_service_that_answers_is_never_silent() {
        let mut heart = Heart::new(10, 2, 0);
        for now in [10, 20, 30, 40] {
            assert_eq!(heart.beat(now, idle), Beat::Ask);
            heart.answered();
        }
    }

    #[test]
    fn a_service_is_silent_after_as_many_misses_as_its_limit() {
        let mut heart = Heart::new(10, 2, 0);
        assert_eq!(heart.beat(9, idle), Beat::NotYet);
        assert_eq!([10, 20, 30].map(|now| heart.beat(now, idle)), [Beat::Ask, Beat::Ask, Beat::Silent]);
        assert_eq!(heart.missed, 2);
    }

    #[test]
    fn waiting_for_another_service_is_no_miss() {
        let mut heart = Heart::new(10, 1, 0);
        let waits = || Activity { waits_for_service: true, messages: 0 };
        assert_eq!([10, 20, 30].map(|now| heart.beat(now, waits)), [Beat::Ask; 3]);
        assert_eq!(heart.beat(40, idle), Beat::Silent);
    }

    #[test]
    fn a_service_at_work_gets_patience_but_not_for_ever() {
        let mut heart = Heart::new(10, 1, 0);
        let beats = (1..100).map(|n| heart.beat(10 * n, || Activity { messages: n, ..idle() }));
        assert_eq!(beats.take_while(|beat| *beat == Beat::Ask).count() as u32, PATIENCE_WITH_WORK);
    }

    #[test]
    fn a_service_without_period_is_not_watched() {
        let mut heart = Heart::new(0, 3, 0);
        assert_eq!(heart.deadline_ns(), None);
        assert_eq!(heart.beat(u64::MAX, idle), Beat::NotYet);
    }

    #[test]
    fn the_budget_comes_back_as_the_window_moves_on() {
        let mut budget = Budget::new(2, 100);
        assert_eq!([0, 50, 99].map(|now| budget.take(now)), [true, true, false]);
        assert_eq!([100, 101, 150].map(|now| budget.take(now)), [true, false, true]);
    }

    #[test]
    fn the_first_restart_is_at_once_and_each_further_one_waits_twice_as_long() {
        let mut backoff = Backoff::new(10);
        assert_eq!([0, 1, 12, 33].map(|now| backoff.died(now)), [0, 10, 20, 40]);
    }

    #[test]
    fn the_wait_halves_as_time_passes() {
        let mut backoff = Backoff::new(10);
        for _ in 0..4 {
            backoff.died(0);
        }
        // Four deaths: 80 at once, 40 after one halving, none after four.
        assert_eq!(backoff.clone().died(319), 80);
        assert_eq!(backoff.clone().died(320), 40);
        assert_eq!(backoff.died(4 * 320), 0);
    }

    #[test]
    fn each_halving_takes_its_time_from_the_one_before() {
        let mut backoff = Backoff::new(10);
        for _ in 0..4 {
            backoff.died(0);
        }
        assert_eq!([320, 639].map(|now| backoff.died(now)), [40, 80]);
    }

    #[test]
    fn after_a_reset_nothing_is_waited_for() {
        let mut backoff = Backoff::new(10);
        assert_eq!([0, 0, 0].map(|now| backoff.died(now)), [0, 10, 20]);
        backoff.reset();
        assert_eq!([0, 0].map(|now| backoff.died(now)), [0, 10]);
    }

    #[test]
    fn a_service_that_dies_now_and_then_is_never_kept_waiting() {
        let mut backoff = Backoff::new(10);
        assert!((1..100).all(|n| backoff.died(n * 500) == 0));
    }

    #[test]
    fn there_is_a_longest_wait() {
        let mut backoff = Backoff::new(10_000_000);
        let longest = (0..100).map(|_| backoff.died(0)).max();
        assert_eq!(longest, Some(LONGEST_WAIT_NS));
        let mut endless = Backoff::new(u64::MAX);
        assert_eq!([0, u64::MAX - 1].map(|now| endless.died(now)), [0, LONGEST_WAIT_NS]);
    }

    #[test]
    fn without_a_first_wait_there_is_none() {
        let mut backoff = Backoff::new(0);
        assert!((0..20).all(|_| backoff.died(0) == 0));
    }

    #[test]
    fn a_service_without_restarts_gets_none() {
        assert!(!Budget::new(0, 100).take(5));
    }

    /// The deadlines and beats of a heart that is looked at whenever it wants to be, and never answers.
    fn unanswered(mut heart: Heart) -> Vec<(u64, Beat)> {
        let mut beats = Vec::new();
        while beats.last().is_none_or(|(_, beat)| *beat != Beat::Silent) {
            let at = heart.deadline_ns().expect("is watched");
            beats.push((at, heart.beat(at, idle)));
        }
        beats
    }

    fn watched(heartbeat_ms: u32, heartbeat_misses: u32, trial_ms: u32) -> Service {
        Service { heartbeat_ms, heartbeat_misses, trial_ms, ..service("uart", 20) }
    }

    #[test]
    fn a_heart_beats_as_the_system_file_says() {
        let beats = unanswered(Heart::of(&watched(10, 2, 50), 7));
        assert_eq!(beats, [(10_000_007, Beat::Ask), (20_000_007, Beat::Ask), (30_000_007, Beat::Silent)]);
        assert_eq!(Heart::of(&watched(0, 2, 50), 7).deadline_ns(), None);
        assert_eq!(unanswered(Heart::new(10, 0, 0)), [(10, Beat::Ask), (20, Beat::Silent)], "at least one miss");
    }

    #[test]
    fn silence_on_trial_is_found_within_half_of_the_trial() {
        for (misses, period_ms) in [(1, 15), (2, 10), (4, 6)] {
            let beats = unanswered(Heart::on_trial(&watched(1000, misses, 60), 5));
            assert_eq!(beats[0], (period_ms * NS_PER_MS + 5, Beat::Ask));
            assert_eq!(beats.last(), Some(&(30 * NS_PER_MS + 5, Beat::Silent)));
        }
    }

    #[test]
    fn a_heart_on_trial_beats_at_least_as_often_as_usual() {
        for (usual_ms, expected_ms) in [(9, 9), (10, 10), (11, 10)] {
            let heart = Heart::on_trial(&watched(usual_ms, 2, 60), 0);
            assert_eq!(heart.deadline_ns(), Some(expected_ms * NS_PER_MS));
        }
    }

    #[test]
    fn the_next_beat_is_a_full_period_after_a_late_one() {
        let mut heart = Heart::new(10, 2, 5);
        assert_eq!(heart.deadline_ns(), Some(15));
        assert_eq!(heart.beat(14, idle), Beat::NotYet);
        assert_eq!(heart.deadline_ns(), Some(15));
        assert_eq!(heart.beat(100, idle), Beat::Ask);
        assert_eq!(heart.deadline_ns(), Some(110));
    }

    #[test]
    fn an_answer_forgets_all_misses() {
        let mut heart = Heart::new(10, 2, 0);
        for round in 0..30 {
            let at = 20 * round;
            let works = || Activity { messages: round, ..idle() };
            assert_eq!([at + 10, at + 20].map(|now| heart.beat(now, works)), [Beat::Ask; 2]);
            heart.answered();
            assert_eq!(heart.missed, 0);
        }
    }

    #[test]
    fn a_sign_of_work_forgives_earlier_misses() {
        let mut heart = Heart::new(10, 2, 0);
        for (now, messages, missed) in [(10, 0, 0), (20, 0, 1), (30, 1, 0), (40, 1, 1)] {
            assert_eq!(heart.beat(now, || Activity { messages, ..idle() }), Beat::Ask);
            assert_eq!(heart.missed, missed, "at {now}");
        }
        assert_eq!(heart.beat(50, || Activity { messages: 1, ..idle() }), Beat::Silent);
    }

    #[test]
    fn the_budget_is_whole_again_after_a_reset() {
        let mut budget = Budget::new(2, 100);
        assert_eq!([0, 1, 2].map(|now| budget.take(now)), [true, true, false]);
        budget.reset();
        assert_eq!([3, 4, 5].map(|now| budget.take(now)), [true, true, false]);
    }

    #[test]
    fn a_wait_that_has_decayed_decays_on_from_there() {
        let mut forgotten = Backoff::new(10);
        // Forgotten at 320; the next halving is counted from the next death.
        assert_eq!([0, 639, 950].map(|now| forgotten.died(now)), [0, 0, 10]);
        let mut remembered = Backoff::new(10);
        assert_eq!([0, 0, 639, 650].map(|now| remembered.died(now)), [0, 10, 10, 10]);
    }

    #[test]
    fn the_shortest_period_is_watched() {
        let mut heart = Heart::new(1, 1, 0);
        assert_eq!(heart.deadline_ns(), Some(1));
        assert_eq!([1, 2].map(|now| heart.beat(now, idle)), [Beat::Ask, Beat::Silent]);
    }
}
