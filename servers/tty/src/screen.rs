//! What terminals on the screen have beyond serial lines: the size of the screen, which of them is shown, the signals of their switches, and the
//! ioctls of consoles, which pass on to console but for what tty alone knows: which terminals are open.

use crate::line::{grant, pause};
use crate::serial::SERIAL_LINES;
use crate::state::Tty;
use crate::terminal::{Caller, World};
use crate::waiting::Need;
use abi::chardev::{Continue, Control};
use abi::console::{self, MAX_ARGUMENT_BYTES, MAX_FONT_ARGUMENT, TERMINALS, font, ioctl};
use abi::{Errno, GrantId, Message};
use alloc::rc::Rc;
use server::Repeat;
use sys::fallible;
use sys::grant::Access;

/// Starts a task of each terminal on the screen, and the one of the signals.
pub fn start(tty: &Rc<Tty>) {
    (SERIAL_LINES..tty.lines().len()).for_each(|index| tty.runtime.spawn(follow(tty.clone(), index)));
    tty.runtime.spawn(take_signals(tty.clone()));
}

/// Gives the terminal the size of the screen and tells it which one is shown, now and when that changes.
async fn follow(tty: Rc<Tty>, index: usize) {
    let (console, minor) = tty.lower(index);
    let mut argument = 0;
    loop {
        let request = console::WAIT_FOR_CHANGE;
        let control = Control { minor, request, argument, grant: GrantId::NONE, caller: 0, session: 0 };
        match console.request(control.message(), Repeat::Yes).await.and_then(|reply| reply.result()) {
            Ok(state) => {
                argument = state;
                let (rows, columns, shown) = (state as u16, (state >> 16) as u16, state >> 32);
                tty.set_shown(SERIAL_LINES + (shown as usize).clamp(1, TERMINALS) - 1);
                tty.with(index, |terminal, world| terminal.set_screen(world, rows, columns, shown));
            }
            Err(error) if pause(&tty, index, error).await => {}
            Err(_) => return,
        }
    }
}

/// Takes the signals of switches (`VT_SETMODE`) from console and passes them to pm, each once.
async fn take_signals(tty: Rc<Tty>) {
    loop {
        let (console, minor) = tty.lower(SERIAL_LINES);
        let (request, argument) = (console::WAIT_FOR_SIGNAL, tty.switch_signals());
        let control = Control { minor, request, argument, grant: GrantId::NONE, caller: 0, session: 0 };
        match console.request(control.message(), Repeat::Yes).await.and_then(|reply| reply.result()) {
            Ok(signal) => tty.pass_switch_signal(signal),
            Err(error) if pause(&tty, SERIAL_LINES, error).await => {}
            Err(_) => return,
        }
    }
}

/// Carries out an ioctl of consoles. Returns whether it is one.
pub fn ioctl(tty: &Rc<Tty>, message: &Message, control: &Control, index: usize) -> bool {
    if index < SERIAL_LINES {
        return false;
    }
    if let Some((bytes, _)) = console::long_argument(control.request) {
        let reply = Control::reply(message, 0, control.argument, bytes as u64);
        tty.runtime.reply(message, &reply);
        return true;
    }
    if let Some(bytes) = console::font_argument(control.request) {
        match font_structure(message, control.grant, bytes)
            .and_then(|found| console::font_memory(control.request, &found))
        {
            Ok((_, 0)) => {
                tty.runtime.spawn(pass_font_on(tty.clone(), *message, *control, GrantId::NONE, index));
            }
            Ok((further, bytes)) => {
                let reply = Control::reply(message, 0, further, bytes as u64);
                tty.runtime.reply(message, &reply);
            }
            Err(error) => tty.answer(message, Err(error)),
        }
        return true;
    }
    let Some((reads, writes)) = console::argument(control.request) else { return false };
    match control.request {
        // Those who wait do so here, where they take no place among the requests to console.
        ioctl::VT_WAITACTIVE => tty.with(index, |terminal, world| match control.argument {
            1..=TERMINAL_COUNT => {
                terminal.wait(world, message, Need::Shown(control.argument));
                terminal.settle(world);
            }
            _ => world.answer(message, Err(Errno::ENXIO)),
        }),
        ioctl::VT_OPENQRY => {
            let free = (1..=TERMINAL_COUNT).find(|number| !is_open(tty, *number)).map_or(-1, |number| number as i32);
            let copied = sys::copy::to_grant(message.source, control.grant, 0, &free.to_le_bytes());
            tty.answer(message, copied.map(|()| 0));
        }
        ioctl::VT_DISALLOCATE if is_busy(tty, control.argument) => tty.answer(message, Err(Errno::EBUSY)),
        _ => {
            let memory = Memory { bytes: MAX_ARGUMENT_BYTES, reads, writes };
            tty.runtime.spawn(pass_on(tty.clone(), *message, *control, memory, index));
        }
    }
    true
}

/// Goes on with an ioctl whose long argument vfs has granted.
pub fn go_on(tty: &Rc<Tty>, message: &Message, further: &Continue, index: usize) {
    let request = further.request & u64::from(u32::MAX);
    if index >= SERIAL_LINES && console::font_argument(request).is_some() {
        let Continue { minor, argument, caller, session, grants, .. } = *further;
        let control = Control { minor, request, argument, grant: GrantId(grants as u32), caller, session };
        let memory = GrantId((grants >> 32) as u32);
        return tty.runtime.spawn(pass_font_on(tty.clone(), *message, control, memory, index));
    }
    let Some((bytes, writes)) = console::long_argument(request).filter(|_| index >= SERIAL_LINES) else {
        return tty.answer(message, Err(Errno::ENOTTY));
    };
    let Continue { minor, argument, caller, session, .. } = *further;
    let control = Control { minor, request, argument, grant: GrantId((further.grants >> 32) as u32), caller, session };
    let memory = Memory { bytes, reads: bytes, writes: if writes { bytes } else { 0 } };
    tty.runtime.spawn(pass_on(tty.clone(), *message, control, memory, index));
}

/// The memory of an ioctl: how much there is, how much of it console reads and writes.
#[derive(Clone, Copy)]
struct Memory {
    bytes: usize,
    reads: usize,
    writes: usize,
}

/// An argument of KDSKBMODE: characters, as `K_UNICODE` for us.
const K_XLATE: u64 = 1;
const K_UNICODE: u64 = 3;
/// An argument of KDSETMODE.
const KD_TEXT: u64 = 0;
/// The first byte of an argument of VT_SETMODE: any program may show another terminal.
const VT_AUTO: u8 = 0;
const TERMINAL_COUNT: u64 = TERMINALS as u64;

/// Whether a program has this terminal open.
fn is_open(tty: &Tty, number: u64) -> bool {
    tty.lines()[SERIAL_LINES + number as usize - 1].terminal.borrow().uses() > 0
}

/// Whether this terminal exists and is shown or open.
fn is_busy(tty: &Tty, number: u64) -> bool {
    let is_shown = |number: u64| SERIAL_LINES as u64 + number - 1 == tty.shown() as u64;
    (1..=TERMINAL_COUNT).contains(&number) && (is_shown(number) || is_open(tty, number))
}

/// The structure at the argument of a font's ioctl.
fn font_structure(message: &Message, grant: GrantId, bytes: usize) -> Result<[u8; MAX_FONT_ARGUMENT], Errno> {
    let mut structure = [0; MAX_FONT_ARGUMENT];
    if bytes > 0 {
        sys::copy::from_grant(message.source, grant, 0, &mut structure[..bytes])?;
    }
    Ok(structure)
}

async fn pass_font_on(tty: Rc<Tty>, message: Message, control: Control, memory: GrantId, index: usize) {
    let result = ask_for_font(&tty, &message, &control, memory, index).await;
    tty.answer(&message, result);
}

/// Has console carry out a font's ioctl, with its structure and the memory that this points to.
async fn ask_for_font(
    tty: &Rc<Tty>,
    message: &Message,
    control: &Control,
    memory: GrantId,
    index: usize,
) -> Result<u64, Errno> {
    let head = console::font_argument(control.request).ok_or(Errno::ENOTTY)?;
    let structure = font_structure(message, control.grant, head)?;
    let (_, further) = console::font_memory(control.request, &structure)?;
    let mut bytes = fallible::filled(0, MAX_FONT_ARGUMENT + further)?;
    bytes[..MAX_FONT_ARGUMENT].copy_from_slice(&structure);
    if further > 0 {
        sys::copy::from_grant(message.source, memory, 0, &mut bytes[MAX_FONT_ARGUMENT..])?;
    }
    let (console, minor) = tty.lower(index);
    let buffer = grant(console, bytes, Access::ReadWrite);
    let passed = Control { minor, grant: buffer.id(), argument: further as u64, ..*control };
    let result = console.request(passed.message(), Repeat::Yes).await.and_then(|reply| reply.result());
    let bytes = buffer.take();
    // What is too small for a map is told how much there is.
    let tells = match control.request {
        ioctl::KDFONTOP => result.is_ok() && console::font_word(&structure, 0) == font::GET,
        request => request == ioctl::GIO_UNIMAP && matches!(result, Ok(_) | Err(Errno::ENOMEM)),
    };
    if tells {
        sys::copy::to_grant(message.source, control.grant, 0, &bytes[..head])?;
    }
    if tells && further > 0 {
        sys::copy::to_grant(message.source, memory, 0, &bytes[MAX_FONT_ARGUMENT..])?;
    }
    result
}

async fn pass_on(tty: Rc<Tty>, message: Message, control: Control, memory: Memory, index: usize) {
    let result = ask_console(&tty, &message, &control, memory, index).await;
    tty.answer(&message, result);
}

/// Remembers which program has the screen, the keyboard or the terminal's switch for itself, so that all are taken back when it has ended.
fn note_drawer(tty: &Rc<Tty>, control: &Control, first_byte: u8, index: usize) {
    let takes = match control.request {
        ioctl::KDSETMODE => control.argument != KD_TEXT,
        ioctl::KDSKBMODE => !matches!(control.argument, K_XLATE | K_UNICODE),
        ioctl::VT_SETMODE => first_byte != VT_AUTO,
        _ => return,
    };
    let (pid, group) = (control.caller as u32, Caller::from_word(control.caller >> 32).group);
    tty.with(index, |terminal, _| match (takes, control.request) {
        (true, _) => terminal.set_drawer(pid, group),
        (false, ioctl::KDSETMODE) => terminal.clear_drawer(),
        (false, _) => {}
    });
}

/// The terminals that are open, as in `struct vt_stat`; the first one always is.
fn open_terminals(tty: &Tty) -> u16 {
    let open = (1..=TERMINAL_COUNT).filter(|number| is_open(tty, *number));
    open.fold(1, |mask, number| mask | 1 << number)
}

async fn ask_console(
    tty: &Rc<Tty>,
    message: &Message,
    control: &Control,
    Memory { bytes, reads, writes }: Memory,
    index: usize,
) -> Result<u64, Errno> {
    let mut bytes = fallible::filled(0, bytes)?;
    if reads > 0 {
        sys::copy::from_grant(message.source, control.grant, 0, &mut bytes[..reads])?;
    }
    let (console, minor) = tty.lower(index);
    let buffer = grant(console, bytes, Access::ReadWrite);
    let passed = Control { minor, grant: buffer.id(), ..*control };
    let result = console.request(passed.message(), Repeat::Yes).await.and_then(|reply| reply.result());
    let mut bytes = buffer.take();
    let value = result?;
    note_drawer(tty, control, bytes[0], index);
    if control.request == ioctl::VT_GETSTATE {
        bytes[4..6].copy_from_slice(&open_terminals(tty).to_le_bytes());
    }
    if writes > 0 {
        sys::copy::to_grant(message.source, control.grant, 0, &bytes[..writes])?;
    }
    Ok(value)
}
