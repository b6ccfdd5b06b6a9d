//! `/proc/cpuinfo`: the processors that are online.

use crate::words::{Words, lines};

/// Features that have a bit in `CpuInfo.Cpu.features`, in the order of their bits. Both are of ARM;
/// x86 has none.
const FEATURES: [&[u8]; 2] = [b"mte", b"mte3"];

/// A processor that is online.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Processor<'a> {
    pub(crate) number: u32,
    /// Name of the processor.
    pub(crate) name: Option<&'a [u8]>,
    pub(crate) arm: ArmIdentifier,
    /// Bit mask of features that the schema knows.
    pub(crate) features: u64,
}

/// Numbers that identify a processor of ARM. Other processors have none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArmIdentifier {
    pub(crate) implementer: Option<u32>,
    pub(crate) architecture: Option<u32>,
    pub(crate) variant: Option<u32>,
    pub(crate) part: Option<u32>,
    pub(crate) revision: Option<u32>,
}

/// Parses the file. Each processor has a block of lines that begins with its number.
///
/// Old kernels on ARM name the processor once for all (`Processor`); others name each of them.
pub(crate) fn parse(text: &[u8]) -> Vec<Processor<'_>> {
    let mut processors: Vec<Processor<'_>> = Vec::new();
    let mut common_name = None;
    for line in lines(text) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let key = line[..colon].trim_ascii_end();
        let value = line[colon + 1..].trim_ascii();
        if key == b"Processor" {
            common_name = Some(value);
        } else if key == b"processor" {
            if let Some(number) = number(value, 10) {
                processors.push(Processor { number, ..Processor::default() });
            }
        } else if let Some(processor) = processors.last_mut() {
            processor.add(key, value);
        }
    }
    for processor in &mut processors {
        processor.name = processor.name.or(common_name);
    }
    processors
}

impl<'a> Processor<'a> {
    fn add(&mut self, key: &[u8], value: &'a [u8]) {
        match key {
            // x86 and others; MIPS; POWER; RISC-V.
            b"model name" | b"cpu model" | b"cpu" | b"uarch" => self.name = self.name.or(Some(value)),
            b"CPU implementer" => self.arm.implementer = number(value, 16),
            b"CPU architecture" => self.arm.architecture = number(value, 10),
            b"CPU variant" => self.arm.variant = number(value, 16),
            b"CPU part" => self.arm.part = number(value, 16),
            b"CPU revision" => self.arm.revision = number(value, 10),
            b"Features" | b"Flags" | b"flags" => {
                let mut words = Words::new(value);
                while let Some(word) = words.word() {
                    if let Some(bit) = FEATURES.iter().position(|&feature| feature == word) {
                        self.features |= 1 << bit;
                    }
                }
            }
            _ => {}
        }
    }
}

/// Parses a whole number; hexadecimal ones may begin with `0x`.
fn number(text: &[u8], radix: u32) -> Option<u32> {
    let text = core::str::from_utf8(text).ok()?;
    let digits = if radix == 16 { text.strip_prefix("0x").unwrap_or(text) } else { text };
    if digits.starts_with('+') {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_x86_have_the_name_of_their_model() {
        let text =
            b"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 167\nmodel name\t: Intel(R) Xeon(R) Processor\n\
            flags\t\t: fpu vme mtex\n\nprocessor\t: 3\nmodel name\t: Other: one\n\n";
        let processors = parse(text);
        let found: Vec<_> = processors.iter().map(|processor| (processor.number, processor.name)).collect();
        assert_eq!(found, [(0, Some(&b"Intel(R) Xeon(R) Processor"[..])), (3, Some(b"Other: one"))]);
        assert!(
            processors.iter().all(|processor| processor.features == 0 && processor.arm == ArmIdentifier::default())
        );
    }

    #[test]
    fn processors_of_arm_have_numbers_and_features() {
        let text = b"processor\t: 1\nBogoMIPS\t: 38.40\nFeatures\t: fp asimd mte mte3\nCPU implementer\t: 0x41\n\
            CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd05\nCPU revision\t: 0\n";
        let arm = ArmIdentifier {
            implementer: Some(0x41),
            architecture: Some(8),
            variant: Some(1),
            part: Some(0xd05),
            revision: Some(0),
        };
        assert_eq!(parse(text), [Processor { number: 1, name: None, arm, features: 3 }]);
    }

    #[test]
    fn old_kernels_name_the_processor_once() {
        let text = b"Processor\t: AArch64 Processor rev 4 (aarch64)\nprocessor\t: 0\nprocessor\t: 1\n\nHardware\t: X\n";
        let names: Vec<_> = parse(text).iter().map(|processor| processor.name).collect();
        assert_eq!(names, [Some(&b"AArch64 Processor rev 4 (aarch64)"[..]); 2]);
        assert_eq!(parse(b"processor\t: -1\nprocessor:\nmodel name: lost\n"), []);
    }
}
