//! How protocols are resolved: methods, payloads, errors, composition, ordinals.

use std::collections::{BTreeMap, BTreeSet};

use super::layouts::{camel_case, modifiers};
use super::scope::{Found, Item, check_distinct};
use super::{Context, Resolver, notes, versions};
use crate::error::Result;
use crate::generate::names;
use crate::model::{DeclarationKind, Method, MethodKind, Name, Openness, Payload, Protocol, Response, Type};
use crate::ordinal::ordinal;
use crate::source::Span;
use crate::syntax::{self, Attributes, Declaration, File, LayoutKind};

impl<'a> Resolver<'a> {
    pub(super) fn protocol(
        &mut self,
        name: &Name,
        protocol: &'a syntax::Protocol,
        declaration: &'a Declaration,
        file: &'a File,
    ) -> Result<Protocol> {
        if let Some(transport) = declaration.attributes.get("transport") {
            match transport.text() {
                Some("Channel") => {}
                Some(other) => {
                    let message = format!("the transport `{other}` is not supported; known is `Channel`");
                    return Err(transport.span.error(message));
                }
                None => return Err(transport.span.error("expected `@transport(\"NAME\")`")),
            }
        }
        let discoverable = declaration.attributes.get("discoverable").map(|attribute| {
            let named = attribute.arguments.iter().find(|(name, _)| name.as_deref().is_none_or(|name| name == "name"));
            let given = named.and_then(|(_, value)| value.as_text());
            given.map_or_else(|| format!("{}.{}", name.library, name.name), str::to_owned)
        });
        let openness = openness(protocol)?;
        let trace = trace(&declaration.attributes)?;
        let methods = self.methods(name, protocol, openness, trace.as_deref(), file)?;
        Ok(Protocol { openness, discoverable, methods })
    }

    fn methods(
        &mut self,
        protocol_name: &Name,
        protocol: &'a syntax::Protocol,
        openness: Openness,
        trace_all: Option<&str>,
        file: &'a File,
    ) -> Result<Vec<Method>> {
        let mut present = Vec::new();
        for method in &protocol.methods {
            if versions::exists(&method.attributes)? {
                present.push(method);
            }
        }
        let names = present.iter().map(|method| &method.name);
        check_distinct(names, &format!("`{protocol_name}`"), names::type_name)?;
        let mut methods = Vec::new();
        for method in present {
            let name = &method.name.text;
            let is_strict = modifiers(&method.modifiers)?.iter().any(|modifier| modifier.name == "strict");
            let is_two_way = method.request.is_some() && method.response.is_some();
            let is_allowed = match openness {
                Openness::Closed => is_strict,
                Openness::Ajar => is_strict || !is_two_way,
                Openness::Open => true,
            };
            if !is_allowed {
                let message = format!("`{name}` must be `strict`, because the protocol is `{}`", openness.fidl());
                return Err(method.name.span.error(message));
            }
            let trace = trace(&method.attributes)?.or_else(|| trace_all.map(str::to_owned));
            methods.push(Method {
                name: name.clone(),
                notes: notes(&method.attributes)?,
                ordinal: ordinal(&selector(protocol_name, method)?),
                is_strict,
                kind: self.method_kind(protocol_name, method, is_strict, file)?,
                trace: trace.filter(|category| !category.is_empty()),
            });
        }
        Ok(methods)
    }

    fn method_kind(
        &mut self,
        protocol: &Name,
        method: &'a syntax::Method,
        is_strict: bool,
        file: &'a File,
    ) -> Result<MethodKind> {
        let base = format!("{}{}", camel_case(&protocol.name), camel_case(&method.name.text));
        let Some(request) = &method.request else {
            let payload = match &method.response {
                Some(payload) => self.payload(payload, &format!("{base}Request"), file)?,
                None => None,
            };
            return Ok(MethodKind::Event { payload });
        };
        let request = self.payload(request, &format!("{base}Request"), file)?;
        let Some(response) = &method.response else { return Ok(MethodKind::OneWay { request }) };
        if is_strict && method.error.is_none() {
            let response = Response::Plain(self.payload(response, &format!("{base}Response"), file)?);
            return Ok(MethodKind::TwoWay { request, response });
        }
        // The body is a union, so the payload has a longer name.
        let long = format!("{}_{}", protocol.name, method.name.text);
        let success = self.payload(response, &format!("{long}_Response"), file)?;
        let error = match &method.error {
            Some(type_) => Some(self.resolve_type(type_, Context { file, name: &format!("{long}_Error") })?),
            None => None,
        };
        let response = Response::Result { success, error };
        Ok(MethodKind::TwoWay { request, response })
    }

    fn payload(&mut self, payload: &'a syntax::Payload, name: &str, file: &'a File) -> Result<Payload> {
        let Some(type_) = &payload.0 else { return Ok(None) };
        match self.resolve_type(type_, Context { file, name })? {
            Type::Declared(name) if self.is_message(&name) => Ok(Some(name)),
            _ => Err(type_.span.error("the parameters are a struct, a table or a union")),
        }
    }

    /// Adds the methods of composed protocols.
    pub(super) fn compose(&mut self) -> Result<()> {
        let mut composed = BTreeMap::new();
        for (library, items) in self.scope.libraries() {
            for Item { file, declaration } in items {
                let syntax::DeclarationKind::Protocol(protocol) = &declaration.kind else { continue };
                let name = Name::new(library, &declaration.name.text);
                composed.insert(name, (self.composed(protocol, file)?, &declaration.name.span));
            }
        }
        let mut all = BTreeMap::new();
        for (name, (_, span)) in &composed {
            let mut methods = BTreeMap::new();
            self.collect(name, &composed, &mut Vec::new(), &mut BTreeSet::new(), &mut methods)?;
            if let Some((first, second, rust)) = names::clash(methods.keys().map(String::as_str)) {
                let message = format!(
                    "`{first}` and `{second}`, own or composed methods of `{name}`, would both be `{rust}` in generated code: rename one"
                );
                return Err(span.error(message));
            }
            let mut ordinals: BTreeMap<u64, &str> = BTreeMap::new();
            for method in methods.values() {
                if let Some(other) = ordinals.insert(method.ordinal, &method.name) {
                    let message = format!("`{other}` and `{}` have the same ordinal: use `@selector`", method.name);
                    return Err(span.error(message));
                }
            }
            all.insert(name.clone(), methods.into_values().collect());
        }
        for (name, methods) in all {
            if let Some(DeclarationKind::Protocol(protocol)) =
                self.declarations.get_mut(&name).map(|declaration| &mut declaration.kind)
            {
                protocol.methods = methods;
            }
        }
        Ok(())
    }

    /// Returns the protocols that a protocol composes itself.
    fn composed(&self, protocol: &'a syntax::Protocol, file: &'a File) -> Result<Vec<Name>> {
        let own = openness(protocol)?;
        let mut names = Vec::new();
        for part in &protocol.composed {
            if !versions::exists(&part.attributes)? {
                continue;
            }
            let path = &part.protocol;
            let Some(Found { item, rest }) = self.scope.find(file, path) else {
                return Err(self.scope.unknown(file, path, "protocol"));
            };
            let syntax::DeclarationKind::Protocol(other) = &item.declaration.kind else {
                return Err(path.span.error(format!("`{}` is no protocol", path.dotted())));
            };
            let is_protocol = rest.is_empty();
            let theirs = openness(other)?;
            if !is_protocol || theirs > own {
                let message =
                    format!("the protocol is `{}` and cannot compose one that is `{}`", own.fidl(), theirs.fidl());
                return Err(path.span.error(message));
            }
            names.push(Name::new(&item.file.library.dotted(), &item.declaration.name.text));
        }
        Ok(names)
    }

    fn collect(
        &self,
        name: &Name,
        composed: &BTreeMap<Name, (Vec<Name>, &Span)>,
        path: &mut Vec<Name>,
        seen: &mut BTreeSet<Name>,
        methods: &mut BTreeMap<String, Method>,
    ) -> Result<()> {
        let Some((parts, span)) = composed.get(name) else { return Ok(()) };
        if path.contains(name) {
            return Err(span.error(format!("the protocol `{name}` composes itself")));
        }
        if !seen.insert(name.clone()) {
            return Ok(());
        }
        if let Some(DeclarationKind::Protocol(protocol)) =
            self.declarations.get(name).map(|declaration| &declaration.kind)
        {
            for method in &protocol.methods {
                let other = methods.insert(method.name.clone(), method.clone());
                if other.is_some_and(|other| other.ordinal != method.ordinal) {
                    let message = format!("two methods called `{}` are composed", method.name);
                    return Err(span.error(message));
                }
            }
        }
        path.push(name.clone());
        for part in parts {
            self.collect(part, composed, path, seen, methods)?;
        }
        path.pop();
        Ok(())
    }

    fn is_message(&self, name: &Name) -> bool {
        [LayoutKind::Struct, LayoutKind::Table, LayoutKind::Union].into_iter().any(|kind| self.is_layout(name, kind))
    }
}

fn openness(protocol: &syntax::Protocol) -> Result<Openness> {
    let modifiers = modifiers(&protocol.modifiers)?;
    Ok(match modifiers.first().map(|modifier| modifier.name.as_str()) {
        Some("closed") => Openness::Closed,
        Some("ajar") => Openness::Ajar,
        _ => Openness::Open,
    })
}

/// Returns the text whose hash is the ordinal.
fn selector(protocol: &Name, method: &syntax::Method) -> Result<String> {
    let Some(attribute) = method.attributes.get("selector") else {
        return Ok(format!("{protocol}.{}", method.name.text));
    };
    match attribute.text() {
        Some(full) if full.contains('/') => Ok(full.to_owned()),
        Some(name) if !name.is_empty() => Ok(format!("{protocol}.{name}")),
        _ => Err(attribute.span.error("expected `@selector(\"NAME\")`, or `LIBRARY/PROTOCOL.NAME`")),
    }
}

/// Returns the category of `@trace("CATEGORY")`. The empty one switches tracing off.
fn trace(attributes: &Attributes) -> Result<Option<String>> {
    let Some(attribute) = attributes.get("trace") else { return Ok(None) };
    let expected = || attribute.span.error("expected `@trace(\"CATEGORY\")`");
    // The RFC allows several attributes, and uses the first category.
    let category = attribute.arguments.first().and_then(|(_, value)| value.as_text()).ok_or_else(expected)?;
    if category.contains(',') || category.chars().any(char::is_control) {
        return Err(attribute.span.error("a category is one name, without commas and control characters"));
    }
    Ok(Some(category.to_owned()))
}

impl Openness {
    pub(crate) fn fidl(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Ajar => "ajar",
            Self::Open => "open",
        }
    }
}
