//! The parameters and results of a function that are recorded.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Error, FnArg, Ident, Pat, Result, Signature, Token};

use crate::options::{ArgValue, Form, Options};

/// Returns `"name" = value` for each argument to record, each with a comma before it.
pub(crate) fn recorded(signature: &Signature, options: &Options) -> Result<TokenStream> {
    let krate = options.krate();
    let parameters = names(signature);
    let mut recorded = TokenStream::new();
    let mut add = |name: &str, form: Form, value: TokenStream| {
        let value = form.wrap(&krate, value);
        recorded.extend(quote!(, #name = #value));
    };
    for skipped in &options.skip {
        require(skipped, &parameters, signature)?;
    }
    if options.all.is_some() {
        let named = |name: &Ident| {
            options.args.iter().any(|arg| matches!(&arg.value, ArgValue::Parameter(parameter) if parameter == name))
        };
        for name in parameters.iter().filter(|&name| name != "self" && !options.skip.contains(name) && !named(name)) {
            add(&name.unraw().to_string(), Form::Value, quote_spanned!(name.span()=> &#name));
        }
    }
    for arg in &options.args {
        match &arg.value {
            ArgValue::Parameter(name) => {
                require(name, &parameters, signature)?;
                add(&arg.name, arg.form, quote_spanned!(name.span()=> &#name));
            }
            ArgValue::Expression(value) => add(&arg.name, arg.form, quote!(&(#value))),
        }
    }
    Ok(recorded)
}

fn require(name: &Ident, parameters: &[Ident], signature: &Signature) -> Result<()> {
    if parameters.contains(name) {
        return Ok(());
    }
    let function = &signature.ident;
    Err(Error::new(
        name.span(),
        format!("`{function}` has no parameter `{name}`; for any other value write `name = value`"),
    ))
}

/// Returns the names that the patterns of the parameters bind.
pub(crate) fn names(signature: &Signature) -> Vec<Ident> {
    let mut names = Vec::new();
    for parameter in &signature.inputs {
        match parameter {
            FnArg::Receiver(receiver) => names.push(Ident::from(receiver.self_token)),
            FnArg::Typed(parameter) => bound(&parameter.pat, &mut names),
        }
    }
    names
}

/// Returns the names that a pattern binds.
pub(crate) fn bound_names(pattern: &Pat) -> Vec<Ident> {
    let mut names = Vec::new();
    bound(pattern, &mut names);
    names
}

fn bound(pattern: &Pat, names: &mut Vec<Ident>) {
    match pattern {
        Pat::Ident(binding) => {
            names.push(binding.ident.clone());
            if let Some((_, inner)) = &binding.subpat {
                bound(inner, names);
            }
        }
        Pat::Reference(reference) => bound(&reference.pat, names),
        Pat::Paren(paren) => bound(&paren.pat, names),
        Pat::Type(typed) => bound(&typed.pat, names),
        Pat::Struct(structure) => structure.fields.iter().for_each(|field| bound(&field.pat, names)),
        Pat::Tuple(tuple) => tuple.elems.iter().for_each(|element| bound(element, names)),
        Pat::TupleStruct(tuple) => tuple.elems.iter().for_each(|element| bound(element, names)),
        Pat::Slice(slice) => slice.elems.iter().for_each(|element| bound(element, names)),
        _ => {}
    }
}

/// Returns the code that records the value `result` at the end of a call, in a closure over
/// `event`. Empty if it is not recorded.
pub(crate) fn result(options: &Options, event: &Ident, result: &Ident) -> Option<TokenStream> {
    let krate = options.krate();
    let record = |name: &str, form: Form, value: TokenStream| {
        let value = form.wrap(&krate, value);
        quote! {{
            static NAME: #krate::Name = #krate::Name::new(#name);
            #event.annotate_static(&NAME, #value);
        }}
    };
    let (ok, error) = (quote!(Ok), quote!(Err));
    Some(match (options.ret, options.err) {
        (None, None) => return None,
        (Some((span, form)), None) => record("return", form, quote_spanned!(span=> &#result)),
        (None, Some((span, form))) => {
            let value = record("error", form, quote_spanned!(span=> error));
            let result = as_result(&krate, result, span);
            quote_spanned!(span=> if let ::core::result::Result::#error(error) = #result #value)
        }
        (Some((ret, ret_form)), Some((span, err_form))) => {
            let value = record("return", ret_form, quote_spanned!(ret=> value));
            let failure = record("error", err_form, quote_spanned!(span=> error));
            let result = as_result(&krate, result, span);
            quote_spanned! {span=>
                match #result {
                    ::core::result::Result::#ok(value) => #value
                    ::core::result::Result::#error(error) => #failure
                }
            }
        }
    })
}

/// Returns `result` as a `Result` of references. All tokens have the span of the option `err`, so
/// that the compiler points at it if the result is something else.
fn as_result(krate: &TokenStream, result: &Ident, span: Span) -> TokenStream {
    let krate = krate.clone().into_iter().map(|mut token| {
        token.set_span(token.span().located_at(span));
        token
    });
    let result = Ident::new(&result.to_string(), result.span().located_at(span));
    quote_spanned!(span=> #(#krate)*::__private::as_result(&#result))
}

/// Returns the error for a function that cannot be traced.
pub(crate) fn refuse_const(constness: Option<&Token![const]>) -> Result<()> {
    match constness {
        Some(token) => {
            Err(Error::new_spanned(token, "a `const fn` cannot be traced, because it may run in the compiler"))
        }
        None => Ok(()),
    }
}
