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
    /// Texts are names of events, arguments, log messages, command lines, and what programs print
    /// into the kernel's trace.
    ///
    /// # Errors
    ///
    /// A pattern is not valid.
    pub fn with_patterns(patterns: &[String], drop_args: bool) -> Result<Self, Error> {
        let mut strings = StringFilter::new();
        for pattern in patterns {
            // The pattern must be valid by itself: it could close the group around it.
            Rule::new(&EcmaScript, Policy::MatchRedactGroups, pattern.as_bytes())?;
            let whole = format!("([^]*(?:{pattern})[^]*)");
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

/// Returns bytecode that passes everything, sends the texts that people write through the rules,
/// and perhaps leaves out arguments.
fn profile(drop_args: bool) -> Result<Vec<u8>, Error> {
    use Special::{Drop, Enter, Text};
    let args = |message: u32| if drop_args { Drop } else { Enter(message) };
    let messages: [&[(u32, Special)]; 16] = [
        &[(PACKET, Enter(1))],
        // 1: TracePacket
        &[
            (1, Enter(12)),
            (2, Enter(8)),
            (11, Enter(2)),
            (12, Enter(5)),
            (39, Enter(9)),
            (43, Enter(11)),
            (60, Enter(15)),
        ],
        // 2: TrackEvent
        &[(4, args(3)), (23, Text)],
        // 3: DebugAnnotation. A message of an unknown kind could have texts.
        &[(6, Text), (8, Enter(4)), (9, Text), (11, Enter(3)), (12, Enter(3)), (14, Drop)],
        // 4: DebugAnnotation.NestedValue
        &[(2, Text), (3, Enter(4)), (4, Enter(4)), (8, Text)],
        // 5: InternedData
        &[(2, Enter(6)), (20, Enter(6)), (29, args(6))],
        // 6: a number and a text
        &[(2, Text)],
        // 7: ProcessTree.Process
        &[(3, Text)],
        // 8: ProcessTree
        &[(1, Enter(7))],
        // 9: AndroidLogPacket
        &[(1, Enter(10))],
        // 10: AndroidLogPacket.LogEvent
        &[(8, Text), (9, Enter(14))],
        // 11: ProcessDescriptor
        &[(2, Text)],
        // 12: FtraceEventBundle
        &[(2, Enter(13))],
        // 13: FtraceEvent, whose field 3 is a print, with its text in field 2
        &[(3, Enter(6))],
        // 14: AndroidLogPacket.LogEvent.Arg
        &[(4, Text)],
        // 15: TrackDescriptor
        &[(3, Enter(11))],
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
