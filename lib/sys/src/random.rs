//! Seeds for random number generators, from the CPU's own generator (RDRAND) and the time-stamp counter.

/// Attempts until RDRAND has had time to gather entropy (Intel SDM volume 1, 7.3.17, recommends ten).
const TRIES: usize = 10;

/// Returns 32 unpredictable bytes if the CPU has RDRAND, else bytes that differ from boot to boot.
pub fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    for (index, word) in seed.chunks_exact_mut(8).enumerate() {
        let ticks = crate::time::now_ns().rotate_left(17 * index as u32);
        let mixed = (cpu_random().unwrap_or(0) ^ ticks).wrapping_add(index as u64);
        word.copy_from_slice(&mixed.to_le_bytes());
    }
    seed
}

#[cfg(target_os = "none")]
fn cpu_random() -> Option<u64> {
    const RDRAND: u32 = 1 << 30;
    if core::arch::x86_64::__cpuid(1).ecx & RDRAND == 0 {
        return None;
    }
    (0..TRIES).find_map(|_| {
        let (value, good): (u64, u8);
        // SAFETY: the CPU has the instruction, which changes nothing but its operand and the flags.
        unsafe {
            core::arch::asm!("rdrand {value}", "setc {good}", value = out(reg) value, good = out(reg_byte) good, options(nomem, nostack));
        }
        (good != 0).then_some(value)
    })
}

#[cfg(not(target_os = "none"))]
fn cpu_random() -> Option<u64> {
    let _ = TRIES;
    None
}
