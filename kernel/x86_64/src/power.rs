//! The end: off, reset or halt.

use crate::cpu;

/// QEMU's `isa-debug-exit`: ends it with status `value << 1 | 1`. Elsewhere nobody listens.
const DEBUG_EXIT: u16 = 0xf4;
/// PM1a_CNT of QEMU's q35 and pc machines, should the ACPI tables not say.
const USUAL_POWER_PORTS: [u16; 2] = [0x604, 0xb004];
const USUAL_POWER_OFF: u16 = 1 << 13;
const RESET_CONTROL: u16 = 0xcf9;
const KEYBOARD_COMMAND: u16 = 0x64;

/// Switches the machine off. `port` and `value`: ACPI's switch, port 0 when unknown. Under QEMU `status` goes to the host.
pub fn off(port: u16, value: u16, status: u32) -> ! {
    cpu::out32(DEBUG_EXIT, status);
    if port != 0 {
        cpu::out16(port, value);
    }
    for usual in USUAL_POWER_PORTS {
        cpu::out16(usual, USUAL_POWER_OFF);
    }
    cpu::halt_forever()
}

/// Starts the machine again.
pub fn reboot() -> ! {
    cpu::out8(RESET_CONTROL, 0x02);
    cpu::out8(RESET_CONTROL, 0x06);
    cpu::out8(KEYBOARD_COMMAND, 0xfe);
    cpu::halt_forever()
}
