//! Seeds for random number generators: the CPU's own generator (RDSEED, else RDRAND), and how long things take.
//!
//! A CPU without either leaves the jitter of the clock against the instructions between two readings. That is little: whoever keeps a
//! generator stirs in the times at which interrupts and messages arrive.

use core::hint::black_box;

/// Attempts until the CPU has had time to gather entropy (Intel SDM volume 1, 7.3.17, recommends ten for RDRAND; RDSEED runs dry sooner).
const TRIES: usize = 100;
/// Readings of the clock for one word.
const READINGS: usize = 64;

/// Returns 32 bytes: unpredictable ones if the CPU has a generator, else bytes that differ from boot to boot.
pub fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    let (now_ns, real_ns) = crate::time::both_ns();
    let mut pool = now_ns ^ real_ns.rotate_left(32);
    for word in seed.chunks_exact_mut(8) {
        pool = jitter(pool);
        word.copy_from_slice(&(cpu_random().unwrap_or(0) ^ pool).to_le_bytes());
    }
    seed
}

/// Mixes the times that the kernel takes to read the clock into `pool`.
fn jitter(mut pool: u64) -> u64 {
    for _ in 0..READINGS {
        let before = crate::time::ticks();
        black_box(crate::time::ask_for_both_ns());
        pool = mix(pool, crate::time::ticks().wrapping_sub(before));
    }
    pool
}

/// Mixes a value into a pool: each bit of both changes about half of the bits (the finalizer of splitmix64).
pub fn mix(pool: u64, value: u64) -> u64 {
    let mut mixed = (pool ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(target_os = "none")]
fn cpu_random() -> Option<u64> {
    const RDRAND: u32 = 1 << 30;
    const RDSEED: u32 = 1 << 18;
    let has_seed = core::arch::x86_64::__cpuid(0).eax >= 7 && core::arch::x86_64::__cpuid_count(7, 0).ebx & RDSEED != 0;
    let has_random = core::arch::x86_64::__cpuid(1).ecx & RDRAND != 0;
    let seeded = has_seed.then(|| (0..TRIES).find_map(|_| rdseed())).flatten();
    seeded.or_else(|| has_random.then(|| (0..TRIES).find_map(|_| rdrand())).flatten())
}

#[cfg(target_os = "none")]
macro_rules! random_instruction {
    ($name:ident) => {
        /// Returns what the instruction of this name gives, which the CPU must have; `None`: it has run dry.
        fn $name() -> Option<u64> {
            let (value, good): (u64, u8);
            // SAFETY: the CPU has the instruction, which changes nothing but its operand and the flags.
            unsafe {
                core::arch::asm!(
                    concat!(stringify!($name), " {value}"),
                    "setc {good}",
                    value = out(reg) value,
                    good = out(reg_byte) good,
                    options(nomem, nostack)
                );
            }
            (good != 0).then_some(value)
        }
    };
}

#[cfg(target_os = "none")]
random_instruction!(rdseed);
#[cfg(target_os = "none")]
random_instruction!(rdrand);

#[cfg(not(target_os = "none"))]
fn cpu_random() -> Option<u64> {
    let _ = TRIES;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the generator splitmix64 yields first and second from the seed 1234567.
    #[test]
    fn mixing_is_that_of_splitmix64() {
        let step = |seed: u64| seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        assert_eq!(
            (mix(1_234_567, 0), mix(step(1_234_567), 0)),
            (6_457_827_717_110_365_317, 3_203_168_211_198_807_973)
        );
    }

    #[test]
    fn each_bit_of_pool_and_value_changes_many() {
        let changed = |a: u64, b: u64| (mix(a, b) ^ mix(7, 9)).count_ones();
        for bit in 0..64 {
            assert!(changed(7 ^ 1 << bit, 9) > 12 && changed(7, 9 ^ 1 << bit) > 12, "{bit}");
        }
    }
}
