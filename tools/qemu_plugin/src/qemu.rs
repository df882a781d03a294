//! QEMU's functions for plug-ins, as its documentation of the TCG plug-in interface describes them (version 1), and a block as it tells of it.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::AtomicU64;

/// The plug-in, for QEMU.
pub type Id = u64;
/// A block that is being translated.
pub enum Block {}
/// One of its instructions.
pub enum Instruction {}

type OnTranslation = extern "C" fn(Id, *mut Block);
type OnExecution = extern "C" fn(c_uint, *mut c_void);
type AtExit = extern "C" fn(Id, *mut c_void);

/// Callbacks do not look at registers.
const NO_REGISTERS: c_int = 0;
/// What QEMU can do without a callback: add to a word.
const ADD: c_int = 0;

unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: OnTranslation);
    pub fn qemu_plugin_register_atexit_cb(id: Id, callback: AtExit, data: *mut c_void);
    fn qemu_plugin_register_vcpu_tb_exec_cb(block: *mut Block, callback: OnExecution, flags: c_int, data: *mut c_void);
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_tb_exec_inline(block: *mut Block, action: c_int, word: *mut c_void, number: u64);
    fn qemu_plugin_register_vcpu_insn_exec_inline(
        instruction: *mut Instruction,
        action: c_int,
        word: *mut c_void,
        number: u64,
    );
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    fn qemu_plugin_insn_data(instruction: *const Instruction) -> *const u8;
    fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    fn qemu_plugin_insn_haddr(instruction: *const Instruction) -> *const u8;
}

/// An instruction, as QEMU has read it.
pub struct Read {
    /// Its address in the guest.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A block that is being translated.
pub struct Translated {
    block: *mut Block,
    /// Where the first instruction lies in QEMU's memory; null: not in the guest's.
    pub host: *const u8,
    /// Its instructions: at least one.
    pub instructions: Vec<Read>,
}

/// Reads a block.
///
/// # Safety
/// QEMU is translating it.
pub unsafe fn read_block(block: *mut Block) -> Translated {
    // SAFETY: promised by the caller; QEMU's instructions live as long as the block, and their data has the size that it says.
    unsafe {
        let read = |index| {
            let instruction = qemu_plugin_tb_get_insn(block, index);
            let bytes =
                std::slice::from_raw_parts(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction));
            Read { address: qemu_plugin_insn_vaddr(instruction), bytes: bytes.to_vec() }
        };
        let instructions = (0..qemu_plugin_tb_n_insns(block)).map(read).collect();
        Translated { block, host: qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(block, 0)), instructions }
    }
}

impl Translated {
    /// Has `callback` called with `number` whenever the block is about to be executed.
    pub fn on_execution(&self, callback: OnExecution, number: u32) {
        // SAFETY: the block is being translated as long as this value exists, and the number is no pointer to anybody.
        unsafe {
            qemu_plugin_register_vcpu_tb_exec_cb(self.block, callback, NO_REGISTERS, number as usize as *mut c_void)
        }
    }

    /// Has one added to `word` whenever the block is about to be executed.
    pub fn count_execution(&self, word: &'static AtomicU64) {
        // SAFETY: the block is being translated as long as this value exists; the word lives for ever.
        unsafe { qemu_plugin_register_vcpu_tb_exec_inline(self.block, ADD, word.as_ptr().cast(), 1) }
    }

    /// Has one added to `word` whenever this instruction is about to be executed.
    pub fn count_instruction(&self, index: usize, word: &'static AtomicU64) {
        // SAFETY: as above; the block has so many instructions.
        unsafe {
            let instruction = qemu_plugin_tb_get_insn(self.block, index);
            qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD, word.as_ptr().cast(), 1);
        }
    }

    /// Has `callback` called whenever this instruction is about to be executed.
    pub fn on_instruction(&self, index: usize, callback: OnExecution) {
        // SAFETY: as above; the block has so many instructions.
        unsafe {
            let instruction = qemu_plugin_tb_get_insn(self.block, index);
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, callback, NO_REGISTERS, std::ptr::null_mut());
        }
    }
}
