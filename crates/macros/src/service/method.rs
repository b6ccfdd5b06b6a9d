//! A method of a service, read from the trait.

use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, LitStr, PathArguments, Result, ReturnType, TraitItemFn, Type,
};

use super::names::{camel_case, identifier};
use super::options::Options;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unary,
    ServerStream,
    OneWay,
}

pub(super) struct Method {
    pub(super) docs: Vec<Attribute>,
    pub(super) function: Ident,
    pub(super) name: String,
    pub(super) marker: Ident,
    pub(super) kind: Kind,
    pub(super) request: Type,
    pub(super) reply: Type,
    pub(super) category: Option<LitStr>,
}

impl Method {
    /// Reads a method, and makes an `async fn` a function whose future can be sent to another
    /// thread.
    pub(super) fn take(function: &mut TraitItemFn, inherited: Option<&LitStr>) -> Result<Self> {
        if let Some(body) = &function.default {
            return Err(Error::new_spanned(body, "a method of a service has no body here"));
        }
        let signature = &mut function.sig;
        if !signature.generics.params.is_empty() {
            return Err(Error::new_spanned(&signature.generics, "a method of a service has no generic parameters"));
        }
        let Some(asyncness) = signature.asyncness.take() else {
            return Err(Error::new_spanned(signature.fn_token, "a method of a service is an `async fn`"));
        };
        let own = function.attrs.iter().position(|attribute| attribute.path().is_ident("rpc"));
        let own = match own.map(|index| function.attrs.remove(index)) {
            Some(attribute) => attribute.parse_args_with(|input: ParseStream<'_>| Options::parse(input, false))?,
            None => Options::default(),
        };
        let inputs: Vec<&FnArg> = signature.inputs.iter().collect();
        let (request, replies) = match inputs[..] {
            [FnArg::Receiver(receiver), FnArg::Typed(_), FnArg::Typed(request)] if is_shared(receiver) => {
                (request, None)
            }
            [FnArg::Receiver(receiver), FnArg::Typed(_), FnArg::Typed(request), FnArg::Typed(replies)]
                if is_shared(receiver) =>
            {
                (request, Some(&*replies.ty))
            }
            _ => {
                return Err(Error::new(
                    asyncness.span,
                    "expected `async fn name(&self, context: &Context, request: Request)`, and for a stream \
                     `replies: Replies<Reply>` after it",
                ));
            }
        };
        let request = (*request.ty).clone();
        let (kind, reply) = match (replies, &signature.output) {
            (Some(replies), ReturnType::Type(..)) => {
                let wrong = || Error::new_spanned(replies, "expected `Replies<Reply>`");
                (Kind::ServerStream, argument_of(replies, "Replies").ok_or_else(wrong)?)
            }
            (Some(replies), ReturnType::Default) => {
                return Err(Error::new_spanned(replies, "a method with a stream returns `Result<(), Status>`"));
            }
            (None, ReturnType::Type(_, output)) => {
                let wrong = || Error::new_spanned(output, "expected `Result<Reply, Status>`, or nothing if one-way");
                (Kind::Unary, argument_of(output, "Result").ok_or_else(wrong)?)
            }
            // The reply of a one-way method is never sent.
            (None, ReturnType::Default) => (Kind::OneWay, request.clone()),
        };
        let output = match &signature.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, output) => output.to_token_stream(),
        };
        signature.output = syn::parse_quote!(
            -> impl ::core::future::Future<Output = #output> + ::core::marker::Send
        );
        let name = own.name.map_or_else(|| camel_case(&signature.ident.unraw().to_string()), |name| name.value());
        let category = own.category.or_else(|| inherited.cloned()).filter(|category| !category.value().is_empty());
        Ok(Self {
            docs: function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect(),
            function: signature.ident.clone(),
            marker: identifier(&name),
            name,
            kind,
            request,
            reply,
            category,
        })
    }
}

fn is_shared(receiver: &syn::Receiver) -> bool {
    receiver.reference.is_some() && receiver.mutability.is_none() && receiver.colon_token.is_none()
}

/// Returns the first generic argument of a type with this name.
fn argument_of(outer: &Type, name: &str) -> Option<Type> {
    let Type::Path(path) = outer else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner.clone()),
        _ => None,
    }
}
