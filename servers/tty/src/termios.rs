//! Terminal settings as programs see them: Linux's `struct termios` of the ioctls TCGETS and TCSETS (termios(3),
//! asm-generic/termbits.h). Only the layout is here; `discipline` and `output` implement the settings.

#![allow(missing_docs)]

/// Bytes of the kernel's `struct termios`: four flag words, the line discipline's number, 19 control characters.
pub const TERMIOS_BYTES: usize = 36;

pub mod iflag {
    pub const ISTRIP: u32 = 0o40;
    pub const INLCR: u32 = 0o100;
    pub const IGNCR: u32 = 0o200;
    pub const ICRNL: u32 = 0o400;
    pub const IXON: u32 = 0o2000;
    pub const IXANY: u32 = 0o4000;
    pub const IXOFF: u32 = 0o10000;
    pub const IMAXBEL: u32 = 0o20000;
    pub const IUTF8: u32 = 0o40000;
}

pub mod oflag {
    pub const OPOST: u32 = 0o1;
    pub const ONLCR: u32 = 0o4;
    pub const OCRNL: u32 = 0o10;
    pub const ONOCR: u32 = 0o20;
    pub const ONLRET: u32 = 0o40;
    pub const TABDLY: u32 = 0o14000;
    pub const XTABS: u32 = 0o14000;
}

pub mod cflag {
    /// The bits of the speed.
    pub const CBAUD: u32 = 0o10017;
    pub const CSIZE: u32 = 0o60;
    pub const CS8: u32 = 0o60;
    pub const CSTOPB: u32 = 0o100;
    pub const CREAD: u32 = 0o200;
    pub const PARENB: u32 = 0o400;
    pub const PARODD: u32 = 0o1000;
    pub const HUPCL: u32 = 0o2000;
    pub const CLOCAL: u32 = 0o4000;
    pub const B38400: u32 = 0o17;
    pub const B115200: u32 = 0o10002;
    pub const CMSPAR: u32 = 0o10_000_000_000;
    pub const CRTSCTS: u32 = 0o20_000_000_000;
}

pub mod lflag {
    pub const ISIG: u32 = 0o1;
    pub const ICANON: u32 = 0o2;
    pub const ECHO: u32 = 0o10;
    pub const ECHOE: u32 = 0o20;
    pub const ECHOK: u32 = 0o40;
    pub const ECHONL: u32 = 0o100;
    pub const NOFLSH: u32 = 0o200;
    pub const TOSTOP: u32 = 0o400;
    pub const ECHOCTL: u32 = 0o1000;
    pub const ECHOKE: u32 = 0o4000;
    pub const IEXTEN: u32 = 0o100000;
    pub const EXTPROC: u32 = 0o200000;
}

/// Indices of the control characters.
pub mod cc {
    pub const VINTR: usize = 0;
    pub const VQUIT: usize = 1;
    pub const VERASE: usize = 2;
    pub const VKILL: usize = 3;
    pub const VEOF: usize = 4;
    pub const VTIME: usize = 5;
    pub const VMIN: usize = 6;
    pub const VSTART: usize = 8;
    pub const VSTOP: usize = 9;
    pub const VSUSP: usize = 10;
    pub const VEOL: usize = 11;
    pub const VREPRINT: usize = 12;
    pub const VDISCARD: usize = 13;
    pub const VWERASE: usize = 14;
    pub const VLNEXT: usize = 15;
    pub const VEOL2: usize = 16;
}

/// The settings of one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Termios {
    pub input: u32,
    pub output: u32,
    pub control: u32,
    pub local: u32,
    pub line: u8,
    pub characters: [u8; 19],
}

impl Termios {
    /// What a terminal starts with: as Linux's consoles, 115,200 bit/s.
    pub const fn initial() -> Termios {
        let mut characters = [0; 19];
        characters[cc::VINTR] = 3;
        characters[cc::VQUIT] = 28;
        characters[cc::VERASE] = 127;
        characters[cc::VKILL] = 21;
        characters[cc::VEOF] = 4;
        characters[cc::VMIN] = 1;
        characters[cc::VSTART] = 17;
        characters[cc::VSTOP] = 19;
        characters[cc::VSUSP] = 26;
        characters[cc::VREPRINT] = 18;
        characters[cc::VWERASE] = 23;
        characters[cc::VLNEXT] = 22;
        Termios {
            input: iflag::ICRNL | iflag::IXON | iflag::IUTF8,
            output: oflag::OPOST | oflag::ONLCR,
            control: cflag::B115200 | cflag::CS8 | cflag::CREAD | cflag::HUPCL | cflag::CLOCAL,
            local: lflag::ISIG
                | lflag::ICANON
                | lflag::ECHO
                | lflag::ECHOE
                | lflag::ECHOK
                | lflag::ECHOCTL
                | lflag::ECHOKE
                | lflag::IEXTEN,
            line: 0,
            characters,
        }
    }

    /// What the slave of a pseudo-terminal starts with, as on Linux.
    pub const fn of_slave() -> Termios {
        let mut termios = Termios::initial();
        termios.input = iflag::ICRNL | iflag::IXON;
        termios.control = cflag::B38400 | cflag::CS8 | cflag::CREAD;
        termios.characters[cc::VDISCARD] = 15;
        termios
    }

    /// These settings as a slave takes them: characters have eight bits and no parity.
    pub fn as_of_slave(self) -> Termios {
        Termios { control: self.control & !(cflag::CSIZE | cflag::PARENB) | cflag::CS8 | cflag::CREAD, ..self }
    }

    /// Whether ^S and ^Q stop and start the output, for a program at the master that does this itself.
    pub fn has_usual_flow_control(&self) -> bool {
        const CONTROL_S: u8 = 0x13;
        const CONTROL_Q: u8 = 0x11;
        let keys = (self.characters[cc::VSTOP], self.characters[cc::VSTART]);
        self.has_input(iflag::IXON) && keys == (CONTROL_S, CONTROL_Q)
    }

    /// Whether every byte of input becomes readable as it is, and nothing else happens.
    pub fn passes_input_on(&self) -> bool {
        use iflag::{ICRNL, IGNCR, INLCR, ISTRIP, IXON};
        let changes = self.input & (ISTRIP | INLCR | IGNCR | ICRNL | IXON) != 0;
        !changes && self.local & (lflag::ISIG | lflag::ICANON | lflag::ECHO) == 0
    }

    /// Encodes the settings for a program.
    pub fn to_bytes(self) -> [u8; TERMIOS_BYTES] {
        let mut bytes = [0; TERMIOS_BYTES];
        for (index, word) in [self.input, self.output, self.control, self.local].into_iter().enumerate() {
            bytes[index * 4..index * 4 + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[16] = self.line;
        bytes[17..].copy_from_slice(&self.characters);
        bytes
    }

    /// Decodes the settings from a program.
    pub fn from_bytes(bytes: &[u8; TERMIOS_BYTES]) -> Termios {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut characters = [0; 19];
        characters.copy_from_slice(&bytes[17..]);
        Termios { input: word(0), output: word(4), control: word(8), local: word(12), line: bytes[16], characters }
    }

    pub fn has_local(&self, flag: u32) -> bool {
        self.local & flag != 0
    }

    pub fn has_input(&self, flag: u32) -> bool {
        self.input & flag != 0
    }

    pub fn has_output(&self, flag: u32) -> bool {
        self.output & flag != 0
    }

    /// True when `byte` is the control character `index`; a character of 0 is switched off.
    pub fn is_character(&self, byte: u8, index: usize) -> bool {
        byte != 0 && self.characters[index] == byte
    }
}
