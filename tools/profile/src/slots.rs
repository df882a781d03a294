//! The slot of a thread, by the address at which the kernel saves its registers. The table of threads has entries of one size, so two threads
//! whose slots are known from messages locate all others.

/// Bits of an endpoint that are its slot.
const SLOT_BITS: u32 = 0xfff;

/// Returns the slot of an endpoint.
pub fn slot_of(endpoint: u32) -> u32 {
    endpoint & SLOT_BITS
}

/// The table of threads, as far as it has been located.
#[derive(Debug, Default)]
pub struct Slots {
    /// Address and slot of a thread.
    one: Option<(u64, u32)>,
    /// Address of slot 0, and bytes of an entry.
    table: Option<(u64, u64)>,
}

impl Slots {
    /// Records that the thread whose registers are saved at `frame` has this slot.
    pub fn learn(&mut self, frame: u64, slot: u32) {
        match self.one {
            _ if self.table.is_some() => {}
            Some((other, other_slot)) if other_slot != slot => {
                let (low, high) = if other < frame {
                    ((other, other_slot), (frame, slot))
                } else {
                    ((frame, slot), (other, other_slot))
                };
                let Some(slots) = high.1.checked_sub(low.1).filter(|slots| *slots > 0) else { return };
                let bytes = (high.0 - low.0) / u64::from(slots);
                self.table = low.0.checked_sub(bytes * u64::from(low.1)).map(|start| (start, bytes));
            }
            Some(_) => {}
            None => self.one = Some((frame, slot)),
        }
    }

    /// Returns the slot of the thread whose registers are saved at `frame`.
    pub fn slot(&self, frame: u64) -> Option<u32> {
        let (start, bytes) = self.table?;
        u32::try_from(frame.checked_sub(start)? / bytes).ok()
    }

    /// Returns the address at which the registers of the thread in a slot are saved.
    pub fn frame(&self, slot: u32) -> Option<u64> {
        self.table.map(|(start, bytes)| start + bytes * u64::from(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_tell_where_all_are() {
        let mut slots = Slots::default();
        slots.learn(0x1000 + 9 * 500, 9);
        assert_eq!(slots.slot(0x1000), None);
        slots.learn(0x1000 + 9 * 500, 9);
        slots.learn(0x1000 + 4 * 500, 4);
        assert_eq!(slots.slot(0x1000 + 200 * 500), Some(200));
        assert_eq!(slots.frame(7), Some(0x1000 + 7 * 500));
    }
}
