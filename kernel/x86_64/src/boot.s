# From the boot loader to Rust: one 32-bit entry for PVH and multiboot2, temporary page tables, long mode.
#
# In: protected mode without paging. eax = 0x36d76289: multiboot2, ebx = its information; else PVH, ebx = start_info.
# Out: kernel_main(magic, information, tsc) with the first 4 GiB mapped three times: at 0, at the direct map, and
# (the first GiB) where the kernel runs.

.set KERNEL_BASE, 0xffffffff80000000

.section .boot.multiboot2, "a"
.align 8
multiboot2_header:
    .long 0xe85250d6, 0, multiboot2_end - multiboot2_header
    .long -(0xe85250d6 + 0 + (multiboot2_end - multiboot2_header))
    # A frame buffer, if there is one: 32 bits a pixel.
    .short 5, 1
    .long 20, 1024, 768, 32
    .long 0
    # Modules on page boundaries: the boot archive is mapped as it is.
    .short 6, 0
    .long 8
    .short 0, 0
    .long 8
multiboot2_end:

.section .note.Xen, "a", @note
.align 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad _start

.section .boot.text, "ax"
.code32
.global _start
_start:
    cli
    cld
    mov esp, offset boot_stack_end
    mov esi, eax
    mov edi, ebx
    rdtsc
    mov ebp, eax
    push edx
    # Long mode and no-execute pages are the least this kernel runs on.
    mov eax, 0x80000000
    cpuid
    cmp eax, 0x80000001
    jb no_long_mode
    mov eax, 0x80000001
    cpuid
    mov eax, edx
    and eax, 0x20100000
    cmp eax, 0x20100000
    jne no_long_mode

    # Four page directories with 2 MiB pages: the first 4 GiB. (The loaders leave these tables' memory cleared.)
    mov ecx, 0
fill_directories:
    mov eax, ecx
    shl eax, 21
    or eax, 0x83
    mov dword ptr [boot_pd + ecx * 8], eax
    mov dword ptr [boot_pd + ecx * 8 + 4], 0
    inc ecx
    cmp ecx, 2048
    jne fill_directories
    mov dword ptr [boot_pdpt + 0], offset boot_pd + 0x0003
    mov dword ptr [boot_pdpt + 8], offset boot_pd + 0x1003
    mov dword ptr [boot_pdpt + 16], offset boot_pd + 0x2003
    mov dword ptr [boot_pdpt + 24], offset boot_pd + 0x3003
    mov dword ptr [boot_high_pdpt + 510 * 8], offset boot_pd + 3
    mov dword ptr [boot_pml4 + 0], offset boot_pdpt + 3
    mov dword ptr [boot_pml4 + 256 * 8], offset boot_pdpt + 3
    mov dword ptr [boot_pml4 + 511 * 8], offset boot_high_pdpt + 3

    mov eax, offset boot_pml4
    mov cr3, eax
    mov eax, cr4
    or eax, 0x20                    # PAE
    mov cr4, eax
    mov ecx, 0xc0000080             # EFER
    rdmsr
    or eax, 0x900                   # LME, NXE
    wrmsr
    mov eax, cr0
    or eax, 0x80010001              # PG, WP, PE
    mov cr0, eax
    pop edx
    lgdt [boot_gdt_pointer]
    mov eax, offset long_mode
    push 8
    push eax
    retf

no_long_mode:
    hlt
    jmp no_long_mode

.code64
long_mode:
    mov eax, 16
    mov ds, eax
    mov es, eax
    mov ss, eax
    xor eax, eax
    mov fs, eax
    mov gs, eax
    xchg edi, esi                   # rdi = magic, rsi = information
    mov edi, edi
    mov esi, esi
    shl rdx, 32
    mov ebp, ebp
    or rdx, rbp
    xor ebp, ebp
    mov rsp, offset kernel_stack_end
    mov rax, offset kernel_main
    call rax
    ud2

.section .boot.data, "aw"
.align 8
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff        # code, 64 bits
    .quad 0x00cf93000000ffff        # data
boot_gdt_pointer:
    .short 23
    .long boot_gdt
    .long 0

.section .boot.bss, "aw", @nobits
.align 4096
boot_pml4:
    .skip 4096
boot_pdpt:
    .skip 4096
boot_high_pdpt:
    .skip 4096
boot_pd:
    .skip 4 * 4096
boot_stack:
    .skip 4096
boot_stack_end:

# The kernel's only stack; below it a page that is never mapped (page_tables.rs), so that an overflow cannot go unnoticed.
.section .bss.kernel_stack, "aw", @nobits
.align 4096
.global kernel_stack_guard
kernel_stack_guard:
    .skip 4096
kernel_stack:
    .skip 64 * 1024
.global kernel_stack_end
kernel_stack_end:
