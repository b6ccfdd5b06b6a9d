//! The procedural macros of Esatto. Use them through the feature `macros` of the crate `esatto`.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod derive;
mod function;
mod moved_parameters;
mod options;
mod parameters;
mod service;

use proc_macro::TokenStream;

/// Records each call of a function as a slice (feature `macros`).
///
/// ```no_run
/// esatto::categories! {
///     static SHOP = "shop", "Orders and payments";
/// }
///
/// #[esatto::trace(SHOP, args(order, ?items), err)]
/// fn pay(order: u64, items: &[&str], card: &str) -> Result<(), std::num::ParseIntError> {
///     let _number: u64 = card.parse()?;
///     Ok(())
/// }
///
/// #[esatto::trace(SHOP)]
/// async fn ship(order: u64) {}
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let _trace = esatto::trace_to_file("app.pftrace")?;
///     pay(17, &["tea", "milk"], "4111")?;
///     Ok(())
/// }
/// ```
///
/// Put it on a function, a method or a method of a trait. They may be generic, `unsafe` or
/// `extern`. On an `impl` block it applies to each function that does not have the attribute
/// itself. A `const fn` cannot be traced.
///
/// # What is recorded
///
/// A call of a **synchronous** function is a slice on the track of its thread, from entry to return
/// or unwinding.
///
/// A call of an **`async`** function is one slice for its lifetime on its own lane, from the first
/// poll until it is ready or dropped. There is also one slice per poll, on the track of the thread
/// that polls. A flow connects all of them. The same applies to functions that end in an `async`
/// block or in `Box::pin(async …)`. `async_trait` makes such functions: put this attribute below
/// `#[async_trait]`, on the method.
///
/// The slice contains the destructors of the parameters, so `fn close(self)` has its true length.
/// They run in the order in which Rust drops parameters. The slice ends before them in these cases:
///
/// - The function returns `impl Trait` or `!` (only if it is synchronous, without `ret` and `err`),
///   or it ends in an `async` block.
/// - The parameter is named in `track = …`, or it is a `self` of a `#[track_caller]` function.
/// - A pattern does not bind the parts, as in `(first, _): (A, B)`, and the function is `async`,
///   has `ret` or `err`, or takes `self` by value.
///
/// # Options
///
/// | | |
/// | --- | --- |
/// | `CATEGORY` (first) | path of a static category; the default is a category of the module with the name of its path, as in `tracing`: `my_crate::db` |
/// | `name = "…"` | name of the slice; the default is the function's, or `Type::function` in an `impl` with the attribute |
/// | `args(a, ?b, %c)` | records these parameters: plain ones by `esatto::Value`, `?` by `Debug`, `%` by `Display`; `self.size` records a field, `b.len = expression` any value under that name |
/// | `args(all)`, `skip(a, b)` | records all parameters except `self` and those of `skip` |
/// | `ret`, `ret(debug)`, `ret(display)` | records the returned value as the argument `return` |
/// | `err`, `err(debug)` | records the error of a `Result` as the argument `error`, by `Display` or `Debug`; then `ret` records `Ok` values only |
/// | `track = expression` | records a synchronous call on this `&Track` |
/// | `lifetime`, `polls` | records only this kind of slices of an async function |
/// | `crate = path` | path of `esatto`; the default is `::esatto` |
///
/// By default no argument is recorded, because formatting costs time and arguments may be secret.
/// Values are evaluated only while the category is recorded.
#[doc(alias = "instrument", alias = "function", alias = "tracefn", alias = "profile")]
#[proc_macro_attribute]
pub fn trace(attribute: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(attribute.into(), item.into()).into()
}

/// Makes a trait a service of the RPC library `esatto-ipc`, whose calls are traced (feature
/// `macros`).
///
/// It writes the bindings that the generator `esatto-protozero-codegen` writes for a `service` of a
/// `.proto` file. The messages are any types that implement `esatto_protozero::Owned`.
///
/// ```no_run
/// # mod messages { pub use esatto::TraceConfig as GetRequest; pub use esatto::TraceConfig as Event; }
/// # use messages::{GetRequest, GetRequest as GetReply, Event, Event as Text, Event as WatchRequest};
/// use esatto_ipc::server::{Context, Replies, Server};
/// use esatto_ipc::{Channel, Listener, Status};
///
/// #[esatto::trace_rpc(category = "store")]
/// pub trait Store {
///     async fn get(&self, context: &Context, request: GetRequest) -> Result<GetReply, Status>;
///     // A stream of replies.
///     async fn watch(&self, context: &Context, request: WatchRequest, replies: Replies<Event>)
///     -> Result<(), Status>;
///     // One-way, and not traced.
///     #[rpc(category = "")]
///     async fn note(&self, context: &Context, request: Text);
/// }
///
/// fn serve(shelf: impl Store, listener: &Listener) -> Result<(), esatto_ipc::Error> {
///     Server::new(store::ServeAsync::new(shelf)).serve_blocking(listener)
/// }
///
/// fn call(channel: &Channel, request: &GetRequest) -> Result<GetReply, esatto_ipc::CallError> {
///     store::Client::new(channel).get(request).wait()
/// }
/// # fn main() {}
/// ```
///
/// The trait stays, with `Send + Sync + 'static` and futures that are `Send`. Beside it comes a
/// module of its name, `store`, with `SERVICE`, `method`, `Client`, `ServeAsync`, `Handler`,
/// `dispatch` and `Serve`. So it cannot stand inside a function. The program depends on
/// `esatto-ipc` with the features `channel` and `server`.
///
/// | method | kind |
/// | --- | --- |
/// | `async fn a(&self, context: &Context, request: R) -> Result<T, Status>` | one reply |
/// | the same with `replies: Replies<T>`, which returns `Result<(), Status>` | a stream of replies |
/// | the same without a return type | one-way |
///
/// On the wire, a service has the name of the trait, and a method that of the function in camel
/// case: `get_all` is `GetAll`. Ids are positions: add methods at the end only.
///
/// | option | |
/// | --- | --- |
/// | `category = "…"` | category of the traced calls; without it, or if empty, none are traced |
/// | `name = "…"` | name of the service on the wire |
/// | `module = …` | name of the module |
/// | `crate = path` | path of `esatto-ipc`; the default is `::esatto_ipc` |
/// | `#[rpc(category = "…")]`, `#[rpc(name = "…")]` on a method | category and name of the method |
#[doc(alias = "rpc", alias = "service")]
#[proc_macro_attribute]
pub fn trace_rpc(attribute: TokenStream, item: TokenStream) -> TokenStream {
    service::expand(attribute.into(), item.into()).into()
}

/// Implements `TraceArgs` and `Value` for a struct or an enum (feature `macros`): a set of
/// arguments of events, and one argument, which is a dictionary.
///
/// | | |
/// | --- | --- |
/// | struct | an entry per field; the fields of a tuple struct are named `0`, `1`… |
/// | struct with one unnamed field | as a `Value` it is the value of that field |
/// | enum | an entry `variant` with the variant's name, then the fields of the variant |
/// | enum without fields | as a `Value` it is the variant's name |
///
/// Each field needs a `Value`; types that derive this have one. Attributes of fields and variants:
///
/// | | |
/// | --- | --- |
/// | `#[esatto(rename = "…")]` | another name |
/// | `#[esatto(skip)]` | leaves the field out; it needs no `Value` |
/// | `#[esatto(debug)]`, `#[esatto(display)]` | records the text of `Debug` or `Display` |
/// | `#[esatto(flatten)]` | adds the entries of the field, which is a `TraceArgs`, in its place |
///
/// Attributes of the type:
///
/// | | |
/// | --- | --- |
/// | `#[esatto(tag = "…")]` | another name for the entry `variant` |
/// | `#[esatto(crate = path)]` | path of `esatto`; the default is `::esatto` |
#[proc_macro_derive(TraceArgs, attributes(esatto))]
pub fn derive_trace_args(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).into()
}
