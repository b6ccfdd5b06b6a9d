//! The parameters that move into the traced body, so that its slice contains their destructors.
//!
//! Rust drops the parameters of a function after all of its locals, the guard of the slice among
//! them. Parameters of types that cannot have a destructor stay as they are.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, FnArg, GenericArgument, Ident, Pat, PatIdent, PathArguments, Receiver, Signature, Type};

use crate::parameters;

/// Returns whether the function takes `self` by value, and `self` may have a destructor.
pub(crate) fn has_self(signature: &Signature) -> bool {
    signature.receiver().is_some_and(is_moved)
}

fn is_moved(receiver: &Receiver) -> bool {
    receiver.reference.is_none() && may_drop(&receiver.ty)
}

/// Returns statements that move the parameters into locals of the same names. They are dropped in
/// the order in which Rust drops parameters: the bindings of the last one, the rest of it, those of
/// the one before, and so on. `self` cannot move in this way.
pub(crate) fn into_locals(signature: &mut Signature) -> TokenStream {
    let mut moves = TokenStream::new();
    for (index, parameter) in signature.inputs.iter_mut().enumerate() {
        let FnArg::Typed(parameter) = parameter else { continue };
        if !may_drop(&parameter.ty) {
            continue;
        }
        // Lints are for the local, and conditions for both.
        let (conditions, lints): (Vec<Attribute>, Vec<Attribute>) =
            parameter.attrs.drain(..).partition(|attribute| attribute.path().is_ident("cfg"));
        let allow = quote! {
            #(#conditions)*
            #(#lints)*
            #[allow(
                clippy::let_unit_value, clippy::no_effect_underscore_binding, clippy::redundant_locals,
                clippy::shadow_same, clippy::toplevel_ref_arg, clippy::used_underscore_binding
            )]
        };
        if let Pat::Ident(PatIdent { by_ref: None, mutability, ident, subpat: None, .. }) = &mut *parameter.pat {
            let mutability = mutability.take();
            moves.extend(quote!(#allow let #mutability #ident = #ident;));
        } else {
            let name = unnamed(index);
            let pattern = std::mem::replace(&mut *parameter.pat, Pat::Verbatim(name.to_token_stream()));
            moves.extend(quote!(#allow let #name = #name;));
            if !matches!(pattern, Pat::Wild(_)) {
                moves.extend(quote!(#allow let #pattern = #name;));
            }
        }
        parameter.attrs = conditions;
    }
    moves
}

/// Returns statements that make a `move` closure or an `async move` block capture the parameters as
/// a whole. Captured variables are dropped in the order of their first use.
pub(crate) fn into_captures(signature: &mut Signature) -> TokenStream {
    let mut captures = Vec::new();
    for (index, parameter) in signature.inputs.iter_mut().enumerate() {
        match parameter {
            FnArg::Receiver(receiver) => {
                if is_moved(receiver) {
                    let name = receiver.self_token;
                    captures.push(quote!(let _ = &#name;));
                }
            }
            FnArg::Typed(parameter) if !may_drop(&parameter.ty) => {}
            FnArg::Typed(parameter) => {
                if matches!(&*parameter.pat, Pat::Wild(_)) {
                    *parameter.pat = Pat::Verbatim(unnamed(index).to_token_stream());
                }
                let names = match &*parameter.pat {
                    Pat::Verbatim(_) => vec![unnamed(index)],
                    pattern => parameters::bound_names(pattern),
                };
                let conditions: Vec<&Attribute> =
                    parameter.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
                captures.extend(names.iter().map(|name| {
                    quote! {
                        #(#conditions)*
                        #[allow(clippy::used_underscore_binding)]
                        let _ = &#name;
                    }
                }));
            }
        }
    }
    captures.into_iter().rev().collect()
}

/// Returns the name of a parameter that has none, which the code of the function cannot use. The
/// documentation of the function shows it.
fn unnamed(index: usize) -> Ident {
    Ident::new(&format!("parameter_{index}"), Span::mixed_site())
}

/// Returns whether an expression names a parameter, so that it may borrow from it.
pub(crate) fn names_parameter(expression: &impl ToTokens, signature: &Signature) -> bool {
    fn any(tokens: TokenStream, names: &[Ident]) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(word) => names.contains(&word),
            TokenTree::Group(group) => any(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => false,
        })
    }
    any(expression.to_token_stream(), &parameters::names(signature))
}

/// Returns false if the spelling of the type shows that it has no destructor.
fn may_drop(ty: &Type) -> bool {
    match ty {
        Type::Reference(_) | Type::Ptr(_) | Type::BareFn(_) | Type::Never(_) => false,
        Type::Array(array) => may_drop(&array.elem),
        Type::Paren(paren) => may_drop(&paren.elem),
        Type::Group(group) => may_drop(&group.elem),
        Type::Tuple(tuple) => tuple.elems.iter().any(may_drop),
        Type::Path(path) => {
            let is_number = |name: &Ident| {
                let known = [
                    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
                    "u64", "u128", "usize",
                ];
                known.iter().any(|known| name == known)
            };
            if path.path.get_ident().is_some_and(is_number) {
                return false;
            }
            let Some(last) = path.path.segments.last() else { return true };
            match &last.arguments {
                PathArguments::AngleBracketed(arguments) if last.ident == "Pin" => {
                    arguments.args.iter().any(|argument| match argument {
                        GenericArgument::Type(ty) => may_drop(ty),
                        _ => false,
                    })
                }
                _ => true,
            }
        }
        _ => true,
    }
}
