//! `/proc/interrupts`: names of the interrupts.

use crate::words::{Words, split_line};

/// Parses the file: calls `add` with the number of each interrupt and its name.
///
/// A row has a number for each CPU, the chip, the number at the chip, the trigger, and the name:
/// ` 41:  20609  0  PCI-MSIX-0000:00:04.0  1-edge  virtio3-rx`. Chips and names may have several
/// words, and the trigger may be missing; then the last word is the name. Rows without a number
/// (`NMI:`) are totals of the kernel, not interrupts of a device.
pub(crate) fn parse(text: &[u8], mut add: impl FnMut(u32, &[u8])) {
    let (header, mut rest) = split_line(text);
    let mut header = Words::new(header);
    let cpus = core::iter::from_fn(|| header.word()).filter(|word| word.starts_with(b"CPU")).count();
    let mut name = Vec::new();
    while cpus > 0 && !rest.is_empty() {
        let (row, later) = split_line(rest);
        rest = later;
        let mut words = Words::new(row);
        let Some(number) = words.word().and_then(row_number) else { continue };
        words.skip(cpus);
        name.clear();
        name_of(words, &mut name);
        if !name.is_empty() {
            add(number, &name);
        }
    }
}

/// Parses the head of a row.
fn row_number(word: &[u8]) -> Option<u32> {
    let digits = word.strip_suffix(b":")?;
    let digits = digits.first()?.is_ascii_digit().then_some(digits)?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// Appends the name of a row, whose numbers were passed over. The first word belongs to the chip.
fn name_of(mut words: Words<'_>, name: &mut Vec<u8>) {
    words.skip(1);
    let mut last = None;
    let mut after_trigger = None;
    while let Some(word) = words.word() {
        last = Some(word);
        if is_trigger(word) {
            after_trigger = Some(words);
        }
    }
    let Some(mut words) = after_trigger else {
        return name.extend_from_slice(last.unwrap_or_default());
    };
    while let Some(word) = words.word() {
        if !name.is_empty() {
            name.push(b' ');
        }
        name.extend_from_slice(word);
    }
}

fn is_trigger(word: &[u8]) -> bool {
    matches!(word, b"Level" | b"Edge") || [&b"-edge"[..], b"-level", b"-fasteoi"].iter().any(|end| word.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(u32, String)> {
        let mut names = Vec::new();
        parse(text.as_bytes(), |number, name| names.push((number, String::from_utf8_lossy(name).into_owned())));
        names
    }

    #[test]
    fn names_follow_the_trigger() {
        let text = "           CPU0       CPU1       \n\
             24:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
             16:          0          7  IO-APIC  16-fasteoi   i801_smbus,  ehci_hcd:usb1\n\
             11:          0          7  GICv3  27 Level     arch_timer\n\
            193:          0          7  cs40l26 IRQ1 Controller  3 Edge  my device\n\
            NMI:          0          0   Non-maskable interrupts\n\
            ERR:          0\n";
        let wanted = [(24, "ACPI:Ged"), (16, "i801_smbus, ehci_hcd:usb1"), (11, "arch_timer"), (193, "my device")];
        assert_eq!(names(text), wanted.map(|(number, name)| (number, name.to_owned())));
    }

    #[test]
    fn without_a_trigger_the_last_word_is_the_name() {
        let text = "  CPU0\n 1: 5 XT-PIC timer\n 2: 5 XT-PIC\n 3: 5\n 4:\n x: 1 a b\n+5: 1 a b\n 6: 1 a 0-edge\n";
        assert_eq!(names(text), [(1, "timer".to_owned())]);
        assert_eq!(names("no header\n 1: 5 XT-PIC timer\n"), []);
    }
}
