//! What terminals on the screen have beyond serial lines: the size of the screen, which of them is shown, and the ioctls of consoles, which pass on
//! to console.

use crate::line::{grant, pause};
use crate::serial::{K_UNICODE, KD_TEXT, SERIAL_LINES};
use crate::state::Tty;
use crate::terminal::{Caller, World};
use crate::waiting::Need;
use abi::chardev::Control;
use abi::console::{self, MAX_ARGUMENT_BYTES, TERMINALS, ioctl};
use abi::{Errno, GrantId, Message};
use alloc::{rc::Rc, vec};
use server::Repeat;
use sys::grant::Access;

/// Starts a task of each terminal on the screen.
pub fn start(tty: &Rc<Tty>) {
    (SERIAL_LINES..tty.lines().len()).for_each(|index| tty.runtime.spawn(follow(tty.clone(), index)));
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

/// Carries out an ioctl of consoles. Returns whether it is one.
pub fn ioctl(tty: &Rc<Tty>, message: &Message, control: &Control, index: usize) -> bool {
    if index < SERIAL_LINES || console::argument(control.request).is_none() {
        return false;
    }
    match control.request {
        // Those who wait do so here, where they take no place among the requests to console.
        ioctl::VT_WAITACTIVE => tty.with(index, |terminal, world| match control.argument {
            1..=TERMINAL_COUNT => {
                terminal.wait(world, message, Need::Shown(control.argument));
                terminal.settle(world);
            }
            _ => world.answer(message, Err(Errno::ENXIO)),
        }),
        _ => tty.runtime.spawn(pass_on(tty.clone(), *message, *control, index)),
    }
    true
}

/// An argument of KDSKBMODE: characters, as `K_UNICODE` for us.
const K_XLATE: u64 = 1;
const TERMINAL_COUNT: u64 = TERMINALS as u64;

async fn pass_on(tty: Rc<Tty>, message: Message, control: Control, index: usize) {
    let result = ask_console(&tty, &message, &control, index).await;
    if result.is_ok() {
        note_drawer(&tty, &control, index);
    }
    tty.answer(&message, result);
}

/// Remembers which program's screen or keyboard this is, so that both are taken back when it has died.
fn note_drawer(tty: &Rc<Tty>, control: &Control, index: usize) {
    let is_text = match control.request {
        ioctl::KDSETMODE => control.argument == KD_TEXT,
        ioctl::KDSKBMODE => matches!(control.argument, K_XLATE | K_UNICODE),
        _ => return,
    };
    let group = Caller::from_word(control.caller).group;
    tty.with(index, |terminal, _| match (is_text, control.request) {
        (false, _) => terminal.drawer = group,
        (true, ioctl::KDSETMODE) => terminal.drawer = 0,
        (true, _) => {}
    });
}

#[expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "one of each program at a time: from the heap's reserve"
)]
async fn ask_console(tty: &Tty, message: &Message, control: &Control, index: usize) -> Result<u64, Errno> {
    let (reads, writes) = console::argument(control.request).unwrap_or_default();
    let mut bytes = vec![0; MAX_ARGUMENT_BYTES];
    if reads > 0 {
        sys::copy::from_grant(message.source, control.grant, 0, &mut bytes[..reads])?;
    }
    let (console, minor) = tty.lower(index);
    let buffer = grant(console, bytes, Access::ReadWrite);
    let passed = Control { minor, grant: buffer.id(), ..*control };
    let result = console.request(passed.message(), Repeat::Yes).await.and_then(|reply| reply.result());
    let bytes = buffer.take();
    let value = result?;
    if writes > 0 {
        sys::copy::to_grant(message.source, control.grant, 0, &bytes[..writes])?;
    }
    Ok(value)
}
