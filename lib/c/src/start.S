/* The first instructions of a service. The registers of a birth (abi::layout::birth) become the arguments of `service_born`. */
    .text
    .globl _start
    .type _start, @function
_start:
    xorl %ebp, %ebp
    movq %r10, %rcx
    call service_born
    ud2
    .size _start, . - _start

.section .note.GNU-stack, "", @progbits
