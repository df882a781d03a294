//! What is wrong with the values of a call: priorities, periods, flags. What depends on others (ids, names, processes, pools) the kernel says.
//!
//! The kernel makes values that come past here fit, so that a mistake here harms nobody.

use abi::Errno;
use abi::rt::{self, HARDWARE_IRQS, IRQS, PRIORITIES, control, error, flag, irq, mode};
use sys::Result;
use sys::rt::WORDS;

/// The first error of a call, in the order of the parameters.
///
/// # Errors
/// That of part A.
pub fn check(operation: u64, argument: u64, words: &[u64; WORDS]) -> Result<()> {
    let wrong = match operation {
        control::RTSTART | control::RESTART => start(argument),
        control::SETSVAL => refuse(argument & !mode::OPTIONS != 0, error::E_MRT_BADFLAGS),
        control::SETPATTR => process(words),
        control::SETIATTR => interrupt(argument, words),
        control::SEMALLOC => semaphore(words),
        _ => None,
    };
    wrong.map_or(Ok(()), |number| Err(Errno(number)))
}

fn refuse(wrong: bool, number: i32) -> Option<i32> {
    wrong.then_some(number)
}

fn is_time(ticks: u64) -> bool {
    (1..=rt::MAX_TICKS).contains(&ticks)
}

fn is_priority(priority: u64) -> bool {
    (1..=PRIORITIES).contains(&priority)
}

fn start(harmonic_and_refresh: u64) -> Option<i32> {
    let (harmonic, refresh) = (harmonic_and_refresh & u64::from(u32::MAX), harmonic_and_refresh >> 32);
    refuse(!is_time(harmonic), error::E_MRT_BADHARM).or(refuse(!is_time(refresh), error::E_MRT_BADRFSH))
}

fn process(words: &[u64; WORDS]) -> Option<i32> {
    let [flags, priority, period, _, deadline, _, mq_size, mq_flags] = *words;
    let is_periodic = flags & flag::P_PERIODIC != 0;
    let longest = if is_periodic { period } else { rt::MAX_TICKS };
    let bad_queue = mq_flags & !(flag::MQ_PRTYORDER | flag::MQ_PRTYINHERIT) != 0 || mq_flags == flag::MQ_PRTYINHERIT;
    refuse(!is_priority(priority), error::E_MRT_BADPRTY)
        .or(refuse(flags & !flag::P_PERIODIC != 0, error::E_MRT_BADFLAGS))
        .or(refuse(is_periodic && !is_time(period), error::E_MRT_BADPER))
        .or(refuse(deadline > longest, error::E_MRT_BADDEAD))
        .or(refuse(mq_size > rt::QUEUE_ENTRIES, error::E_MRT_BADMQSZ))
        .or(refuse(bad_queue, error::E_MRT_BADFLAGS))
}

fn interrupt(number: u64, words: &[u64; WORDS]) -> Option<i32> {
    let [period, _, _, priority, kind, ..] = *words;
    let known = irq::RTIRQ | irq::TDIRQ | irq::SOFTIRQ | irq::ISTMSG | irq::RELATPER;
    let is_software = kind & (irq::SOFTIRQ | irq::TDIRQ) == irq::SOFTIRQ | irq::TDIRQ;
    let fits = match number < HARDWARE_IRQS as u64 {
        true => kind & irq::SOFTIRQ == 0,
        false => is_software || kind == irq::NRTIRQ,
    };
    refuse(number >= IRQS as u64 || number == rt::TICK_IRQ as u64, error::E_MRT_BADIRQ)
        .or(refuse(kind & !known != 0 || !fits, error::E_MRT_BADIRQT))
        .or(refuse(kind != irq::NRTIRQ && !is_priority(priority), error::E_MRT_BADPRTY))
        .or(refuse(kind & irq::TDIRQ != 0 && !is_time(period), error::E_MRT_BADPER))
}

fn semaphore(words: &[u64; WORDS]) -> Option<i32> {
    let [value, flags, priority, ..] = *words;
    let known = flag::SEM_PRTYORDER | flag::SEM_PRTYINHERIT | flag::SEM_MUTEX | flag::SEM_PRTYCEILING;
    let needed = flag::SEM_PRTYORDER | flag::SEM_MUTEX;
    let (inherits, has_ceiling) = (flags & flag::SEM_PRTYINHERIT != 0, flags & flag::SEM_PRTYCEILING != 0);
    let bad_flags = inherits && flags & needed != needed || has_ceiling && flags & flag::SEM_MUTEX == 0;
    let most = if flags & flag::SEM_MUTEX != 0 { 1 } else { i32::MAX as u64 };
    refuse(value > most, error::E_MRT_BADVALUE)
        .or(refuse(flags & !known != 0 || bad_flags, error::E_MRT_BADFLAGS))
        .or(refuse(has_ceiling && !is_priority(priority), error::E_MRT_BADPRTY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_parameter_is_named() {
        let none = [0; WORDS];
        assert_eq!(check(control::RTSTART, 20 | 100 << 32, &none), Ok(()));
        assert_eq!(check(control::RTSTART, 0, &none), Err(Errno(error::E_MRT_BADHARM)));
        assert_eq!(check(control::RESTART, 20, &none), Err(Errno(error::E_MRT_BADRFSH)));
        assert_eq!(check(control::SETPATTR, 1, &none), Err(Errno(error::E_MRT_BADPRTY)));
        assert_eq!(check(control::SETPATTR, 1, &[1, 5, 0, 0, 0, 0, 0, 0]), Err(Errno(error::E_MRT_BADFLAGS)));
        assert_eq!(check(control::SEMALLOC, 1, &[u64::MAX, 0, 0, 0, 0, 0, 0, 0]), Err(Errno(error::E_MRT_BADVALUE)));
        assert_eq!(check(control::SETIATTR, rt::TICK_IRQ as u64, &none), Err(Errno(error::E_MRT_BADIRQ)));
        assert_eq!(check(control::GETSVAL, 1, &none), Ok(()));
    }
}
