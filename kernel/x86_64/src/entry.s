# The ways into the kernel and out of it.
#
# From user mode everything is saved straight into the frame of the thread that runs (CURRENT_FRAME points to it; offsets come from
# entry.rs), then Rust runs on the kernel's stack from its end, and jumps to leave_kernel with the frame of the thread to go on with.
# There is no swapgs: the node's state has fixed addresses, in every node's own page tables. In kernel mode interrupts are only
# taken where it waits for them; their handler does nothing but record the vector.

.section .text.entry, "ax"

# syscall: rcx = rip, r11 = rflags, the rest as the program left it; SFMASK has cleared IF, DF, TF, AC and NT.
.align 16
.global syscall_entry
syscall_entry:
    mov [USER_STACK], rsp
    mov rsp, [CURRENT_FRAME]
    mov [rsp + {rip}], rcx
    mov [rsp + {rflags}], r11
    mov rcx, [USER_STACK]
    mov [rsp + {rsp}], rcx
    mov [rsp + {rax}], rax
    mov [rsp + {rdi}], rdi
    mov [rsp + {rsi}], rsi
    mov [rsp + {rdx}], rdx
    mov [rsp + {r10}], r10
    mov [rsp + {r8}], r8
    mov [rsp + {r9}], r9
    mov [rsp + {rbx}], rbx
    mov [rsp + {rbp}], rbp
    mov [rsp + {r12}], r12
    mov [rsp + {r13}], r13
    mov [rsp + {r14}], r14
    mov [rsp + {r15}], r15
    mov qword ptr [rsp + {entry}], {entry_syscall}
    mov rsp, offset kernel_stack_end
    mov rdi, rax
    call syscall_from_user

# rax = frame of the thread to go on with.
.global leave_kernel
leave_kernel:
    cmp qword ptr [rax + {entry}], {entry_syscall}
    jne leave_by_iretq
    mov rcx, [rax + {rip}]
    mov r11, [rax + {rflags}]
    mov rdi, [rax + {rdi}]
    mov rsi, [rax + {rsi}]
    mov rdx, [rax + {rdx}]
    mov r10, [rax + {r10}]
    mov r8, [rax + {r8}]
    mov r9, [rax + {r9}]
    mov rbx, [rax + {rbx}]
    mov rbp, [rax + {rbp}]
    mov r12, [rax + {r12}]
    mov r13, [rax + {r13}]
    mov r14, [rax + {r14}]
    mov r15, [rax + {r15}]
    mov rsp, [rax + {rsp}]
    mov rax, [rax + {rax}]
    sysretq

# The same for a thread that receives a message: rax = its frame, rdi = the frame with the words of the message. It came by syscall.
# A Linux call has no word 6.
.global leave_kernel_with_linux_call
leave_kernel_with_linux_call:
    mov r12, [rdi + {messages}]
    jmp 2f

.global leave_kernel_with_message
leave_kernel_with_message:
    mov r12, [rdi + {r12}]
2:
    mov rcx, [rax + {rip}]
    mov r11, [rax + {rflags}]
    mov rbx, [rax + {rbx}]
    mov rbp, [rax + {rbp}]
    mov r13, [rax + {r13}]
    mov r14, [rax + {r14}]
    mov r15, [rax + {r15}]
    mov rsp, [rax + {rsp}]
    xor eax, eax
    mov rsi, [rdi + {rsi}]
    mov rdx, [rdi + {rdx}]
    mov r10, [rdi + {r10}]
    mov r8, [rdi + {r8}]
    mov r9, [rdi + {r9}]
    mov rdi, [rdi + {rdi}]
    sysretq

leave_by_iretq:
    # iretq to an address that is none would fault here, in the kernel: such a thread goes to the end of user memory instead.
    mov rcx, [rax + {rip}]
    mov rdx, rcx
    shr rdx, 47
    jz 1f
    mov rcx, {user_end}
1:
    mov rsp, offset kernel_stack_end
    push {user_data}
    push [rax + {rsp}]
    push [rax + {rflags}]
    push {user_code}
    push rcx
    mov r15, [rax + {r15}]
    mov r14, [rax + {r14}]
    mov r13, [rax + {r13}]
    mov r12, [rax + {r12}]
    mov r11, [rax + {r11}]
    mov r10, [rax + {r10}]
    mov r9, [rax + {r9}]
    mov r8, [rax + {r8}]
    mov rbp, [rax + {rbp}]
    mov rdi, [rax + {rdi}]
    mov rsi, [rax + {rsi}]
    mov rdx, [rax + {rdx}]
    mov rcx, [rax + {rcx}]
    mov rbx, [rax + {rbx}]
    mov rax, [rax + {rax}]
    iretq

# Every other vector. Stack: vector, error code (0 if the CPU pushed none), rip, cs, rflags, rsp, ss.
.align 16
trap_common:
    test byte ptr [rsp + 24], 3
    jz trap_in_kernel
    push rax
    mov rax, [CURRENT_FRAME]
    mov [rax + {r15}], r15
    mov [rax + {r14}], r14
    mov [rax + {r13}], r13
    mov [rax + {r12}], r12
    mov [rax + {r11}], r11
    mov [rax + {r10}], r10
    mov [rax + {r9}], r9
    mov [rax + {r8}], r8
    mov [rax + {rbp}], rbp
    mov [rax + {rdi}], rdi
    mov [rax + {rsi}], rsi
    mov [rax + {rdx}], rdx
    mov [rax + {rcx}], rcx
    mov [rax + {rbx}], rbx
    pop rcx
    mov [rax + {rax}], rcx
    pop rdi
    pop rsi
    pop rcx
    mov [rax + {rip}], rcx
    pop rcx
    pop rcx
    mov [rax + {rflags}], rcx
    pop rcx
    mov [rax + {rsp}], rcx
    mov qword ptr [rax + {entry}], {entry_full}
    mov rsp, offset kernel_stack_end
    # An interrupt gate leaves AC, DF and NT as the program had them.
    push 2
    popfq
    call trap_from_user

# The two short ways to a port. The thread goes on after them, so its registers stay on the stack, those that a Rust function may change;
# what turns out to be something else goes the long way, as if nothing had been.
.macro save_scratch
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push rax
.endm
.macro restore_scratch
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
.endm

# int 0x22: rax = operation, rdx = port, rdi = value. Stack: rip, cs, rflags, rsp, ss. The kernel itself never executes it.
.align 16
.global hal_entry
hal_entry:
    save_scratch
    push 2
    popfq
    mov rsi, rdx
    mov rdx, rdi
    mov rdi, rax
    call hal_from_user
    test edx, edx
    jz 1f
    add rsp, 8
    restore_scratch
    iretq
1:
    pop rax
    restore_scratch
    push 0
    push {hal}
    jmp trap_common

# A protection fault. Stack: error code, rip, cs, rflags, rsp, ss.
.align 16
.global protection_entry
protection_entry:
    cmp qword ptr [rsp], 0
    jne 2f
    test byte ptr [rsp + 16], 3
    jz 2f
    save_scratch
    push rax                        # keeps the stack aligned
    mov rsi, rdx
    mov rdx, rax
    # The opcode, through the program's own mapping: the one look of the kernel at a user address (AC lets it past SMAP). It cannot fault:
    # the program has just executed this byte, one processor runs, and translations are forgotten whenever a mapping changes.
    mov rcx, [rsp + 88]
    mov rdi, rcx
    shr rdi, 47
    jnz 1f
    push 0x40002
    popfq
    movzx edi, byte ptr [rcx]
    push 2
    popfq
    call port_instruction_from_user
    test edx, edx
    jz 1f
    add rsp, 16
    restore_scratch
    inc qword ptr [rsp + 8]
    add rsp, 8
    iretq
1:
    pop rax
    pop rax
    restore_scratch
2:
    push {protection}
    jmp trap_common

# The kernel was interrupted where it waits, or has made a mistake: trap_from_kernel(vector, error, rip, rsp) returns only
# for an interrupt.
trap_in_kernel:
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push rbp
    mov rdi, [rsp + 80]
    mov rsi, [rsp + 88]
    mov rdx, [rsp + 96]
    mov rcx, [rsp + 120]
    cld
    mov rbp, rsp
    and rsp, -16
    call trap_from_kernel
    mov rsp, rbp
    pop rbp
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    add rsp, 16
    iretq

# One stub for each vector, 16 bytes apart. The CPU pushes an error code for 8, 10 to 14, 17, 21, 29 and 30.
.align 16
.global trap_stubs
trap_stubs:
.set vector, 0
.rept 256
    .align 16
    .if (vector == 8) || ((vector >= 10) && (vector <= 14)) || (vector == 17) || (vector == 21) || (vector == 29) || (vector == 30)
    .else
    push 0
    .endif
    .byte 0x68                      # push vector
    .long vector
    jmp trap_common
    .set vector, vector + 1
.endr
