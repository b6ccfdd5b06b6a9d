//! Services: bindings for the RPC library `esatto-ipc`.

use prost_reflect::{MessageDescriptor, ServiceDescriptor};

use crate::config::Services;
use crate::context::Context;
use crate::error::Error;
use crate::rpc_methods::{Recorded, Replies, RpcMethod, Trace};
use esatto_rust_text::Printer;
use esatto_rust_text::identifiers;

/// Prints the module of a service.
pub(crate) fn print(cx: Context<'_>, p: &mut Printer, service: &ServiceDescriptor) -> Result<(), Error> {
    let methods = RpcMethod::all(service, cx.schema.config.rpc_trace)?;
    let binding = Binding { cx: cx.inside(), service, methods: &methods };
    p.gap();
    p.doc(&format!("Service `{}`.", service.full_name()));
    p.remark(cx.comment(service.path()));
    p.block(format!("pub mod {}", identifiers::ident(cx.schema.names.other(service.full_name()))), |p| {
        p.line(format!("use {} as rpc;", cx.schema.config.rpc_runtime));
        p.gap();
        binding.description(p);
        binding.trace_sites(p);
        binding.markers(p);
        if cx.schema.config.services != Services::IpcServer {
            binding.client(p);
        }
        if cx.schema.config.services != Services::IpcClient {
            binding.requests(p);
            binding.server(p);
            binding.serve_async(p);
            binding.handler(p);
            binding.serve(p);
        }
    });
    p.gap();
    Ok(())
}

struct Binding<'a> {
    /// The module of the service.
    cx: Context<'a>,
    service: &'a ServiceDescriptor,
    methods: &'a [RpcMethod],
}

impl Binding<'_> {
    fn description(&self, p: &mut Printer) {
        p.doc("The description of the service.");
        let elements: Vec<String> = self.methods.iter().map(|method| self.description_of(method)).collect();
        let name = self.service.name();
        if elements.is_empty() {
            return p.line(format!(
                "pub static SERVICE: rpc::service::Service = rpc::service::Service {{ name: {name:?}, methods: &[] }};"
            ));
        }
        let list = |p: &mut Printer| {
            p.line(format!("name: {name:?},"));
            p.structs("methods: &", "rpc::service::Method", &elements, ",");
        };
        p.block_with_end("pub static SERVICE: rpc::service::Service = rpc::service::Service", list, "};");
    }

    /// Returns the fields of the description of a method, separated by `, `.
    fn description_of(&self, method: &RpcMethod) -> String {
        let name = &method.name;
        let kind = match method.replies {
            Replies::One => "Unary",
            Replies::Stream => "ServerStream",
            Replies::None => "OneWay",
        };
        let trace =
            method.trace.as_ref().map_or_else(|| "None".to_owned(), |_| format!("Some(&trace::{})", method.marker));
        let full_name = format!("{}.{name}", self.service.name());
        format!("name: {name:?}, full_name: {full_name:?}, kind: rpc::service::Kind::{kind}, trace: {trace}")
    }

    fn trace_sites(&self, p: &mut Printer) {
        let traced = || self.methods.iter().filter_map(|method| Some((method, method.trace.as_ref()?)));
        if traced().next().is_none() {
            return;
        }
        p.gap();
        p.block("mod trace", |p| {
            let records = |trace: &Trace| !trace.request.is_empty() || !trace.reply.is_empty();
            let more = if traced().any(|(_, trace)| records(trace)) {
                "{TraceSite, TraceValue, ValueKind}"
            } else {
                "TraceSite"
            };
            p.line(format!("use super::rpc::service::{more};"));
            for (RpcMethod { marker, .. }, trace) in traced() {
                let category = format!("{:?}", trace.category);
                p.gap();
                let (head, function) = (format!("pub(super) static {marker}: TraceSite ="), "TraceSite::recording");
                if records(trace) {
                    let lists = [values(&trace.request), values(&trace.reply)];
                    p.call_with_lists(&head, function, &category, &lists);
                } else {
                    p.value(&head, &format!("TraceSite::new({category});"));
                }
            }
        });
        p.gap();
    }

    fn markers(&self, p: &mut Printer) {
        p.gap();
        p.doc("The methods, as types.");
        let inside = self.cx.inside();
        p.block_or_empty("pub mod method", self.methods.is_empty(), |p| {
            for method in self.methods {
                p.gap();
                p.doc(&arrow(method));
                p.line("#[derive(Debug)]");
                p.line(format!("pub enum {} {{}}", method.marker));
                p.gap();
                p.block(format!("impl super::rpc::service::Rpc for {}", method.marker), |p| {
                    p.line("const SERVICE: &'static super::rpc::service::Service = &super::SERVICE;");
                    p.line(format!("const METHOD: u32 = {};", method.id));
                    p.line(format!("type Request = {};", inside.message_path(&method.descriptor.input(), None)));
                    p.line(format!("type Reply = {};", inside.message_path(&method.descriptor.output(), None)));
                });
            }
        });
        p.gap();
    }

    fn requests(&self, p: &mut Printer) {
        if self.methods.is_empty() {
            return;
        }
        p.doc(&format!("Request to a `{}`, which is read where it lies.", self.service.full_name()));
        p.remark("It is for services that take calls as values, and answer them in their own way.");
        p.line("#[derive(Clone, Copy, Debug)]");
        let reader = |method: &RpcMethod| format!("{}Reader", self.request(method));
        p.block("pub enum Request<'a>", |p| {
            for method in self.methods {
                p.doc(&arrow(method));
                p.call("", &method.marker, &[format!("{}<'a>", reader(method))], ",");
            }
        });
        p.gap();
        p.block("impl<'a> Request<'a>", |p| {
            p.doc(
                "Reads the request of the method with this id. Returns `None` if there is\nno such method, or if the \
                 bytes are malformed.",
            );
            p.line("#[must_use]");
            p.block("pub fn read(method: u32, bytes: &'a [u8]) -> Option<Self>", |p| {
                p.block_with_end(
                    "Some(match method",
                    |p| {
                        for method in self.methods {
                            let function = format!("Self::{}", method.marker);
                            p.arm_call(
                                &method.id.to_string(),
                                &function,
                                &[format!("{}::parse(bytes).ok()?", reader(method))],
                            );
                        }
                        p.line("_ => return None,");
                    },
                    "})",
                );
            });
        });
        p.gap();
    }

    fn client(&self, p: &mut Printer) {
        let name = self.service.full_name();
        p.doc(&format!("Client of a `{name}`."));
        self.client_cfg(p);
        p.line("#[derive(Clone, Debug)]");
        p.block("pub struct Client", |p| p.line("channel: rpc::Channel,"));
        p.gap();
        self.client_cfg(p);
        p.block("impl Client", |p| {
            p.doc("Makes a client that calls over `channel`. The first call binds the service.");
            p.line("#[must_use]");
            p.block("pub fn new(channel: &rpc::Channel) -> Self", |p| p.line("Self { channel: channel.clone() }"));
            p.gap();
            p.doc("Returns the channel of the client.");
            p.line("#[must_use]");
            p.block("pub fn channel(&self) -> &rpc::Channel", |p| p.line("&self.channel"));
            for method in self.methods {
                let call = match method.replies {
                    Replies::One => "Call",
                    Replies::Stream => "StreamCall",
                    Replies::None => "OneWayCall",
                };
                p.gap();
                self.doc(p, method);
                p.function(
                    &format!("pub fn {}", method.function),
                    &["&self".to_owned(), format!("request: &{}", self.request(method))],
                    &format!(" -> rpc::{call}<'_, method::{}>", method.marker),
                    &[format!("rpc::{call}::new(&self.channel, request)")],
                );
            }
        });
        p.gap();
    }

    fn server(&self, p: &mut Printer) {
        p.doc(&format!("A `{}` that answers each call by an `async fn`.", self.service.full_name()));
        p.remark("Functions that never await are plain code. Pass it to [`ServeAsync`].");
        self.server_cfg(p);
        p.block_or_empty("pub trait Server: Send + Sync + 'static", self.methods.is_empty(), |p| {
            for method in self.methods {
                p.gap();
                self.doc(p, method);
                let (mut args, output) = (
                    vec!["&self".to_owned(), "context: &rpc::server::Context".to_owned()],
                    match method.replies {
                        Replies::One => format!("Result<{}, rpc::Status>", self.reply(method)),
                        Replies::Stream => "Result<(), rpc::Status>".to_owned(),
                        Replies::None => "()".to_owned(),
                    },
                );
                args.push(format!("request: {}", self.request(method)));
                if method.replies == Replies::Stream {
                    args.push(format!("replies: rpc::server::Replies<{}>", self.reply(method)));
                }
                let returns = format!(" -> impl ::core::future::Future<Output = {output}> + Send");
                p.signature(&format!("fn {}", method.function), &args, &returns, ";");
            }
        });
        p.gap();
    }

    fn serve_async(&self, p: &mut Printer) {
        p.doc("Serves calls by a [`Server`], which all clones share.");
        self.server_cfg(p);
        p.line("#[derive(Debug)]");
        p.line("pub struct ServeAsync<S>(::std::sync::Arc<S>);");
        p.gap();
        self.server_cfg(p);
        p.block("impl<S: Server> ServeAsync<S>", |p| {
            p.doc("Serves calls by `server`.");
            p.line("#[must_use]");
            p.block("pub fn new(server: S) -> Self", |p| p.line("Self(::std::sync::Arc::new(server))"));
        });
        p.gap();
        self.server_cfg(p);
        p.block("impl<S> Clone for ServeAsync<S>", |p| {
            p.block("fn clone(&self) -> Self", |p| p.line("Self(::std::sync::Arc::clone(&self.0))"));
        });
        p.gap();
        self.dispatch_head(p, "impl<S: Server> rpc::server::Dispatch for ServeAsync<S>", |p| {
            if !self.methods.is_empty() {
                p.line("let server = ::std::sync::Arc::clone(&self.0);");
            }
            p.block("match call.method_id()", |p| {
                for method in self.methods {
                    let (run, more) = match method.replies {
                        Replies::One => ("unary", ""),
                        Replies::Stream => ("stream", ", replies"),
                        Replies::None => ("one_way", ""),
                    };
                    let RpcMethod { id, marker, function, .. } = method;
                    p.block(format!("{id} =>"), |p| {
                        let head = format!("|context, request{more}| async move");
                        let body = format!("Server::{function}(&*server, &context, request{more}).await");
                        p.assign_block("let run =", &head, &body);
                        p.line(format!("call.{run}::<method::{marker}, _>(run);"));
                    });
                }
                p.line("_ => drop(call),");
            });
        });
    }

    fn handler(&self, p: &mut Printer) {
        p.doc(&format!("A `{}` that answers calls later, or from the bytes of the request.", self.service.full_name()));
        p.remark("It is for event loops. Pass it to [`Serve`], or calls to [`dispatch`].");
        self.server_cfg(p);
        p.block_or_empty("pub trait Handler", self.methods.is_empty(), |p| {
            for method in self.methods {
                p.gap();
                self.doc(p, method);
                let call = format!("call: rpc::server::Incoming<'_, method::{}>", method.marker);
                p.signature(&format!("fn {}", method.function), &["&mut self".to_owned(), call], "", ";");
            }
        });
        p.gap();
        p.doc("Hands a call to the function of its method.");
        self.server_cfg(p);
        let unused = if self.methods.is_empty() { "_" } else { "" };
        let args = [format!("{unused}handler: &mut H"), "call: rpc::server::Invocation<'_>".to_owned()];
        p.function_with("pub fn dispatch<H: Handler + ?Sized>", &args, "", |p| {
            p.block("match call.method_id()", |p| {
                for method in self.methods {
                    // Not `handler.name(…)`: a method of the schema may be called `into`.
                    let function = format!("Handler::{}", method.function);
                    let args = ["handler", "rpc::server::Incoming::new(call)"].map(str::to_owned);
                    p.arm_call(&method.id.to_string(), &function, &args);
                }
                p.line("_ => drop(call),");
            });
        });
        p.gap();
    }

    fn serve(&self, p: &mut Printer) {
        p.doc("Serves calls by a [`Handler`].");
        self.server_cfg(p);
        p.line("#[derive(Clone, Debug)]");
        p.line("pub struct Serve<H>(pub H);");
        p.gap();
        self.dispatch_head(p, "impl<H: Handler> rpc::server::Dispatch for Serve<H>", |p| {
            p.line("dispatch(&mut self.0, call);");
        });
    }

    /// Prints the implementation of `Dispatch` for one service, whose calls `body` runs.
    fn dispatch_head(&self, p: &mut Printer, head: &str, body: impl FnOnce(&mut Printer)) {
        self.server_cfg(p);
        p.block(head, |p| {
            p.block("fn service(&self, index: usize) -> Option<&'static rpc::service::Service>", |p| {
                p.line("(index == 0).then_some(&SERVICE)");
            });
            p.gap();
            p.block("fn dispatch(&mut self, call: rpc::server::Invocation<'_>)", body);
        });
        p.gap();
    }

    fn client_cfg(&self, p: &mut Printer) {
        p.cfg(self.cx.schema.config.client_feature.as_deref());
    }

    fn server_cfg(&self, p: &mut Printer) {
        p.cfg(self.cx.schema.config.server_feature.as_deref());
    }

    /// Prints the documentation and the attributes of a function for a method.
    fn doc(&self, p: &mut Printer, method: &RpcMethod) {
        p.doc(&arrow(method));
        p.remark(self.cx.comment(method.descriptor.path()));
        let options = method.descriptor.method_descriptor_proto().options.as_ref();
        self.cx.deprecated(p, options.is_some_and(|options| options.deprecated()));
    }

    fn request(&self, method: &RpcMethod) -> String {
        self.path(&method.descriptor.input())
    }

    fn reply(&self, method: &RpcMethod) -> String {
        self.path(&method.descriptor.output())
    }

    fn path(&self, message: &MessageDescriptor) -> String {
        self.cx.message_path(message, None)
    }
}

/// ``  `GetRequest` → `GetReply`  ``
fn arrow(method: &RpcMethod) -> String {
    let (input, output) = (method.descriptor.input(), method.descriptor.output());
    match method.replies {
        Replies::One => format!("`{}` → `{}`", input.name(), output.name()),
        Replies::Stream => format!("`{}` → `stream {}`", input.name(), output.name()),
        Replies::None => format!("`{}`, one-way", input.name()),
    }
}

fn values(fields: &[Recorded]) -> Vec<String> {
    let value =
        |Recorded { number, name, kind }: &Recorded| format!("TraceValue::new({number}, {name:?}, ValueKind::{kind})");
    fields.iter().map(value).collect()
}
