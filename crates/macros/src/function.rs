//! `#[esatto::trace]`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Error, Expr, ExprAsync, GenericArgument, Ident, ImplItem, ImplItemFn, ItemImpl, PathArguments,
    Result, ReturnType, Signature, Stmt, TraitItemFn, Type, TypeParamBound,
};

#[cfg(test)]
use crate::options::KNOWN;
use crate::options::{Options, Slices};
use crate::{moved_parameters, parameters};

/// Returns the traced item. If there is a mistake, returns the item unchanged with one error, so
/// that no other errors follow.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    try_expand(attribute, item.clone()).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#error #item)
    })
}

fn try_expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::parse.parse2(attribute)?;
    Ok(match Item::parse.parse2(item)? {
        Item::Function(function) => trace(function, &options, None)?.into_token_stream(),
        Item::Impl(block) => trace_all(*block, &options)?.into_token_stream(),
    })
}

enum Item {
    Function(Box<ImplItemFn>),
    Impl(Box<ItemImpl>),
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        // `ImplItemFn` also parses free functions and functions of traits.
        let function = match input.fork().parse::<ImplItemFn>() {
            Ok(_) => return Ok(Self::Function(input.parse()?)),
            Err(error) => error,
        };
        if let Ok(declared) = input.fork().parse::<TraitItemFn>() {
            return Err(Error::new_spanned(
                declared.semi_token,
                "a function without a body cannot be traced: put the attribute on the implementations",
            ));
        }
        let ahead = input.fork();
        ahead.call(Attribute::parse_outer)?;
        ahead.parse::<syn::Visibility>()?;
        for keyword in ["const", "async", "unsafe", "extern", "fn"] {
            if next_is(&ahead, keyword) {
                return Err(function);
            }
        }
        match input.parse() {
            Ok(block) => Ok(Self::Impl(Box::new(block))),
            Err(error) if next_is(&ahead, "impl") => Err(error),
            Err(_) => Err(ahead.error("`#[esatto::trace]` is for functions and `impl` blocks")),
        }
    }
}

fn next_is(input: ParseStream<'_>, keyword: &str) -> bool {
    input.fork().call(Ident::parse_any).is_ok_and(|word| word == keyword)
}

/// Traces each function of an `impl` block.
fn trace_all(mut block: ItemImpl, options: &Options) -> Result<ItemImpl> {
    let single = [
        options.name.as_ref().map(Spanned::span),
        options.track.as_ref().map(|(span, _)| *span),
        options.ret.map(|(span, _)| span),
        options.err.map(|(span, _)| span),
        options.slices.map(|(span, _)| span),
    ];
    if let Some(span) = single.into_iter().flatten().next() {
        return Err(Error::new(span, "this option is for a single function, not for an `impl` block"));
    }
    if let Some(arg) = options.args.first() {
        return Err(Error::new(
            block.impl_token.span,
            format!("not every function has `{}`: use `args(all)`", arg.name),
        ));
    }
    let owner = match &*block.self_ty {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    };
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else { continue };
        let own = |attribute: &Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "trace");
        if function.sig.constness.is_some() || function.attrs.iter().any(own) {
            continue;
        }
        let names = parameters::names(&function.sig);
        let mut options = options.clone();
        options.skip.retain(|skipped| names.contains(skipped));
        *function = trace(Box::new(function.clone()), &options, owner.as_deref())?;
    }
    Ok(block)
}

fn trace(mut function: Box<ImplItemFn>, options: &Options, owner: Option<&str>) -> Result<ImplItemFn> {
    parameters::refuse_const(function.sig.constness.as_ref())?;
    let name = match (&options.name, owner) {
        (Some(name), _) => name.value(),
        (None, Some(owner)) => format!("{owner}::{}", function.sig.ident.unraw()),
        (None, None) => function.sig.ident.unraw().to_string(),
    };
    let site = Site { options, krate: options.krate(), name, args: parameters::recorded(&function.sig, options)? };
    let ImplItemFn { attrs, sig, block, .. } = &mut *function;
    *block = if sig.asyncness.is_some() {
        let slice = site.async_slice()?;
        let captures = moved_parameters::into_captures(sig);
        let driven = site.drive(&slice, &future(block, output(&sig.output), &captures));
        syn::parse_quote!({ #driven })
    } else if let Some(block) = site.trace_tail(block, boxed_output(&sig.output))? {
        block
    } else {
        site.call(block, attrs, sig)?
    };
    Ok(*function)
}

/// Returns the block with braces of this macro. The compiler would call those of the function
/// unnecessary, because they become those of an inner block.
fn without_lint(block: &Block) -> Block {
    let span = Span::mixed_site().located_at(block.brace_token.span.join());
    Block { brace_token: syn::token::Brace(span), stmts: block.stmts.clone() }
}

/// The parts of the code for the slices of one function.
struct Site<'a> {
    options: &'a Options,
    krate: TokenStream,
    name: String,
    /// Each has a comma before it.
    args: TokenStream,
}

impl Site<'_> {
    /// Returns the body of a synchronous function.
    fn call(&self, block: &Block, attributes: &[Attribute], signature: &mut Signature) -> Result<Block> {
        let block = without_lint(block);
        if let Some((span, _)) = self.options.slices {
            return Err(Error::new(span, "this option is for async functions; this one is synchronous"));
        }
        let Self { krate, name, args, .. } = self;
        let (category, declaration) = self.category();
        let slice = local("slice");
        let lane = local("track");
        // Outside the slice, so that temporaries of the expression live as long as it.
        let (bind, track) = match &self.options.track {
            Some((_, track)) => (quote!(let #lane: &#krate::Track = #track;), quote!(track: #lane,)),
            None => Default::default(),
        };
        let begin = quote! {{
            #declaration
            #krate::slice!(#category, #track #name #args)
        }};
        let output = signature.output.clone();
        // The guard on a track that is a parameter borrows the parameter, which then cannot move.
        let may_move =
            !self.options.track.as_ref().is_some_and(|(_, track)| moved_parameters::names_parameter(track, signature));
        // Without a type, the value of the body would not be inferred from the type of the result.
        let has_type = match &output {
            ReturnType::Default => true,
            ReturnType::Type(_, ty) => !has_impl(ty) && !matches!(**ty, Type::Never(_)),
        };
        let (event, result) = (local("event"), local("result"));
        let end = parameters::result(self.options, &event, &result);
        // A local cannot have the name `self`, but a closure can capture it.
        let is_caller_told = attributes.iter().any(|attribute| attribute.path().is_ident("track_caller"));
        let needs_closure = may_move && has_type && !is_caller_told && moved_parameters::has_self(signature);
        if end.is_some() || needs_closure {
            let captures = if may_move { moved_parameters::into_captures(signature) } else { TokenStream::new() };
            let block = if captures.is_empty() { block } else { syn::parse_quote!({ #captures #block }) };
            let output = match &output {
                ReturnType::Type(arrow, ty) if !has_impl(ty) => quote!(#arrow #ty),
                _ => TokenStream::new(),
            };
            // With a type the body of a closure must be a block, and without one it may be. So a
            // block is right for both.
            let call = quote!(#krate::__private::call(move || #output #block));
            return Ok(match end {
                None => syn::parse_quote!({ #bind let #slice = #begin; #call }),
                Some(end) => syn::parse_quote!({
                    #bind
                    let #slice = #begin;
                    let #result = #call;
                    #slice.end_with(|#event| #end);
                    #result
                }),
            });
        }
        let moves = if may_move && has_type { moved_parameters::into_locals(signature) } else { TokenStream::new() };
        if moves.is_empty() {
            // In its own block, so that inner attributes still stand at the start of a block.
            return Ok(syn::parse_quote!({ #bind let #slice = #begin; #block }));
        }
        let ty = match output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => quote!(#ty),
        };
        // The guard is declared first, so it is dropped last. Until Rust 2024, temporaries of the
        // last expression of a block live longer than its locals, and may borrow from them.
        Ok(syn::parse_quote!({
            #bind
            #[allow(clippy::needless_late_init)]
            let #slice;
            #moves
            #slice = #begin;
            #[allow(
                unknown_lints, clippy::diverging_sub_expression, clippy::let_unit_value,
                clippy::let_with_type_underscore, clippy::unused_unit
            )]
            let #result: #ty = #block;
            #[allow(unreachable_code, clippy::needless_return)]
            return #result;
        }))
    }

    /// Returns the statement that makes the slices of an async function.
    fn async_slice(&self) -> Result<TokenStream> {
        if let Some((span, _)) = self.options.track {
            return Err(Error::new(span, "`track` is for synchronous functions: an async one has its own lane"));
        }
        let Self { krate, name, args, .. } = self;
        let slices = match self.options.slices {
            None => quote!(Both),
            Some((_, Slices::Lifetime)) => quote!(Lifetime),
            Some((span, Slices::Polls)) => {
                if !args.is_empty() || self.options.ret.is_some() || self.options.err.is_some() {
                    return Err(Error::new(
                        span,
                        "without the slice of the lifetime there is none for arguments and results",
                    ));
                }
                quote!(Polls)
            }
        };
        let (category, declaration) = self.category();
        let slice = local("slice");
        Ok(quote! {
            let mut #slice = {
                #declaration
                #krate::async_slice!(#category, slices: #krate::AsyncSlices::#slices, #name #args)
            };
        })
    }

    /// Returns statements that run `future` in its slices, after `begin`. Their value is its
    /// result.
    fn drive(&self, begin: &TokenStream, future: &TokenStream) -> TokenStream {
        let (slice, event, result) = (local("slice"), local("event"), local("result"));
        let end = match parameters::result(self.options, &event, &result) {
            None => quote!(::core::mem::drop(#slice);),
            Some(end) => quote!(#slice.end_with(|#event| #end);),
        };
        quote! {
            #begin
            let #result = #slice.drive(::core::pin::pin!(#future)).await;
            #end
            #result
        }
    }

    /// Returns the body of a function whose last expression is an async block, boxed or not. `None`
    /// for other functions.
    fn trace_tail(&self, block: &Block, output: Option<&Type>) -> Result<Option<Block>> {
        let mut block = block.clone();
        let Some(Stmt::Expr(tail, None)) = block.stmts.last_mut() else { return Ok(None) };
        let Some(tail) = async_block(tail) else { return Ok(None) };
        let begin = self.async_slice()?;
        let ExprAsync { attrs, async_token, block: body, .. } = &*tail;
        let inner = future(body, output, &TokenStream::new());
        let driven = self.drive(&TokenStream::new(), &inner);
        // The slices move into the block, so it has to be `move`. It never holds a reference to a
        // local, because it outlives them.
        *tail = syn::parse_quote!(#(#attrs)* #async_token move { #driven });
        let block = without_lint(&block);
        Ok(Some(syn::parse_quote!({ #begin #block })))
    }

    /// Returns the category as an expression, and its declaration.
    fn category(&self) -> (TokenStream, TokenStream) {
        let krate = &self.krate;
        match &self.options.category {
            Some(path) => (quote!(#path), TokenStream::new()),
            None => (
                quote!(ESATTO_CATEGORY),
                quote!(static ESATTO_CATEGORY: #krate::Category = #krate::Category::new(::core::module_path!());),
            ),
        }
    }
}

/// Returns the name of a local variable that the code of the function cannot use.
fn local(name: &str) -> Ident {
    Ident::new(&format!("esatto_{name}"), Span::mixed_site())
}

/// Returns `block` as a future with a known type of result, which `?` needs to convert errors. It
/// begins with the statements of `captures`.
fn future(block: &Block, output: Option<&Type>, captures: &TokenStream) -> TokenStream {
    let Some(output) = output.filter(|ty| !has_impl(ty)) else {
        if captures.is_empty() {
            return quote!(async move #block);
        }
        let block = without_lint(block);
        return quote!(async move { #captures #block });
    };
    let never = local("never");
    // With the spans of the type, so that the compiler reports an error in it there, once.
    let typed = quote_spanned! {output.span()=>
        #[allow(
            unknown_lints, unreachable_code, clippy::diverging_sub_expression, clippy::empty_loop, clippy::let_unit_value,
            clippy::let_with_type_underscore, clippy::needless_return, clippy::unreachable
        )]
        if false {
            let #never: #output = loop {};
            return #never;
        }
    };
    let block = without_lint(block);
    quote!(async move { #captures #typed #block })
}

fn output(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(ty),
    }
}

/// Returns `T` of `impl Future<Output = T>` and `Pin<Box<dyn Future<Output = T>>>`.
fn boxed_output(output: &ReturnType) -> Option<&Type> {
    fn of(ty: &Type) -> Option<&Type> {
        match ty {
            Type::ImplTrait(ty) => of_bounds(ty.bounds.iter()),
            Type::TraitObject(ty) => of_bounds(ty.bounds.iter()),
            Type::Paren(ty) => of(&ty.elem),
            Type::Path(path) => match &path.path.segments.last()?.arguments {
                PathArguments::AngleBracketed(arguments) => arguments.args.iter().find_map(|argument| match argument {
                    GenericArgument::Type(ty) => of(ty),
                    _ => None,
                }),
                _ => None,
            },
            _ => None,
        }
    }
    fn of_bounds<'a>(mut bounds: impl Iterator<Item = &'a TypeParamBound>) -> Option<&'a Type> {
        bounds.find_map(|bound| {
            let TypeParamBound::Trait(bound) = bound else { return None };
            let PathArguments::AngleBracketed(arguments) = &bound.path.segments.last()?.arguments else { return None };
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::AssocType(output) if output.ident == "Output" => Some(&output.ty),
                _ => None,
            })
        })
    }
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => of(ty),
    }
}

/// Returns the async block of an expression that is one, or puts one into a box.
fn async_block(expression: &mut Expr) -> Option<&mut ExprAsync> {
    match expression {
        Expr::Async(block) => Some(block),
        Expr::Paren(paren) => async_block(&mut paren.expr),
        Expr::Call(call) if call.args.len() == 1 => {
            let Expr::Path(function) = &*call.func else { return None };
            let mut path = function.path.segments.iter().rev();
            let is_pin = path.next()?.ident == "pin" && path.next()?.ident == "Box";
            if is_pin { async_block(call.args.first_mut()?) } else { None }
        }
        _ => None,
    }
}

/// Returns true if the type has `impl Trait` in it, which no variable can have.
fn has_impl(ty: &Type) -> bool {
    struct Search(bool);
    impl Visit<'_> for Search {
        fn visit_type(&mut self, ty: &Type) {
            self.0 |= matches!(ty, Type::ImplTrait(_));
            visit::visit_type(self, ty);
        }
    }
    let mut search = Search(false);
    search.visit_type(ty);
    search.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of the error, and the words that it points at in `attribute` or `item`.
    fn mistake(attribute: &str, item: &str) -> (String, String) {
        // Each text is parsed as its own file. The attribute comes first, so words that both have
        // are found there.
        let tokens = |text: &str| text.parse::<TokenStream>().expect("is Rust");
        let error = try_expand(tokens(attribute), tokens(item)).expect_err("is a mistake");
        (error.to_string(), error.span().source_text().unwrap_or_default())
    }

    #[test]
    fn errors_point_at_the_mistake() {
        let function = "fn work(size: u32, (a, b): (u8, u8)) -> u32 { size }";
        for (attribute, item, word, text) in [
            (
                "args(sise)",
                function,
                "sise",
                "`work` has no parameter `sise`; for any other value write `name = value`",
            ),
            (
                "args(self)",
                function,
                "self",
                "`work` has no parameter `self`; for any other value write `name = value`",
            ),
            (
                "args(all), skip(c)",
                function,
                "c",
                "`work` has no parameter `c`; for any other value write `name = value`",
            ),
            ("skip(a)", function, "a", "`skip` needs `args(all)`"),
            ("nmae = \"x\"", function, "nmae", KNOWN),
            ("name = \"x\", name = \"y\"", function, "name", "this option is given twice"),
            ("CATEGORY, OTHER", function, "OTHER", KNOWN),
            ("name = size", function, "size", "expected string literal"),
            ("ret(hex)", function, "hex", "expected `debug` or `display`"),
            ("lifetime", function, "lifetime", "this option is for async functions; this one is synchronous"),
            ("args(\"size\", a)", function, ",", "expected `=` and a value: `\"size\" = value`"),
            ("args(size.0 + 1)", function, "+", "expected `=` and a value: `size.0 = value`"),
            ("args(?size())", function, "(", "expected `=` and a value: `size = ?value`"),
            (
                "name = \"work {size}\"",
                function,
                "\"work {size}\"",
                "the name is not a format string: write a plain name, and record the value with `args(…)`; a name with \
                 braces needs `slice!(CATEGORY, dynamic: \"…\")` in the function instead of the attribute",
            ),
            ("", "const fn work() {}", "const", "a `const fn` cannot be traced, because it may run in the compiler"),
            (
                "",
                "fn work();",
                ";",
                "a function without a body cannot be traced: put the attribute on the implementations",
            ),
            ("", "struct Work;", "struct", "`#[esatto::trace]` is for functions and `impl` blocks"),
            ("", "pub mod work {}", "mod", "`#[esatto::trace]` is for functions and `impl` blocks"),
            (
                "polls, args(a)",
                "async fn work(a: u8) {}",
                "polls",
                "without the slice of the lifetime there is none for arguments and results",
            ),
            (
                "polls, lifetime",
                "async fn work() {}",
                "lifetime",
                "use `lifetime` or `polls`, not both; the default is both slices",
            ),
            (
                "track = &T",
                "async fn work() {}",
                "track",
                "`track` is for synchronous functions: an async one has its own lane",
            ),
            (
                "name = \"x\"",
                "impl Work { fn work() {} }",
                "\"x\"",
                "this option is for a single function, not for an `impl` block",
            ),
            ("args(x)", "impl Work { fn work() {} }", "impl", "not every function has `x`: use `args(all)`"),
        ] {
            let (found_text, found_word) = mistake(attribute, item);
            assert_eq!((found_text.as_str(), found_word.as_str()), (text, word), "#[trace({attribute})] {item}");
        }
    }

    #[test]
    fn a_mistake_leaves_the_function_unchanged() {
        let item = quote!(
            fn work() {}
        );
        let expanded = expand(quote!(args(x)), item.clone()).to_string();
        assert!(expanded.contains("compile_error"), "{expanded}");
        assert!(expanded.ends_with(&item.to_string()), "{expanded}");
    }
}
