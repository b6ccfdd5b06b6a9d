//! The procedural macros of Esatto. Use them through the crate `esatto` with its feature `macros`, which documents them by example.

#![forbid(unsafe_code)]

mod derive;
mod function;
mod options;
mod parameters;

use proc_macro::TokenStream;

/// Records each call of a function as a slice.
///
/// ```
/// # mod main { use esatto;
/// esatto::categories! { static SHOP = "shop"; }
///
/// #[esatto::trace(SHOP, args(order, ?items), err)]
/// fn pay(order: u64, items: &[&str], card: &str) -> Result<(), std::num::ParseIntError> {
///     let _number: u64 = card.parse()?;
///     Ok(())
/// }
///
/// #[esatto::trace(SHOP)]
/// async fn ship(order: u64) {}
/// # }
/// ```
///
/// Goes on functions, methods and methods of traits, generic ones, `unsafe` and `extern` ones, and on a whole `impl` block, where it means each
/// function in it that has none of its own. `const fn`s cannot be traced.
///
/// # What is recorded
///
/// A call of a **synchronous** function is a slice on the track of its thread, from entry to return or unwinding.
///
/// A call of an **`async`** function is a slice for its lifetime, from the first poll until it is ready or dropped, on a lane that it has for
/// itself, and a slice for each poll on the track of the thread that polls; a flow leads from the first through the others. The same is
/// done for functions that end in an `async` block or in `Box::pin(async …)`, which is what `async_trait` makes (this attribute goes below
/// `#[async_trait]`, on the method).
///
/// # Options
///
/// | | |
/// | --- | --- |
/// | `CATEGORY` (first) | path of a static category; without it there is one for the module, named by its path as in `tracing`: `my_crate::db` |
/// | `name = "…"` | the name of the slice; otherwise the function's, and `Type::function` in an `impl` with the attribute |
/// | `args(a, ?b, %c)` | records these parameters: as they are (`esatto::Value`), `?` by `Debug`, `%` by `Display`; `b.len = expression` is any other value under that name |
/// | `args(all)`, `skip(a, b)` | records all parameters but `self` and those to skip |
/// | `ret`, `ret(debug)`, `ret(display)` | records what is returned, as the argument `return` |
/// | `err`, `err(debug)` | records the error of a `Result`, by its `Display`, as the argument `error`; with `ret`, that is for `Ok` values |
/// | `track = expression` | records a synchronous call on this `&Track` |
/// | `lifetime`, `polls` | only one of the two kinds of slices of an async function |
/// | `crate = path` | where to find `esatto`, if not at `::esatto` |
///
/// No argument is recorded unless it is asked for: formatting costs time, and arguments may be secret. Values are evaluated only while
/// the category is recorded.
#[proc_macro_attribute]
pub fn trace(attribute: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(attribute.into(), item.into()).into()
}

/// Makes a struct or an enum a set of arguments of events (`TraceArgs`), and one argument (`Value`), which is a dictionary.
///
/// | | |
/// | --- | --- |
/// | struct | an entry per field; the fields of a tuple struct are named `0`, `1`… |
/// | struct with one unnamed field | as a `Value` it is that field's |
/// | enum | an entry `variant` with the variant's name, then the fields of the variant |
/// | enum without any fields | as a `Value` it is the variant's name |
///
/// Fields need a `Value`, which what derives this has. Attributes of fields and variants:
///
/// | | |
/// | --- | --- |
/// | `#[esatto(rename = "…")]` | another name |
/// | `#[esatto(skip)]` | leaves the field out; its type may be anything |
/// | `#[esatto(debug)]`, `#[esatto(display)]` | records the text of `Debug` or `Display` |
/// | `#[esatto(flatten)]` | adds the entries of the field, which is a `TraceArgs`, in its place |
///
/// and of the type:
///
/// | | |
/// | --- | --- |
/// | `#[esatto(tag = "…")]` | what `variant` is called |
/// | `#[esatto(crate = path)]` | where to find `esatto`, if not at `::esatto` |
#[proc_macro_derive(TraceArgs, attributes(esatto))]
pub fn derive_trace_args(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).into()
}
