//! The machine as programs see it: its names, its memory, its log, its end.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::state::load;
use crate::state::machine::Name;
use crate::state::time::SECOND_NS;
use crate::system::{End, System};
use abi::linux::{RELEASE, VERSION};
use abi::{Capability, Endpoint, Errno, GrantId, Part, pm};
use sys::fallible;

type Result<T> = core::result::Result<T, Errno>;

/// Length of each field of `struct utsname`.
const FIELD_BYTES: usize = 65;
const FIELDS: usize = 6;
/// Size of the kernel's log.
const LOG_BYTES: usize = 16 * 1024;
/// Size of `struct sysinfo`.
const SYSINFO_BYTES: usize = 112;
/// One, in the load averages of `struct sysinfo`.
const LOAD_ONE: u64 = 1 << 16;

/// The magic numbers and commands of reboot(2).
mod reboot {
    pub const MAGIC: u32 = 0xfee1_dead;
    pub const MAGIC_2: [u32; 4] = [672_274_793, 85_072_278, 369_367_448, 537_993_216];
    pub const RESTART: u32 = 0x0123_4567;
    pub const RESTART_2: u32 = 0xa1b2_c3d4;
    pub const HALT: u32 = 0xcdef_0123;
    pub const POWER_OFF: u32 = 0x4321_fedc;
    pub const CAD_ON: u32 = 0x89ab_cdef;
    pub const CAD_OFF: u32 = 0;
}

/// The actions of syslog(2).
mod log {
    pub const CLOSE: u64 = 0;
    pub const OPEN: u64 = 1;
    pub const READ_ALL: u64 = 3;
    pub const READ_CLEAR: u64 = 4;
    pub const CLEAR: u64 = 5;
    pub const CONSOLE_OFF: u64 = 6;
    pub const CONSOLE_LEVEL: u64 = 8;
    pub const SIZE_UNREAD: u64 = 9;
    pub const SIZE_BUFFER: u64 = 10;
}

impl<S: System> Programs<S> {
    /// `sysinfo(info)`.
    pub fn sysinfo(&mut self, t: ThreadIndex, address: u64) -> Result<u64> {
        let uptime_s = self.system.time_ns().0 / SECOND_NS;
        let memory = self.system.memory();
        let threads = self.table.threads();
        let mut bytes = [0; SYSINFO_BYTES];
        // Shared, buffered and swap memory stay zero.
        let [one, five, fifteen] = self.load.averages().map(|average| average * (LOAD_ONE / load::ONE));
        let words = [(0, uptime_s), (1, one), (2, five), (3, fifteen), (4, memory.total), (5, memory.free)];
        for (n, word) in words {
            bytes[8 * n..8 * n + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes[80..82].copy_from_slice(&(threads as u16).to_le_bytes());
        // Unit of the memory figures.
        bytes[104..108].copy_from_slice(&1u32.to_le_bytes());
        self.write_bytes(t, address, &bytes)?;
        Ok(0)
    }

    /// `syslog(action, buffer, length)`: the kernel's log. It is read as a whole; clearing does nothing.
    pub fn syslog(&mut self, t: ThreadIndex, action: u64, address: u64, bytes: u64) -> Result<u64> {
        let may = self.credentials_of(t).has(Capability::SysLog);
        if !may && !matches!(action, log::READ_ALL | log::SIZE_BUFFER) {
            return Err(Errno::EPERM);
        }
        match action {
            log::READ_ALL | log::READ_CLEAR => self.read_log(t, address, bytes),
            log::SIZE_BUFFER => Ok(LOG_BYTES as u64),
            log::CLOSE | log::OPEN | log::CLEAR | log::CONSOLE_OFF..=log::CONSOLE_LEVEL | log::SIZE_UNREAD => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }

    fn read_log(&mut self, t: ThreadIndex, address: u64, bytes: u64) -> Result<u64> {
        if (bytes as i32) < 0 || address == 0 {
            return Err(Errno::EINVAL);
        }
        let mut text = fallible::filled(0, LOG_BYTES)?;
        let length = self.system.kernel_log(&mut text);
        let newest = &text[length.saturating_sub(bytes as usize)..length];
        self.write_bytes(t, address, newest)?;
        Ok(newest.len() as u64)
    }
}

impl<S: System> Pm<S> {
    /// `uname(utsname)`.
    pub fn uname(&mut self, t: ThreadIndex, address: u64) -> Result<u64> {
        let mut bytes = [0; FIELDS * FIELD_BYTES];
        let names = self.host_names(self.programs.table.process_of(t));
        let fields: [&[u8]; FIELDS] =
            [b"Linux", names[0].text(), RELEASE.as_bytes(), VERSION.as_bytes(), b"x86_64", names[1].text()];
        for (space, text) in bytes.chunks_exact_mut(FIELD_BYTES).zip(fields) {
            space[..text.len()].copy_from_slice(text);
        }
        self.programs.write_bytes(t, address, &bytes)?;
        Ok(0)
    }

    /// `sethostname`, `setdomainname`: with CAP_SYS_ADMIN.
    pub fn set_machine_name(&mut self, t: ThreadIndex, address: u64, bytes: u64, which: Name) -> Result<u64> {
        let who = self.programs.credentials_of(t);
        if !self.programs.table.containers.has(who, Capability::SysAdmin, who.parts, Part::Host) {
            return Err(Errno::EPERM);
        }
        if bytes >= FIELD_BYTES as u64 {
            return Err(Errno::EINVAL);
        }
        let mut name = fallible::filled(0, bytes as usize)?;
        self.programs.system.read(self.programs.table[t].endpoint(), address, &mut name)?;
        self.name_host(self.programs.table.process_of(t), which, name);
        Ok(0)
    }

    /// `pm::MachineName`.
    pub fn show_machine_name(&mut self, to: Endpoint, ask: &pm::MachineName) -> Result<u64> {
        let name = self.machine.name(name_numbered(ask.which)?);
        let name = &name[..name.len().min(ask.bytes as usize)];
        if name.is_empty() { Ok(0) } else { self.programs.system.write_grant(to, ask.grant, name) }
    }

    /// `pm::SetMachineName`.
    pub fn change_machine_name(&mut self, from: Endpoint, grant: GrantId, bytes: u64, which: u64) -> Result<u64> {
        let which = name_numbered(which)?;
        if bytes >= FIELD_BYTES as u64 {
            return Err(Errno::EINVAL);
        }
        let mut name = fallible::filled(0, bytes as usize)?;
        if !name.is_empty() {
            self.programs.system.read_grant(from, grant, &mut name)?;
        }
        self.machine.set_name(which, name);
        Ok(0)
    }

    /// `pm::Setting`.
    pub fn setting(&self, what: u64) -> Result<u64> {
        match what {
            pm::SETTING_RANDOM_PLACES => Ok(if self.places_randomly { 2 } else { 0 }),
            pm::SETTING_PID_MAX => Ok(u64::from(self.programs.table.pid_bound())),
            _ => Err(Errno::EINVAL),
        }
    }

    /// `pm::SetSetting`.
    pub fn set_setting(&mut self, what: u64, value: u64) -> Result<u64> {
        match (what, value) {
            (pm::SETTING_RANDOM_PLACES, 0..=2) => self.places_randomly = value > 0,
            (pm::SETTING_PID_MAX, _) => self.programs.table.set_pid_bound(value)?,
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }

    /// `reboot(magic, magic 2, command)`: with CAP_SYS_BOOT. The answer comes only when nothing ends.
    pub fn reboot(&mut self, t: ThreadIndex, magic: u32, magic_2: u32, command: u32) -> Step {
        if !self.programs.credentials_of(t).has(Capability::SysBoot) {
            return Errno::EPERM.into();
        }
        if magic != reboot::MAGIC || !reboot::MAGIC_2.contains(&magic_2) {
            return Errno::EINVAL.into();
        }
        match command {
            reboot::CAD_ON | reboot::CAD_OFF => return Step::Done(Ok(0)),
            reboot::RESTART | reboot::RESTART_2 => self.begin_shutdown(End::Reboot),
            reboot::HALT => self.begin_shutdown(End::Halt),
            reboot::POWER_OFF => self.begin_shutdown(End::PowerOff),
            _ => return Errno::EINVAL.into(),
        }
        Step::Later
    }

    /// Has vfs write everything back and unmount; the machine ends when it is done, or at once if vfs cannot.
    pub fn begin_shutdown(&mut self, end: End) {
        self.machine.begin_end(end);
        if let Err(error) = self.programs.system.vfs_sync_all(true) {
            self.programs.system.log(format_args!("files may not be written back: {error}"));
            self.programs.system.shutdown(end);
        }
    }

    /// vfs has written everything back.
    pub fn synced(&mut self) {
        if let Some(end) = self.machine.take_end() {
            self.programs.system.shutdown(end);
        }
    }
}

/// The name with this number in `pm::MachineName`.
fn name_numbered(which: u64) -> Result<Name> {
    [Name::Host, Name::Domain].get(which as usize).copied().ok_or(Errno::EINVAL)
}
