/* The first instructions of a service. The registers of a start (abi::layout::start_kind) become the arguments of `service_begin`. */
    .text
    .globl _start
    .type _start, @function
_start:
    xorl %ebp, %ebp
    movq %r10, %rcx
    call service_begin
    ud2
    .size _start, . - _start

.section .note.GNU-stack, "", @progbits
