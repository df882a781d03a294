//! Whether a peer makes progress, looked at once a period.

/// Looks without any progress after which a peer has stalled.
pub const STALL_PERIODS: u32 = 4;

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Progress {
    /// Whether a request has been answered since the last look.
    has_progressed: bool,
    idle_looks: u32,
}

impl Progress {
    /// Notes that a request has been answered.
    #[inline]
    pub fn answered(&mut self) {
        self.has_progressed = true;
    }

    /// Looks once. Returns whether the peer has stalled; `is_asked`: requests are in flight.
    pub fn has_stalled(&mut self, is_asked: bool) -> bool {
        let progressed = core::mem::take(&mut self.has_progressed);
        self.idle_looks = if progressed || !is_asked { 0 } else { self.idle_looks + 1 };
        let stalled = self.idle_looks >= STALL_PERIODS;
        if stalled {
            self.idle_looks = 0;
        }
        stalled
    }
}
