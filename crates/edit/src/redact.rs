//! Traces without what must not leave the house: packets through the message filter.

use esatto_filter::{
    Builder, EcmaScript, Error, Filter, MessageId, Policy, Program, Rule, SemanticTypes, StringField, StringFilter,
    Version,
};
use esatto_schema::trace_config::TraceFilter;

/// Field `packet` of `Trace`, with which bytecode for traces begins.
const PACKET: u32 = 1;
/// The largest number of a field.
const LAST_FIELD: u32 = (1 << 29) - 1;

/// Filter for the packets of a trace.
#[derive(Debug)]
pub struct Redact {
    filter: Filter,
    errors: u64,
}

/// A field that does not simply pass.
enum Special {
    Drop,
    Enter(u32),
    Text,
}

impl Redact {
    /// Makes the filter that a service makes of a config. The bytes of each packet are the same.
    ///
    /// # Errors
    ///
    /// The bytecode or a rule is not valid.
    pub fn from_config(config: &TraceFilter) -> Result<Self, Error> {
        let bytes = |bytes: &Option<Vec<u8>>| bytes.as_deref().unwrap_or_default().to_vec();
        let (old, new) = (bytes(&config.bytecode), bytes(&config.bytecode_v2));
        let bytecode = if new.is_empty() { old } else { new };
        let program = Program::load_with_overlay(&bytecode, &bytes(&config.bytecode_overlay_v54))?;
        let mut strings = StringFilter::new();
        for chain in [&config.string_filter_chain, &config.string_filter_chain_v54].into_iter().flatten() {
            for rule in &chain.rules {
                let number = |number: i32| u32::from_ne_bytes(number.to_ne_bytes());
                let policy = Policy::from_number(rule.policy.map_or(0, |policy| number(policy.0)))?;
                let types = SemanticTypes::from_numbers(rule.semantic_type.iter().map(|kind| number(kind.0)))?;
                let made = Rule::new(&EcmaScript, policy, rule.regex_pattern.as_deref().unwrap_or_default())?;
                let prefix = rule.atrace_payload_starts_with.as_deref().unwrap_or_default();
                let name = rule.name.as_deref().unwrap_or_default();
                strings.add(made.atrace_payload_starts_with(prefix).name(name).semantic_types(types))?;
            }
        }
        Self::new(program, strings)
    }

    /// Makes a filter that passes everything, except that it overwrites each text that contains a
    /// match of one of the patterns, and leaves out all arguments if `drop_args` is true.
    ///
    /// Texts are names of events, arguments and their names, correlation ids, log messages, all
    /// texts of the journal, command lines, and what programs print into the kernel's trace.
    ///
    /// # Errors
    ///
    /// A pattern is not valid.
    pub fn with_patterns(patterns: &[String], drop_args: bool) -> Result<Self, Error> {
        let mut strings = StringFilter::new();
        for pattern in patterns {
            // The pattern must be valid by itself: it could close the group around it.
            Rule::new(&EcmaScript, Policy::MatchRedactGroups, pattern.as_bytes())?;
            let whole = format!("([^]*(?:{})[^]*)", inside_a_group(pattern));
            strings.add(Rule::new(&EcmaScript, Policy::MatchRedactGroups, whole.as_bytes())?)?;
        }
        Self::new(Program::load(&profile(drop_args)?)?, strings)
    }

    fn new(program: Program, strings: StringFilter) -> Result<Self, Error> {
        let filter = Filter::new(program).with_strings(strings).with_root(&[PACKET])?;
        Ok(Self { filter, errors: 0 })
    }

    /// Filters a packet into `out`. A packet that is malformed becomes empty, and so may others.
    pub fn packet(&mut self, packet: &[u8], out: &mut Vec<u8>) {
        if self.filter.filter(&[packet], out).is_err() {
            out.clear();
            self.errors += 1;
        }
    }

    /// Returns how many packets were malformed.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Returns how many texts were overwritten because a rule took too long.
    pub fn strings_given_up(&self) -> u64 {
        self.filter.strings_given_up()
    }
}

/// Returns a valid pattern as it must be inside a further group, which is then the first one: its
/// references to groups by number are one higher.
fn inside_a_group(pattern: &str) -> String {
    let mut moved = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(next) = rest.next() {
        moved.push(next);
        match next {
            '[' => in_class = true,
            ']' => in_class = false,
            '\\' => {
                let mut digits = String::new();
                while let Some(digit) = rest.next_if(|next| !in_class && next.is_ascii_digit()) {
                    digits.push(digit);
                }
                match digits.parse::<u32>() {
                    Ok(group) if group > 0 => moved.push_str(&group.saturating_add(1).to_string()),
                    // Another escape, perhaps of a bracket.
                    _ if digits.is_empty() => moved.extend(rest.next()),
                    _ => moved.push_str(&digits),
                }
            }
            _ => {}
        }
    }
    moved
}

/// Returns bytecode that passes everything, sends the texts that people write through the rules,
/// and perhaps leaves out arguments.
fn profile(drop_args: bool) -> Result<Vec<u8>, Error> {
    use Special::{Drop, Enter, Text};
    let args = |message: u32| if drop_args { Drop } else { Enter(message) };
    let messages: [&[(u32, Special)]; 24] = [
        &[(PACKET, Enter(1))],
        // 1: TracePacket
        &[
            (1, Enter(12)),
            (2, Enter(8)),
            (5, Enter(17)),
            (11, Enter(2)),
            (12, Enter(5)),
            (39, Enter(9)),
            (43, Enter(11)),
            (60, Enter(15)),
            (132, Enter(16)),
        ],
        // 2: TrackEvent
        &[(4, args(3)), (23, Text), (53, Text)],
        // 3: DebugAnnotation. A message of an unknown kind could have texts.
        &[(6, Text), (8, Enter(4)), (9, Text), (10, Text), (11, Enter(3)), (12, Enter(3)), (14, Drop)],
        // 4: DebugAnnotation.NestedValue
        &[(2, Text), (3, Enter(4)), (4, Enter(4)), (8, Text)],
        // 5: InternedData
        &[(2, Enter(6)), (3, args(6)), (20, Enter(6)), (29, args(6)), (43, Enter(6))],
        // 6: a number and a text
        &[(2, Text)],
        // 7: ProcessTree.Process
        &[(3, Text)],
        // 8: ProcessTree
        &[(1, Enter(7))],
        // 9: AndroidLogPacket
        &[(1, Enter(10))],
        // 10: AndroidLogPacket.LogEvent
        &[(6, Text), (8, Text), (9, Enter(14))],
        // 11: ProcessDescriptor
        &[(2, Text)],
        // 12: FtraceEventBundle
        &[(2, Enter(13))],
        // 13: FtraceEvent, whose field 3 is a print, with its text in field 2
        &[(3, Enter(6))],
        // 14: AndroidLogPacket.LogEvent.Arg
        &[(1, Text), (4, Text)],
        // 15: TrackDescriptor
        &[(3, Enter(11))],
        // 16: SystemdJournaldEvent, all of whose texts are of the program that has logged
        &[(6, Text), (7, Text), (8, Text), (9, Text), (10, Text), (11, Text), (12, Text)],
        // 17: ChromeEventBundle, the older form of events. Its JSON has arguments.
        &[(1, Enter(18)), (2, Enter(22)), (3, Enter(21)), (4, Text), (5, args(23))],
        // 18: ChromeTraceEvent
        &[(1, Text), (14, args(19))],
        // 19: ChromeTraceEvent.Arg
        &[(1, Text), (6, Text), (8, Text), (10, Enter(20))],
        // 20: ChromeTracedValue
        &[(2, Text), (3, Enter(20)), (4, Enter(20)), (8, Text)],
        // 21: ChromeStringTableEntry
        &[(1, Text)],
        // 22: ChromeMetadata
        &[(1, Text), (2, Text), (5, Text)],
        // 23: ChromeLegacyJsonTrace
        &[(2, Text)],
    ];
    let mut builder = Builder::new(Version::V2);
    for message in messages {
        let mut next = 1;
        for (field, special) in message {
            if next < *field {
                builder.pass_range(next..=field - 1)?;
            }
            match special {
                Drop => {}
                Enter(message) => _ = builder.nested(*field, MessageId(*message))?,
                Text => _ = builder.string(*field, StringField::default())?,
            }
            next = field + 1;
        }
        builder.pass_range(next..=LAST_FIELD)?.end_message();
    }
    Ok(builder.build()?.bytecode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_groups_are_those_of_the_pattern() {
        for (pattern, inside) in [
            (r"(.)\1", r"(.)\2"),
            (r"^(.)(?!\1)", r"^(.)(?!\2)"),
            (r"(a)\10", r"(a)\11"),
            (r"\\1[\]\1]\d\0", r"\\1[\]\1]\d\0"),
            (r"(?<x>.)\k<x>", r"(?<x>.)\k<x>"),
        ] {
            assert_eq!(inside_a_group(pattern), inside);
        }
    }

    /// Appends a field with a text or a message.
    fn with(mut message: Vec<u8>, field: u32, value: &[u8]) -> Vec<u8> {
        crate::packet::append_message(&mut message, field, value);
        message
    }

    #[test]
    fn all_texts_of_logs_and_arguments_go_through_the_patterns() {
        let one = |field: u32, value: &[u8]| with(Vec::new(), field, value);
        let journal = with(with(one(6, b"secret-6"), 7, b"secret-7"), 9, b"secret-9");
        let log = one(1, &with(one(6, b"secret-tag"), 8, b"secret-text"));
        let event = with(one(4, &with(one(10, b"secret-key"), 6, b"secret-value")), 53, b"secret-request");
        let names = with(one(3, &one(2, b"secret-name")), 43, &one(2, b"secret-request"));
        let value = one(3, &with(one(2, b"secret-dict"), 8, b"secret-deep"));
        let arg = with(with(one(1, b"secret-arg"), 8, b"{\"secret-json\"}"), 10, &value);
        let old = with(one(1, &with(one(1, b"secret-old"), 14, &arg)), 3, &one(1, b"secret-entry"));
        let old = with(with(old, 2, &one(2, b"secret-meta")), 4, b"secret-line");
        let old = with(old, 5, &one(2, b"{\"args\": \"secret-all\"}"));
        let packets = [one(132, &journal), one(39, &log), one(11, &event), one(12, &names), one(5, &old)];
        let redacted = |pattern: &[&str], drop_args: bool| {
            let patterns: Vec<_> = pattern.iter().map(|&pattern| pattern.to_owned()).collect();
            let mut redact = Redact::with_patterns(&patterns, drop_args).unwrap();
            let filter = |packet: &Vec<u8>| {
                let mut out = Vec::new();
                redact.packet(packet, &mut out);
                out
            };
            let all: Vec<_> = packets.iter().flat_map(filter).collect();
            String::from_utf8_lossy(&all).into_owned()
        };
        assert!(!redacted(&["secret"], false).contains("secret"));
        assert!(!redacted(&[r"(.)e(?!\1)cret"], false).contains("secret"));
        let rest = redacted(&[], true);
        assert!(rest.contains("secret-7") && !rest.contains("secret-name") && !rest.contains("secret-key"));
        assert!(
            rest.contains("secret-old") && ["-arg", "-json", "-deep", "-all"].iter().all(|name| !rest.contains(name))
        );
    }
}
