//! rtc: driver of the battery-backed clock (MC146818). Its first incarnation sets the system's clock; all of them
//! serve /dev/rtc0 (rtc(4)): RTC_RD_TIME and RTC_SET_TIME.
//!
//! * `clock`: the chip; this file: ports and messages.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod clock;

use abi::chardev::{Control, Open, Read, Write};
use abi::{Errno, GrantId};
use clock::{Calendar, Cmos};
use driver::chardev::{Answers, CharDriver, Held};
use driver::{Client, Ports};
use sys::StartKind;

sys::program!(main);

/// Ports: index and data.
const PORTS: Ports = Ports::new(0x70, 2);
const INDEX: u16 = 0;
const DATA: u16 = 1;
/// /dev/rtc0 is 10,135.
const MINOR: u64 = 135;
const SECOND_NS: u64 = 1_000_000_000;

/// ioctls of rtc(4).
const RTC_RD_TIME: u64 = 0x8024_7009;
const RTC_SET_TIME: u64 = 0x4024_700a;
/// Size of `struct rtc_time`: nine ints.
const RTC_TIME_BYTES: usize = 36;

fn main(start: sys::Start) {
    match clock::read(&mut Chip) {
        Ok(time) if start.kind == StartKind::Fresh => set_system_clock(time),
        Ok(_) => server::clock::settle(),
        Err(error) => server::not_ready(error),
    }
    driver::chardev::serve(Rtc);
}

/// Sets the system's clock. A failure is logged and not fatal: the system's time then starts in 1970.
fn set_system_clock(time: Calendar) {
    if let Err(error) = server::clock::set_real_ns(time.to_unix_s() * SECOND_NS) {
        sys::log!("setting the system's clock failed: {error}; it starts in 1970");
    }
}

/// The CMOS registers behind two ports.
struct Chip;

impl Cmos for Chip {
    fn read(&mut self, register: u8) -> Result<u8, Errno> {
        PORTS.write8(INDEX, register)?;
        PORTS.read8(DATA)
    }
    fn write(&mut self, register: u8, value: u8) -> Result<(), Errno> {
        PORTS.write8(INDEX, register)?;
        PORTS.write8(DATA, value)
    }
}

struct Rtc;

impl CharDriver for Rtc {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        if request.minor == MINOR { Ok(0) } else { Err(Errno::ENXIO) }
    }

    fn read(&mut self, held: Held, _: &Read, _: Client, answers: &mut Answers) {
        // read(2) would wait for alarm and periodic interrupts, which this driver does not support.
        answers.give(held, Err(Errno::EINVAL));
    }

    fn write(&mut self, held: Held, _: &Write, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::EINVAL));
    }

    fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
        let client = Client::new(held.requester(), request.grant, RTC_TIME_BYTES as u64);
        let result = match request.request {
            _ if request.grant == GrantId::NONE => Err(Errno::EFAULT),
            RTC_RD_TIME => clock::read(&mut Chip).and_then(|time| client.put(0, &to_rtc_time(time))),
            RTC_SET_TIME => set_from(&client),
            _ => Err(Errno::ENOTTY),
        };
        answers.give(held, result.map(|()| 0));
    }
}

fn set_from(client: &Client) -> Result<(), Errno> {
    let mut bytes = [0; RTC_TIME_BYTES];
    client.fetch(0, &mut bytes)?;
    clock::set(&mut Chip, from_rtc_time(&bytes)?)
}

/// Encodes a date as `struct rtc_time`: seconds first, months from 0, years from 1900. Week day, year day and daylight saving are
/// 0.
fn to_rtc_time(time: Calendar) -> [u8; RTC_TIME_BYTES] {
    let fields = [time.second, time.minute, time.hour, time.day, time.month - 1, time.year - 1900];
    let mut bytes = [0; RTC_TIME_BYTES];
    for (slot, field) in bytes.chunks_exact_mut(4).zip(fields) {
        slot.copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

fn from_rtc_time(bytes: &[u8; RTC_TIME_BYTES]) -> Result<Calendar, Errno> {
    let field = |index: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[4 * index + i]));
    let month = field(4).checked_add(1).ok_or(Errno::EINVAL)?;
    let year = field(5).checked_add(1900).ok_or(Errno::EINVAL)?;
    Ok(Calendar { year, month, day: field(3), hour: field(2), minute: field(1), second: field(0) })
}
