//! The layouts that programs see, compared with the C headers of the machine that runs the tests.

use crate::state::signal::frame;
use crate::state::signal::info::{INFO_BYTES, KEPT_BYTES};
use std::process::Command;
use std::string::String;
use std::vec::Vec;

/// Each line: an expression of C, and what pm believes.
fn layouts() -> Vec<(&'static str, usize)> {
    std::vec![
        ("offsetof(ucontext_t, uc_stack)", frame::STACK),
        ("offsetof(ucontext_t, uc_mcontext)", frame::MACHINE),
        ("offsetof(ucontext_t, uc_sigmask)", frame::MASK),
        ("sizeof(struct kernel_ucontext)", frame::CONTEXT_BYTES),
        ("offsetof(struct kernel_ucontext, uc_sigmask)", frame::MASK),
        ("sizeof(stack_t)", frame::STACK_BYTES),
        ("offsetof(struct sigcontext, r8)", 0),
        ("offsetof(struct sigcontext, rdi)", 8 * 8),
        ("offsetof(struct sigcontext, rsp)", 15 * 8),
        ("offsetof(struct sigcontext, rip)", 16 * 8),
        ("offsetof(struct sigcontext, eflags)", 17 * 8),
        ("offsetof(struct sigcontext, cs)", 144),
        ("offsetof(struct sigcontext, err)", 152),
        ("offsetof(struct sigcontext, trapno)", 160),
        ("offsetof(struct sigcontext, oldmask)", 168),
        ("offsetof(struct sigcontext, cr2)", 176),
        ("offsetof(struct sigcontext, fpstate)", frame::FPU),
        ("sizeof(siginfo_t)", INFO_BYTES),
        ("offsetof(siginfo_t, si_pid)", 16),
        ("offsetof(siginfo_t, si_uid)", 20),
        ("offsetof(siginfo_t, si_status)", 24),
        ("offsetof(siginfo_t, si_utime)", 32),
        ("offsetof(siginfo_t, si_addr)", 16),
        ("offsetof(siginfo_t, si_stime) + 8", KEPT_BYTES),
        ("offsetof(struct _fpstate, mxcsr)", frame::MXCSR),
        ("sizeof(struct _fpstate) - sizeof(struct _fpx_sw_bytes)", frame::SOFTWARE),
        ("offsetof(struct _fpx_sw_bytes, extended_size)", 4),
        ("offsetof(struct _fpx_sw_bytes, xstate_bv)", 8),
        ("offsetof(struct _fpx_sw_bytes, xstate_size)", 16),
        ("offsetof(struct _xstate, xstate_hdr)", frame::XSAVE_HEADER),
        ("sizeof(struct kernel_sigaction)", crate::state::signal::action::ACTION_BYTES),
        ("sizeof(struct rusage)", 18 * 8),
        ("sizeof(struct sysinfo)", 112),
        ("offsetof(struct sysinfo, totalram)", 32),
        ("offsetof(struct sysinfo, procs)", 80),
        ("offsetof(struct sysinfo, mem_unit)", 104),
        ("sizeof(struct utsname)", 6 * 65),
        ("offsetof(struct itimerval, it_value)", 16),
        ("sizeof(struct tms)", 32),
    ]
}

const HEAD: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <ucontext.h>
struct kernel_ucontext { unsigned long f; void *l; stack_t s; struct sigcontext m; unsigned long uc_sigmask; };
struct kernel_sigaction { void *handler; unsigned long flags; void *restorer; unsigned long mask; };
int main(void) {
"#;

#[test]
fn frame_and_structures_agree_with_the_c_headers() {
    let directory = std::env::temp_dir().join(std::format!("pm-layout-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (source, program) = (directory.join("layout.c"), directory.join("layout"));
    let layouts = layouts();
    let mut text = String::from(HEAD);
    for (expression, _) in &layouts {
        text.push_str(&std::format!("printf(\"%zu\\n\", (size_t)({expression}));\n"));
    }
    text.push_str("}\n");
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("cc").arg("-o").arg(&program).arg(&source).status().expect("a C compiler is needed");
    assert!(compiled.success());
    let output = Command::new(&program).output().unwrap();
    let values: Vec<usize> = String::from_utf8(output.stdout).unwrap().lines().map(|l| l.parse().unwrap()).collect();
    assert_eq!(values.len(), layouts.len());
    for ((expression, ours), theirs) in layouts.iter().zip(values) {
        assert_eq!(*ours, theirs, "{expression}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
