//! The command `esatto dump`: the packets of a trace, as text or JSON.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use esatto_inputs::Member;
use esatto_protozero::Fields;
use esatto_schema::trace_packet::field;
use esatto_trace::escape::Line;
use esatto_trace::{Error, PacketReader};
use prost_reflect::{DynamicMessage, MessageDescriptor};

use crate::args;
use crate::console::say;
use crate::failure::Failure;
use crate::trace_config::schema_message;
use crate::trace_input;

pub(crate) fn run(args: &args::Dump) -> Result<ExitCode, Failure> {
    let message = schema_message("perfetto.protos.TracePacket")?;
    let filter = Filter::new(args, &message)?;
    let inputs = trace_input::open(&args.traces)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut print = Printer { message, is_json: args.json, printed: 0 };
    let mut failure = inputs.errors().first().map(|(name, why)| Failure::new(format!("{name} is damaged"), why));
    for member in inputs.members() {
        let printed = print_member(args, &filter, member, inputs.members().len() > 1, &mut print, &mut out);
        match printed {
            Ok(None) => {}
            Ok(Some(damage)) => failure = Some(damage),
            Err(Stop::Closed) => return Ok(ExitCode::SUCCESS),
            Err(Stop::Failed(failure)) => return Err(failure),
        }
    }
    match out.flush() {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => return Err(Failure::new("cannot print the packets", e)),
        _ => {}
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Reason for which nothing more is printed.
enum Stop {
    /// The reader has seen enough.
    Closed,
    Failed(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(Failure::new("cannot print the packets", error)),
        }
    }
}

/// Prints the packets of a trace. Returns the failure if it is damaged.
fn print_member(
    args: &args::Dump,
    filter: &Filter<'_>,
    member: &Member,
    is_of_several: bool,
    print: &mut Printer,
    out: &mut impl Write,
) -> Result<Option<Failure>, Stop> {
    let before = print.printed;
    let mut reader = match member.open() {
        Ok(reader) => reader,
        Err(error) if is_of_several => return Ok(Some(trace_input::failed(error))),
        Err(error) => return Err(Stop::Failed(trace_input::failed(error))),
    };
    if is_of_several && !args.json {
        writeln!(out, "# {}", Line(member.name()))?;
    }
    let mut last_error = None;
    for packet in PacketReader::new(&mut reader).with_stored_bytes(member.stored_bytes()) {
        if args.limit.is_some_and(|limit| print.printed >= limit) {
            break;
        }
        match packet {
            Ok(packet) if filter.takes(&packet.bytes) => print.packet(out, &packet.bytes)?,
            Ok(_) => {}
            Err(error) => last_error = Some(error),
        }
    }
    for loss in reader.losses() {
        say!("{}: {}", Line(member.name()), Line(loss));
    }
    Ok(last_error.map(|error| damaged(member.name(), &error, print.printed - before)))
}

fn damaged(file: &str, error: &Error, printed: u64) -> Failure {
    let failure = Failure::new(format!("{file} is damaged, or no Perfetto trace"), error);
    if printed > 0 { failure.hint("everything before it is printed") } else { failure }
}

/// Packets that are asked for.
#[derive(Debug)]
struct Filter<'a> {
    args: &'a args::Dump,
    /// Numbers of the fields of which a packet must have one; empty for all packets.
    types: Vec<u32>,
}

impl<'a> Filter<'a> {
    fn new(args: &'a args::Dump, message: &MessageDescriptor) -> Result<Self, Failure> {
        let number = |name: &String| match message.get_field_by_name(name) {
            Some(field) => Ok(field.number()),
            None => {
                let what = format!("cannot print only packets of the type {name}");
                let failure = Failure::new(what, "TracePacket has no such field");
                Err(failure.hint("`esatto info` lists the types of a trace"))
            }
        };
        Ok(Self { args, types: args.types.iter().map(number).collect::<Result<_, _>>()? })
    }

    fn takes(&self, packet: &[u8]) -> bool {
        let (mut has_type, mut sequence, mut time) = (self.types.is_empty(), 0, None);
        for field in Fields::new(packet) {
            has_type |= self.types.contains(&field.id);
            match field.id {
                field::TRUSTED_PACKET_SEQUENCE_ID => sequence = field.as_u32(),
                field::TIMESTAMP => time = Some(field.as_u64()),
                _ => {}
            }
        }
        let args = self.args;
        let in_time = match time {
            Some(time) => args.from.is_none_or(|from| time >= from) && args.to.is_none_or(|to| time <= to),
            None => args.from.is_none() && args.to.is_none(),
        };
        has_type && in_time && (args.sequences.is_empty() || args.sequences.contains(&sequence))
    }
}

#[derive(Debug)]
struct Printer {
    message: MessageDescriptor,
    is_json: bool,
    printed: u64,
}

impl Printer {
    fn packet(&mut self, out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        self.printed += 1;
        if self.is_json {
            return match DynamicMessage::decode(self.message.clone(), bytes) {
                Ok(packet) => {
                    serde_json::to_writer(&mut *out, &packet)?;
                    out.write_all(b"\n")
                }
                Err(error) => {
                    say!("Packet {} has no JSON: {error}.", self.printed);
                    Ok(())
                }
            };
        }
        out.write_all(b"packet {\n")?;
        for line in esatto_text_format::to_text(&self.message, bytes).lines() {
            writeln!(out, "  {line}")?;
        }
        out.write_all(b"}\n")
    }
}
