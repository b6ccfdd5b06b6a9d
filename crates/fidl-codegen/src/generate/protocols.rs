//! Bindings of protocols: descriptions, clients, servers, events.
//!
//! `protocol Echo` becomes the type `Echo`, which names the protocol, and the module `echo` with
//! the rest.

use esatto_rust_text::Printer;

use super::context::{Context, ROOT};
use super::{names, notes};
use crate::model::{Declaration, Method, MethodKind, Name, Payload, Protocol, Response, ServiceMember};

pub(super) fn protocol(context: &Context<'_>, p: &mut Printer, declaration: &Declaration, protocol: &Protocol) {
    let from = &declaration.name;
    let name = names::type_name(&from.name);
    notes(p, &declaration.notes, &format!("Protocol `{from}`."));
    p.line("#[derive(Clone, Copy, Debug)]");
    p.line(format!("pub enum {name} {{}}"));
    p.gap();
    p.block(format!("impl {ROOT}::Protocol for {name}"), |p| {
        p.line(format!("const NAME: &'static str = \"{from}\";"));
        let discoverable = protocol.discoverable.as_ref();
        let discoverable = discoverable.map_or_else(|| "None".to_owned(), |name| format!("Some({name:?})"));
        p.line(format!("const DISCOVERABLE: Option<&'static str> = {discoverable};"));
        p.line(format!(
            "const OPENNESS: {ROOT}::Openness = {ROOT}::Openness::{};",
            names::variant(protocol.openness.fidl())
        ));
    });
    p.gap();
    p.doc(&format!("Client, server and events of [`{name}`]."));
    p.block(format!("pub mod {}", names::field(&from.name)), |p| {
        method_module(context, p, from, protocol);
        p.gap();
        client(context, p, from, protocol);
        p.gap();
        server(context, p, from, protocol);
        let events: Vec<_> = events(protocol).collect();
        if !events.is_empty() {
            p.gap();
            event_enum(context, p, from, &events);
            p.gap();
            event_sender(context, p, from, &events);
        }
    });
}

pub(super) fn service(context: &Context<'_>, p: &mut Printer, declaration: &Declaration, members: &[ServiceMember]) {
    let from = &declaration.name;
    notes(p, &declaration.notes, &format!("Service `{from}`: its members, each a connection."));
    p.line("#[derive(Debug)]");
    p.block_or_empty(&format!("pub struct {}", names::type_name(&from.name)), members.is_empty(), |p| {
        for member in members {
            notes(p, &member.notes, &format!("`{}`", member.name));
            let end = format!("{ROOT}::ClientEnd<{}>", context.path(from, &member.protocol));
            p.field(&format!("pub {}", names::field(&member.name)), &end);
        }
    });
}

fn events(protocol: &Protocol) -> impl Iterator<Item = &Method> {
    protocol.methods.iter().filter(|method| matches!(method.kind, MethodKind::Event { .. }))
}

fn calls(protocol: &Protocol) -> impl Iterator<Item = &Method> {
    protocol.methods.iter().filter(|method| !matches!(method.kind, MethodKind::Event { .. }))
}

/// Returns the path of a type, as the module of a protocol writes it.
fn outer(context: &Context<'_>, from: &Name, to: &Name) -> String {
    format!("super::{}", context.path(from, to))
}

/// Returns the body of a message, as the module of a protocol writes it.
fn body(context: &Context<'_>, from: &Name, payload: &Payload) -> String {
    match payload {
        Some(name) => format!("{ROOT}::body::Payload<{}>", outer(context, from, name)),
        None => format!("{ROOT}::body::Empty"),
    }
}

/// Writes the module of marker types, one for each method.
fn method_module(context: &Context<'_>, p: &mut Printer, from: &Name, protocol: &Protocol) {
    p.doc("Methods and events as types.");
    p.block_or_empty("pub mod method", protocol.methods.is_empty(), |p| {
        for method in &protocol.methods {
            p.gap();
            method_type(context, p, from, method);
        }
    });
}

fn method_type(context: &Context<'_>, p: &mut Printer, from: &Name, method: &Method) {
    let name = names::type_name(&method.name);
    // The module of methods is one level deeper.
    let deeper = |body: String| body.replace("<super::", "<super::super::").replace(", super::", ", super::super::");
    let (kind, request, response) = match &method.kind {
        MethodKind::OneWay { request } => ("OneWay", body(context, from, request), body(context, from, &None)),
        MethodKind::Event { payload } => ("Event", body(context, from, payload), body(context, from, &None)),
        MethodKind::TwoWay { request, response } => {
            ("TwoWay", body(context, from, request), response_body(context, from, response))
        }
    };
    let strictness = if method.is_strict { "Strict" } else { "Flexible" };
    p.doc(&format!("`{}.{}`, ordinal {:#x}", from.name, method.name, method.ordinal));
    p.line("#[derive(Clone, Copy, Debug)]");
    p.line(format!("pub enum {name} {{}}"));
    p.gap();
    let trace = method.trace.as_ref().map_or_else(|| "None".to_owned(), |_| "Some(&TRACE)".to_owned());
    p.block(format!("impl {ROOT}::Method for {name}"), |p| {
        p.line(format!("type Request = {};", deeper(request)));
        p.line(format!("type Response = {};", deeper(response)));
        p.block_with_end(
            format!("const INFO: &'static {ROOT}::MethodInfo ="),
            |p| {
                if let Some(category) = &method.trace {
                    p.line(format!("static TRACE: {ROOT}::TraceSite = {ROOT}::TraceSite::new({category:?});"));
                }
                let args = [
                    format!("{:?}", method.name),
                    format!("\"{}.{}\"", from.name, method.name),
                    format!("{:#x}", method.ordinal),
                    format!("{ROOT}::Strictness::{strictness}"),
                    format!("{ROOT}::MethodKind::{kind}"),
                    trace,
                ];
                p.call(&format!("static INFO: {ROOT}::MethodInfo = "), &format!("{ROOT}::MethodInfo::new"), &args, ";");
                p.line("&INFO");
            },
            "};",
        );
    });
}

fn response_body(context: &Context<'_>, from: &Name, response: &Response) -> String {
    match response {
        Response::Plain(payload) => body(context, from, payload),
        Response::Result { success, error, .. } => {
            let success = success
                .as_ref()
                .map_or_else(|| format!("{ROOT}::body::EmptyStruct"), |name| outer(context, from, name));
            match error {
                Some(error) => {
                    let error = context.wire_in_module(from, error);
                    format!("{ROOT}::body::Outcome<{success}, {error}>")
                }
                None => format!("{ROOT}::body::Flexible<{success}>"),
            }
        }
    }
}

/// Returns parameters and the expression of a request.
fn request(context: &Context<'_>, from: &Name, payload: &Payload) -> (Option<String>, &'static str) {
    match payload {
        Some(name) => (Some(format!("request: &{}", outer(context, from, name))), "request"),
        None => (None, "&()"),
    }
}

fn client(context: &Context<'_>, p: &mut Printer, from: &Name, protocol: &Protocol) {
    let marker = outer(context, from, from);
    p.doc(&format!("Client of `{from}`. Clones use the same connection."));
    p.line("#[derive(Clone, Debug)]");
    p.line(format!("pub struct Client({ROOT}::Channel<{marker}>);"));
    p.gap();
    p.block("impl Client", |p| {
        p.doc("Takes the client's end of a connection.");
        p.doc("\n# Errors\n\nIt is no UNIX socket of packets or stream.");
        let args = [format!("end: {ROOT}::ClientEnd<{marker}>")];
        p.function_with("pub fn new", &args, " -> ::std::io::Result<Self>", |p| {
            p.line(format!("{ROOT}::Channel::new(end).map(Self)"));
        });
        p.gap();
        p.doc("Returns the connection: to drive it, and to close it.");
        p.line("#[must_use]");
        p.block(format!("pub fn channel(&self) -> &{ROOT}::Channel<{marker}>"), |p| p.line("&self.0"));
        for method in calls(protocol) {
            p.gap();
            client_method(context, p, from, method);
        }
        if events(protocol).next().is_some() {
            p.gap();
            p.doc("Waits for the next event. Returns `None` if the time is over.");
            p.doc("\n# Errors\n\nThe connection ended, or the event is malformed.");
            let args = ["&self".to_owned(), "timeout: Option<::core::time::Duration>".to_owned()];
            let returns = format!(" -> Result<Option<Event>, {ROOT}::CallError>");
            p.function_with("pub fn wait_event", &args, &returns, |p| {
                p.line("self.0.wait_event(timeout)?.map(|event| Event::decode(&self.0, event)).transpose()");
            });
            p.gap();
            p.doc("Awaits the next event. The channel must be driven.");
            p.doc("\n# Errors\n\nThe connection ended, or the event is malformed.");
            let returns = format!(" -> Result<Event, {ROOT}::CallError>");
            p.function_with("pub async fn next_event", &["&self".to_owned()], &returns, |p| {
                p.line("let event = self.0.next_event().await?;");
                p.line("Event::decode(&self.0, event)");
            });
        }
    });
}

fn client_method(context: &Context<'_>, p: &mut Printer, from: &Name, method: &Method) {
    let marker = format!("method::{}", names::type_name(&method.name));
    let name = client_function(&method.name);
    match &method.kind {
        MethodKind::OneWay { request: payload } => {
            let (parameter, value) = request(context, from, payload);
            notes(p, &method.notes, &format!("Sends `{}`.", method.name));
            p.remark("# Errors\n\nThe request cannot be sent.");
            let args: Vec<_> = std::iter::once("&self".to_owned()).chain(parameter).collect();
            p.function_with(&format!("pub fn {name}"), &args, &format!(" -> Result<(), {ROOT}::CallError>"), |p| {
                p.line(format!("self.0.send::<{marker}>({value})"));
            });
        }
        MethodKind::TwoWay { request: payload, .. } => {
            let (parameter, value) = request(context, from, payload);
            notes(p, &method.notes, &format!("Calls `{}`.", method.name));
            let parameter = parameter.map(|parameter| parameter.replace("request: &", "request: &'c "));
            let args: Vec<_> = std::iter::once("&'c self".to_owned()).chain(parameter).collect();
            p.function_with(&format!("pub fn {name}<'c>"), &args, &format!(" -> {ROOT}::Call<'c, {marker}>"), |p| {
                p.line(format!("self.0.call::<{marker}>({value})"));
            });
        }
        MethodKind::Event { .. } => {}
    }
}

/// Returns the name of a client's function. Those of the client itself are taken.
fn client_function(method: &str) -> String {
    let name = names::field(method);
    if ["new", "channel", "wait_event", "next_event", "clone"].contains(&&*name) { format!("{name}_") } else { name }
}

fn server(context: &Context<'_>, p: &mut Printer, from: &Name, protocol: &Protocol) {
    let marker = outer(context, from, from);
    p.doc(&format!("Methods of a server of `{from}`."));
    p.block("pub trait Methods", |p| {
        for method in calls(protocol) {
            p.gap();
            let (args, doc) = server_args(context, from, method);
            notes(p, &method.notes, &doc);
            p.signature(&format!("fn {}", server_function(&method.name)), &args, "", ";");
        }
        p.gap();
        p.doc("Handles a call of a method that this program does not know. The caller has been told.");
        p.block("fn unknown_method(&mut self, ordinal: u64)", |p| p.line("let _ = ordinal;"));
    });
    p.gap();
    p.doc("Connects the methods of a program with a connection.");
    p.line("#[derive(Clone, Copy, Debug)]");
    p.line("pub struct Dispatch<M>(pub M);");
    p.gap();
    p.block(format!("impl<M: Methods> {ROOT}::server::Dispatch for Dispatch<M>"), |p| {
        p.line(format!("type Protocol = {marker};"));
        p.gap();
        let args = ["&mut self".to_owned(), format!("incoming: {ROOT}::server::Incoming<'_>")];
        p.function_with("fn dispatch", &args, &format!(" -> Result<(), {ROOT}::CallError>"), |p| {
            p.block("match incoming.ordinal()", |p| {
                for method in calls(protocol) {
                    let function = server_function(&method.name);
                    let kind = if method.is_two_way() { "two_way" } else { "one_way" };
                    let has_request = match &method.kind {
                        MethodKind::OneWay { request } | MethodKind::TwoWay { request, .. } => request.is_some(),
                        MethodKind::Event { .. } => false,
                    };
                    let (parameters, values) = match (has_request, method.is_two_way()) {
                        (true, true) => ("request, responder", "request, responder"),
                        (true, false) => ("request", "request"),
                        (false, true) => ("(), responder", "responder"),
                        (false, false) => ("()", ""),
                    };
                    let value = format!(
                        "incoming.{kind}::<method::{}>(|{parameters}| self.0.{function}({values}))",
                        names::type_name(&method.name)
                    );
                    p.arm(&format!("{:#x}", method.ordinal), &value);
                }
                p.line("_ => incoming.unknown(|ordinal| self.0.unknown_method(ordinal)),");
            });
        });
    });
    p.gap();
    p.doc("Server's end of a connection, with the methods of a program.");
    p.line(format!("pub type Server<M> = {ROOT}::Server<Dispatch<M>>;"));
    p.gap();
    p.doc("Makes a server of the server's end of a connection.");
    p.doc("\n# Errors\n\nIt is no UNIX socket of packets or stream.");
    let args = [format!("end: {ROOT}::ServerEnd<{marker}>"), "methods: M".to_owned()];
    p.function_with("pub fn serve<M: Methods>", &args, " -> ::std::io::Result<Server<M>>", |p| {
        p.line(format!("{ROOT}::Server::new(end, Dispatch(methods))"));
    });
}

fn server_function(method: &str) -> String {
    let name = names::field(method);
    if name == "unknown_method" { format!("{name}_") } else { name }
}

fn server_args(context: &Context<'_>, from: &Name, method: &Method) -> (Vec<String>, String) {
    let mut args = vec!["&mut self".to_owned()];
    let payload = match &method.kind {
        MethodKind::OneWay { request } | MethodKind::TwoWay { request, .. } => request,
        MethodKind::Event { payload } => payload,
    };
    if let Some(name) = payload {
        args.push(format!("request: {}", outer(context, from, name)));
    }
    if method.is_two_way() {
        args.push(format!("responder: {ROOT}::Responder<method::{}>", names::type_name(&method.name)));
        return (args, format!("Answers `{}` with `responder.send`, now or later.", method.name));
    }
    (args, format!("Handles `{}`.", method.name))
}

fn event_enum(context: &Context<'_>, p: &mut Printer, from: &Name, events: &[&Method]) {
    let marker = outer(context, from, from);
    p.doc(&format!("Event of `{from}`."));
    p.line("#[derive(Debug)]");
    p.line("#[non_exhaustive]");
    p.block("pub enum Event", |p| {
        for event in events {
            notes(p, &event.notes, &format!("`{}`", event.name));
            match payload(event) {
                Some(name) => p.line(format!("{}({}),", names::type_name(&event.name), outer(context, from, name))),
                None => p.line(format!("{},", names::type_name(&event.name))),
            }
        }
        p.doc("Event that this program does not know.");
        p.block_with_end(
            unknown(events),
            |p| {
                p.doc("Its number.");
                p.line("ordinal: u64,");
            },
            "},",
        );
    });
    p.gap();
    p.block("impl Event", |p| {
        let args = [format!("channel: &{ROOT}::Channel<{marker}>"), format!("event: {ROOT}::RawEvent")];
        p.function_with("fn decode", &args, &format!(" -> Result<Self, {ROOT}::CallError>"), |p| {
            p.block("match event.ordinal()", |p| {
                for event in events {
                    let name = names::type_name(&event.name);
                    let variant = match payload(event) {
                        Some(_) => format!("event.decode::<method::{name}>().map(Self::{name})"),
                        None => format!("event.decode::<method::{name}>().map(|()| Self::{name})"),
                    };
                    p.arm(&format!("{:#x}", event.ordinal), &variant);
                }
                p.arm(
                    "_",
                    &format!("channel.unknown_event(&event).map(|ordinal| Self::{} {{ ordinal }})", unknown(events)),
                );
            });
        });
    });
}

fn event_sender(context: &Context<'_>, p: &mut Printer, from: &Name, events: &[&Method]) {
    let marker = outer(context, from, from);
    p.doc("Sends events to the client, from any thread.");
    p.block("pub trait Events", |p| {
        for event in events {
            p.gap();
            let (parameter, _) = request(context, from, payload(event));
            notes(p, &event.notes, &format!("Sends `{}`.", event.name));
            p.remark("# Errors\n\nIt cannot be sent.");
            let args: Vec<_> = std::iter::once("&self".to_owned()).chain(parameter).collect();
            p.signature(
                &format!("fn {}", names::field(&event.name)),
                &args,
                &format!(" -> Result<(), {ROOT}::CallError>"),
                ";",
            );
        }
    });
    p.gap();
    p.block(format!("impl Events for {ROOT}::EventSender<{marker}>"), |p| {
        for event in events {
            p.gap();
            let (parameter, value) = request(context, from, payload(event));
            let args: Vec<_> = std::iter::once("&self".to_owned()).chain(parameter).collect();
            let head = format!("fn {}", names::field(&event.name));
            p.function_with(&head, &args, &format!(" -> Result<(), {ROOT}::CallError>"), |p| {
                p.line(format!("self.send::<method::{}>({value})", names::type_name(&event.name)));
            });
        }
    });
}

fn payload(event: &Method) -> &Payload {
    match &event.kind {
        MethodKind::Event { payload } | MethodKind::OneWay { request: payload } => payload,
        MethodKind::TwoWay { request, .. } => request,
    }
}

/// Returns the variant for unknown events.
fn unknown(events: &[&Method]) -> String {
    let mut name = "Unknown".to_owned();
    while events.iter().any(|event| names::type_name(&event.name) == name) {
        name.push('_');
    }
    name
}
