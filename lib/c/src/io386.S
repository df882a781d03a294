/* Ports by the bare instruction. Arguments: edi the port, esi the value; for strings rsi the buffer, rdx the count.
 * Each function is its instruction and what carries the arguments to it, so that the fault is at that instruction and nothing else. */

.macro function name
    .text
    .p2align 4
    .globl \name
    .type \name, @function
\name:
.endm

.macro end name
    ret
    .size \name, . - \name
.endm

function i386inb
    movl %edi, %edx
    xorl %eax, %eax
    inb %dx, %al
end i386inb

function i386inw
    movl %edi, %edx
    xorl %eax, %eax
    inw %dx, %ax
end i386inw

function i386inl
    movl %edi, %edx
    inl %dx, %eax
end i386inl

function i386outb
    movl %edi, %edx
    movl %esi, %eax
    outb %al, %dx
end i386outb

function i386outw
    movl %edi, %edx
    movl %esi, %eax
    outw %ax, %dx
end i386outw

function i386outl
    movl %edi, %edx
    movl %esi, %eax
    outl %eax, %dx
end i386outl

.macro input_string name, instruction
function \name
    movq %rdx, %rcx
    movl %edi, %edx
    movq %rsi, %rdi
    rep \instruction
end \name
.endm

input_string i386insb, insb
input_string i386insw, insw
input_string i386insl, insl

.macro output_string name, instruction
function \name
    movq %rdx, %rcx
    movl %edi, %edx
    rep \instruction
end \name
.endm

output_string i386outsb, outsb
output_string i386outsw, outsw
output_string i386outsl, outsl

.section .note.GNU-stack, "", @progbits
