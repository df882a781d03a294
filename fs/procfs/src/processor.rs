//! /proc/cpuinfo: what the processor tells of itself by CPUID.

use crate::source::Source;
use crate::text::{Lossy, Text};
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::fmt::{self, Write};

/// Registers of a leaf, in the order in which [`FLAGS`] names them.
const REGISTERS: [(u32, usize); 6] = [(1, 3), (0x8000_0001, 3), (1, 2), (0x8000_0001, 2), (7, 1), (7, 2)];

/// Names of the bits of each register of [`REGISTERS`], from bit 0; empty: Linux shows none.
const FLAGS: [&str; 6] = [
    "fpu vme de pse tsc msr pae mce cx8 apic - sep mtrr pge mca cmov pat pse36 pn clflush - dts acpi mmx fxsr sse sse2 ss ht tm ia64 pbe",
    "- - - - - - - - - - - syscall - - - - - - - mp nx - mmxext - - fxsr_opt pdpe1gb rdtscp - lm 3dnowext 3dnow",
    "pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 cid sdbg fma cx16 xtpr pdcm - pcid dca sse4_1 sse4_2 x2apic movbe popcnt \
     tsc_deadline_timer aes xsave - avx f16c rdrand hypervisor",
    "lahf_lm cmp_legacy svm extapic cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw ibs xop skinit wdt - lwp fma4 tce - nodeid_msr - \
     tbm topoext perfctr_core perfctr_nb - bpext ptsc perfctr_llc mwaitx",
    "fsgsbase tsc_adjust sgx bmi1 hle avx2 - smep bmi2 erms invpcid rtm cqm - mpx rdt_a avx512f avx512dq rdseed adx smap avx512ifma - \
     clflushopt clwb intel_pt avx512pf avx512er avx512cd sha_ni avx512bw avx512vl",
    "- avx512vbmi umip pku ospke waitpkg avx512_vbmi2 - gfni vaes vpclmulqdq avx512_vnni avx512_bitalg tme avx512_vpopcntdq - la57 - - - - - \
     rdpid - bus_lock_detect cldemote - movdiri movdir64b",
];

fn leaf(number: u32) -> [u32; 4] {
    let highest = __cpuid(number & 0x8000_0000).eax;
    if number > highest {
        return [0; 4];
    }
    let result = __cpuid_count(number, 0);
    [result.eax, result.ebx, result.ecx, result.edx]
}

/// /proc/cpuinfo: one processor.
pub fn cpu(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let hz = source.kernel().tsc_hz;
    let (megahertz, fraction) = (hz / 1_000_000, hz / 1000 % 1000);
    let [signature, brief, ..] = leaf(1);
    let (family, model) = family_and_model(signature);
    text.write_str("processor\t: 0\nvendor_id\t: ")?;
    let [_, b, c, d] = leaf(0);
    write_words(text, &[b, d, c])?;
    write!(text, "\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: ")?;
    write_words(text, [leaf(0x8000_0002), leaf(0x8000_0003), leaf(0x8000_0004)].as_flattened())?;
    write!(text, "\nstepping\t: {}\ncpu MHz\t\t: {megahertz}.{fraction:03}\n", signature & 0xf)?;
    text.write_str(
        "physical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\napicid\t\t: 0\ninitial apicid\t: 0\n",
    )?;
    write!(text, "fpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: {}\nwp\t\t: yes\nflags\t\t:", leaf(0)[0])?;
    REGISTERS.iter().zip(FLAGS).try_for_each(|((number, register), names)| {
        let bits = leaf(*number)[*register];
        let mut names = names.split_ascii_whitespace().enumerate();
        names.try_for_each(
            |(bit, name)| {
                if bits >> bit & 1 != 0 && name != "-" { write!(text, " {name}") } else { Ok(()) }
            },
        )
    })?;
    let bogomips = 2 * hz / 1_000_000;
    let (sizes, line) = (leaf(0x8000_0008)[0], brief >> 8 & 0xff);
    write!(
        text,
        "\nbugs\t\t:\nbogomips\t: {bogomips}.00\nclflush size\t: {}\ncache_alignment\t: {}\n",
        8 * line,
        8 * line
    )?;
    writeln!(
        text,
        "address sizes\t: {} bits physical, {} bits virtual\npower management:\n",
        sizes & 0xff,
        sizes >> 8 & 0xff
    )
}

/// Family and model of a signature (CPUID leaf 1), the extended fields included.
fn family_and_model(signature: u32) -> (u32, u32) {
    let family = signature >> 8 & 0xf;
    let model = signature >> 4 & 0xf;
    let extended = if family == 6 || family == 15 { signature >> 16 & 0xf } else { 0 };
    (if family == 15 { family + (signature >> 20 & 0xff) } else { family }, model | extended << 4)
}

/// Text that registers hold, up to NUL.
fn write_words(text: &mut Text, words: &[u32]) -> fmt::Result {
    let mut bytes = [0; 48];
    bytes.iter_mut().zip(words.iter().flat_map(|word| word.to_le_bytes())).for_each(|(to, byte)| *to = byte);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    write!(text, "{}", Lossy(bytes[..end].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_families_and_models_count() {
        assert_eq!(family_and_model(0x0005_0654), (6, 0x55));
        assert_eq!(family_and_model(0x0080_0f12), (23, 1));
        assert_eq!(family_and_model(0x0000_0543), (5, 4));
    }

    #[test]
    fn each_bit_has_a_name_or_a_dash() {
        for names in FLAGS {
            assert!(names.split_ascii_whitespace().count() <= 32, "{names}");
        }
        assert_eq!(FLAGS[0].split_ascii_whitespace().position(|name| name == "sse2"), Some(26));
        assert_eq!(FLAGS[1].split_ascii_whitespace().position(|name| name == "lm"), Some(29));
        assert_eq!(FLAGS[2].split_ascii_whitespace().position(|name| name == "hypervisor"), Some(31));
        assert_eq!(FLAGS[4].split_ascii_whitespace().position(|name| name == "avx2"), Some(5));
    }
}
