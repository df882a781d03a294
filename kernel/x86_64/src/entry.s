# The ways into the kernel and out of it.
#
# From user mode everything is saved straight into the frame of the thread that runs (CURRENT_FRAME points to it; offsets come from
# entry.rs), then Rust runs on the kernel's stack from its end, and jumps to leave_kernel with the frame of the thread to go on with.
# There is no swapgs: the node's state has fixed addresses, in every node's own page tables. In kernel mode interrupts are only
# taken where it waits for them; their handler does nothing but record the vector.

# Offsets in a frame, in its order.
.set offset, 0
.irp field, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax, rip, rflags, rsp
.set frame_\field, offset
.set offset, offset + 8
.endr

.macro save frame, registers:vararg
.irp register, \registers
    mov [\frame + frame_\register], \register
.endr
.endm
.macro load frame, registers:vararg
.irp register, \registers
    mov \register, [\frame + frame_\register]
.endr
.endm
# The registers that a Rust function may change; rax on top.
.macro save_scratch
.irp register, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rax
    push \register
.endr
.endm
.macro restore_scratch
.irp register, r11, r10, r9, r8, rdi, rsi, rdx, rcx
    pop \register
.endr
.endm

.section .text.entry, "ax"

# syscall: rcx = rip, r11 = rflags, the rest as the program left it; SFMASK has cleared IF, DF, TF, AC and NT.
.align 16
.global syscall_entry
syscall_entry:
    mov [USER_STACK], rsp
    mov rsp, [CURRENT_FRAME]
    mov [rsp + frame_rip], rcx
    mov [rsp + frame_rflags], r11
    mov rcx, [USER_STACK]
    mov [rsp + frame_rsp], rcx
    save rsp, rax, rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15
    mov qword ptr [rsp + {entry}], {entry_syscall}
    mov rsp, offset kernel_stack_end - 8    # as after a call
    mov rdi, rax
    cmp rdi, {replyrec}
    ja syscall_from_user
    je {answer}
    cmp rdi, {native}
    jb {linux_call}
    cmp rdi, {sendrec}
    je {request}
    cmp rdi, {notify}
    je {notify_call}
    jmp {other_syscall}

# rax = frame of the thread to go on with.
.global leave_kernel
leave_kernel:
    cmp qword ptr [rax + {entry}], {entry_syscall}
    jne leave_by_iretq
    mov rcx, [rax + frame_rip]
    mov r11, [rax + frame_rflags]
    load rax, rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, rsp, rax
    sysretq

# The same for a thread that receives a message: rax = its frame, rdi = the frame with the words of the message. It came by syscall.
# A Linux call has no word 6, and its word 5 is in r9.
.global leave_with_linux_call
leave_with_linux_call:
    mov r12, [rdi + {messages}]
    jmp 2f

.global leave_with_message
leave_with_message:
    load rdi, r12, r9
2:
    mov rcx, [rax + frame_rip]
    mov r11, [rax + frame_rflags]
    load rax, rbx, rbp, r13, r14, r15, rsp
    xor eax, eax
    load rdi, rsi, rdx, r10, r8, rdi
    sysretq

leave_by_iretq:
    # iretq to an address that is none would fault here, in the kernel: such a thread goes to the end of user memory instead.
    mov rcx, [rax + frame_rip]
    mov rdx, rcx
    shr rdx, 47
    jz 1f
    mov rcx, {user_end}
1:
    mov rsp, offset kernel_stack_end
    push {user_data}
    push [rax + frame_rsp]
    push [rax + frame_rflags]
    push {user_code}
    push rcx
    load rax, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
    iretq

# What follows an interrupt from user mode. Stack: rip, cs, rflags, rsp, ss.
.macro save_general
    push rax
    mov rax, [CURRENT_FRAME]
    save rax, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx
    pop qword ptr [rax + frame_rax]
.endm
.macro save_rest
    pop qword ptr [rax + frame_rip]
    pop rcx
    pop qword ptr [rax + frame_rflags]
    pop qword ptr [rax + frame_rsp]
    mov qword ptr [rax + {entry}], {entry_full}
    mov rsp, offset kernel_stack_end
    # An interrupt gate leaves AC, DF and NT as the program had them.
    push 2
    popfq
.endm

# int 0x21. The kernel itself never executes it.
.align 16
.global primitive_entry
primitive_entry:
    save_general
    save_rest
    call {primitive_in_memory}

# Every other vector. Stack: vector, error code (0 if the CPU pushed none), rip, cs, rflags, rsp, ss.
.align 16
trap_common:
    test byte ptr [rsp + 24], 3
    jz trap_in_kernel
    save_general
    pop rdi
    pop rsi
    save_rest
    call trap_from_user

# The two short ways to a port. The thread goes on after them, so its registers stay on the stack, those that a Rust function may change;
# what turns out to be something else goes the long way, as if nothing had been.

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
    save_scratch
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
    pop rax
    restore_scratch
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
