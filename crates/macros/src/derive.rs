//! `#[derive(TraceArgs)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Path, Result, Type, Variant, WherePredicate,
    parse_quote,
};

use crate::options::Form;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    syn::parse2(item).and_then(|input| derive(&input)).unwrap_or_else(Error::into_compile_error)
}

fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let container = Container::of(&input.attrs)?;
    let krate = container.krate.as_ref().map_or_else(|| quote!(::esatto), Path::to_token_stream);
    let mut body = Body { krate, input, bounds: Vec::new() };
    let (write_args, value) = match &input.data {
        Data::Struct(data) => {
            if let Some(tag) = &container.tag {
                return Err(Error::new(tag.span(), "`tag` is for enums; this is a struct"));
            }
            body.structure(&data.fields)?
        }
        Data::Enum(data) => {
            let tag = container.tag.as_ref().map_or_else(|| "variant".to_owned(), LitStr::value);
            body.enumeration(data.variants.iter(), &tag)?
        }
        Data::Union(data) => {
            return Err(Error::new_spanned(
                data.union_token,
                "a union cannot be recorded: its active field is unknown",
            ));
        }
    };
    let Body { krate, bounds, .. } = body;
    let name = &input.ident;
    let mut generics = input.generics.clone();
    if !bounds.is_empty() {
        generics.make_where_clause().predicates.extend(bounds);
    }
    let (parameters, arguments, condition) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #krate::TraceArgs for #name #arguments #condition {
            fn write_args(&self, out: &mut #krate::DictWriter<'_>) {
                #write_args
            }
        }

        #[automatically_derived]
        impl #parameters #krate::Value for #name #arguments #condition {
            fn write(&self, out: #krate::AnnotationWriter<'_>) {
                #value
            }
        }
    })
}

struct Body<'a> {
    krate: TokenStream,
    input: &'a DeriveInput,
    bounds: Vec<WherePredicate>,
}

impl Body<'_> {
    /// Returns the bodies of `write_args` and `write`.
    fn structure(&mut self, fields: &Fields) -> Result<(TokenStream, TokenStream)> {
        let krate = self.krate.clone();
        let (pattern, entries) = self.fields(fields)?;
        let write_args = quote! {
            let Self #pattern = self;
            #entries
        };
        let value = match (fields, fields.iter().next()) {
            (Fields::Unnamed(unnamed), Some(field)) if unnamed.unnamed.len() == 1 => self.transparent(field)?,
            _ => None,
        };
        Ok((write_args, value.unwrap_or_else(|| quote!(#krate::TraceArgs::write_args(self, &mut out.dict());))))
    }

    /// Returns the only field of a tuple struct, as the value of the struct.
    fn transparent(&self, field: &Field) -> Result<Option<TokenStream>> {
        let krate = &self.krate;
        let attributes = Attributes::of(&field.attrs)?;
        if attributes.skip || attributes.flatten || attributes.rename.is_some() {
            return Ok(None);
        }
        let value = attributes.form.wrap(krate, quote!(&self.0));
        Ok(Some(quote!(#krate::Value::write(&#value, out);)))
    }

    fn enumeration<'v>(
        &mut self,
        variants: impl Iterator<Item = &'v Variant> + Clone,
        tag: &str,
    ) -> Result<(TokenStream, TokenStream)> {
        let krate = self.krate.clone();
        if variants.clone().next().is_none() {
            return Ok((quote!(let _ = out; match *self {}), quote!(let _ = out; match *self {})));
        }
        let plain = variants.clone().all(|variant| variant.fields.is_empty());
        let (mut arms, mut names) = (TokenStream::new(), TokenStream::new());
        for variant in variants {
            let attributes = Attributes::of(&variant.attrs)?;
            attributes.expect_variant(variant)?;
            let ident = &variant.ident;
            let name = attributes.name(ident);
            let (pattern, entries) = match attributes.skip {
                true => (quote!({ .. }), TokenStream::new()),
                false => self.fields(&variant.fields)?,
            };
            arms.extend(quote! {
                Self::#ident #pattern => {
                    out.add_static(&TAG, &#name);
                    #entries
                }
            });
            names.extend(quote!(Self::#ident { .. } => #name,));
        }
        let write_args = quote! {
            static TAG: #krate::Name = #krate::Name::new(#tag);
            match self { #arms }
        };
        let value = match plain {
            true => quote!(out.text(match self { #names });),
            false => quote!(#krate::TraceArgs::write_args(self, &mut out.dict());),
        };
        Ok((write_args, value))
    }

    /// Returns a pattern that binds the fields, and statements that add them.
    fn fields(&mut self, fields: &Fields) -> Result<(TokenStream, TokenStream)> {
        let krate = self.krate.clone();
        let (mut pattern, mut entries) = (TokenStream::new(), TokenStream::new());
        for (index, field) in fields.iter().enumerate() {
            let attributes = Attributes::of(&field.attrs)?;
            if attributes.skip {
                continue;
            }
            let binding = format_ident!("field_{index}");
            let member = match &field.ident {
                Some(ident) => ident.to_token_stream(),
                None => syn::Index::from(index).to_token_stream(),
            };
            pattern.extend(quote!(#member: #binding,));
            let span = field.ty.span();
            self.bound(&field.ty, &attributes);
            if attributes.flatten {
                entries.extend(quote_spanned!(span=> #krate::TraceArgs::write_args(#binding, out);));
                continue;
            }
            let name = match &field.ident {
                Some(ident) => attributes.name(ident),
                None => attributes.rename.as_ref().map_or_else(|| index.to_string(), LitStr::value),
            };
            let value = match attributes.form {
                Form::Value => binding.to_token_stream(),
                form => {
                    let value = form.wrap(&krate, binding.to_token_stream());
                    quote!(&#value)
                }
            };
            entries.extend(quote_spanned! {span=> {
                static NAME: #krate::Name = #krate::Name::new(#name);
                out.add_static(&NAME, #value);
            }});
        }
        let dots = if fields.is_empty() { TokenStream::new() } else { quote!(..) };
        Ok((quote!({ #pattern #dots }), entries))
    }

    /// Adds the bounds that the statements need, for a type that depends on parameters.
    fn bound(&mut self, ty: &Type, attributes: &Attributes) {
        let krate = &self.krate;
        let required = match (attributes.flatten, attributes.form) {
            (true, _) => quote!(#krate::TraceArgs),
            (false, Form::Value) => quote!(#krate::Value),
            (false, Form::Debug) => quote!(::core::fmt::Debug),
            (false, Form::Display) => quote!(::core::fmt::Display),
        };
        let parameters: Vec<&Ident> = self.input.generics.type_params().map(|parameter| &parameter.ident).collect();
        let used: Vec<&Ident> = parameters.into_iter().filter(|parameter| mentions(ty, parameter)).collect();
        if used.is_empty() {
            return;
        }
        match mentions(ty, &self.input.ident) || mentions(ty, &format_ident!("Self")) {
            // A bound on a type that contains this one would depend on itself.
            true => self
                .bounds
                .extend(used.iter().map(|parameter| -> WherePredicate { parse_quote!(#parameter: #required) })),
            false => self.bounds.push(parse_quote!(#ty: #required)),
        }
    }
}

fn mentions(ty: &Type, name: &Ident) -> bool {
    struct Search<'a>(&'a Ident, bool);
    impl Visit<'_> for Search<'_> {
        fn visit_ident(&mut self, ident: &Ident) {
            self.1 |= ident == self.0;
        }
    }
    let mut search = Search(name, false);
    search.visit_type(ty);
    search.1
}

/// `#[esatto(…)]` of the type.
#[derive(Default)]
struct Container {
    tag: Option<LitStr>,
    krate: Option<Path>,
}

impl Container {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("esatto")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("tag") {
                    found.tag = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("crate") {
                    found.krate = Some(meta.value()?.call(Path::parse_mod_style)?);
                } else {
                    return Err(meta.error("expected `tag = \"…\"` or `crate = …`"));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// `#[esatto(…)]` of a field or a variant.
struct Attributes {
    rename: Option<LitStr>,
    skip: bool,
    flatten: bool,
    form: Form,
}

impl Attributes {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self { rename: None, skip: false, flatten: false, form: Form::Value };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("esatto")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") {
                    found.rename = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("skip") {
                    found.skip = true;
                } else if meta.path.is_ident("flatten") {
                    found.flatten = true;
                } else if meta.path.is_ident("debug") {
                    found.form = Form::Debug;
                } else if meta.path.is_ident("display") {
                    found.form = Form::Display;
                } else {
                    return Err(meta.error("expected `rename = \"…\"`, `skip`, `flatten`, `debug` or `display`"));
                }
                if found.flatten && (found.rename.is_some() || found.form != Form::Value) {
                    return Err(meta.error("a field with `flatten` has no `rename`, `debug` or `display`"));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    fn name(&self, ident: &Ident) -> String {
        use syn::ext::IdentExt;
        self.rename.as_ref().map_or_else(|| ident.unraw().to_string(), LitStr::value)
    }

    fn expect_variant(&self, variant: &Variant) -> Result<()> {
        if self.flatten || self.form != Form::Value {
            return Err(Error::new_spanned(variant, "a variant takes only `rename` and `skip`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_point_at_the_mistake() {
        for (item, word, text) in [
            ("union U { a: u8 }", "union", "a union cannot be recorded: its active field is unknown"),
            (
                "struct S { #[esatto(rnm = \"x\")] a: u8 }",
                "rnm",
                "expected `rename = \"…\"`, `skip`, `flatten`, `debug` or `display`",
            ),
            ("#[esatto(name = \"x\")] struct S;", "name", "expected `tag = \"…\"` or `crate = …`"),
            ("#[esatto(tag = \"x\")] struct S;", "\"x\"", "`tag` is for enums; this is a struct"),
            (
                "struct S { #[esatto(flatten, debug)] a: u8 }",
                "debug",
                "a field with `flatten` has no `rename`, `debug` or `display`",
            ),
            ("enum E { #[esatto(debug)] A }", "#[esatto(debug)] A", "a variant takes only `rename` and `skip`"),
        ] {
            let input = syn::parse_str(item).expect("is an item");
            let error = derive(&input).expect_err("is a mistake");
            let found = error.span().source_text().unwrap_or_default();
            assert_eq!((error.to_string().as_str(), found.as_str()), (text, word), "{item}");
        }
    }
}
