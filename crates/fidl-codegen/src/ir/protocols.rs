//! How protocols are read: methods, and those of composed protocols.

use std::collections::{BTreeMap, BTreeSet};

use super::declarations::{check_names, find, notes};
use super::json;
use super::names::{Known, parse};
use super::types::Place;
use crate::error::Result;
use crate::model::{DeclarationKind, Library, Method, MethodKind, Name, Openness, Protocol, Response};
use crate::ordinal::ordinal;

/// Protocols that may compose each other in a row.
const MAX_COMPOSED: usize = 64;

/// Returns the unions of results.
pub(super) fn results<'a>(file: &'a str, protocol: &'a json::Protocol) -> impl Iterator<Item = Name> + 'a {
    let with_result = protocol.methods.iter().filter(|method| has_result(method));
    let types = with_result.flat_map(|method| [&method.maybe_response_payload, &method.maybe_response_result_type]);
    types.flatten().filter_map(|type_| parse(file, type_.identifier.as_ref()?).ok())
}

fn has_result(method: &json::Method) -> bool {
    method.has_request && method.has_response && (method.has_error || method.strict == Some(false))
}

/// Reads a protocol with its own methods.
pub(super) fn protocol(file: &str, json: &json::Protocol, known: &Known) -> Result<Protocol> {
    let place = Place { file, name: &json.name, known };
    let transport = json.notes.attribute("transport").and_then(|attribute| attribute.argument("value"));
    if let Some(transport) = transport.filter(|transport| *transport != "Channel") {
        return Err(place.error(format!("the transport `{transport}` is not supported; known is `Channel`")));
    }
    let discoverable = json.notes.attribute("discoverable").map(|attribute| {
        let given = attribute.argument("name").or_else(|| attribute.argument("value"));
        given.map_or_else(|| json.name.replace('/', "."), str::to_owned)
    });
    let openness = match json.openness.as_deref() {
        None | Some("closed") => Openness::Closed,
        Some("ajar") => Openness::Ajar,
        Some("open") => Openness::Open,
        Some(other) => return Err(place.error(format!("expected `closed`, `ajar` or `open`, found `{other}`"))),
    };
    check_names(file, &json.name, json.methods.iter().map(|method| method.name.as_str()))?;
    let trace_all = trace(&place, &json.notes)?;
    let mut methods = Vec::new();
    for method in json.methods.iter().filter(|method| !method.is_composed) {
        let full = format!("{}.{}", json.name, method.name);
        let place = Place { name: &full, ..place };
        let selector = match method.notes.attribute("selector").and_then(|attribute| attribute.argument("value")) {
            Some(selector) if selector.contains('/') => selector.to_owned(),
            Some(selector) => format!("{}.{selector}", json.name),
            None => full.clone(),
        };
        let own = ordinal(&selector);
        if own != method.ordinal {
            return Err(place.error(format!("the ordinal is {}, but that of `{selector}` is {own}", method.ordinal)));
        }
        let is_strict = method.strict.unwrap_or(true);
        let is_two_way = method.has_request && method.has_response;
        let is_allowed = is_strict || openness == Openness::Open || openness == Openness::Ajar && !is_two_way;
        if !is_allowed {
            let message = format!("it must be strict, because the protocol is `{}`", openness.fidl());
            return Err(place.error(message));
        }
        let trace = trace(&place, &method.notes)?.or_else(|| trace_all.clone());
        methods.push(Method {
            name: method.name.clone(),
            notes: notes(&method.notes),
            ordinal: own,
            is_strict,
            kind: kind(&place, method)?,
            trace: trace.filter(|category| !category.is_empty()),
        });
    }
    Ok(Protocol { openness, discoverable, methods })
}

fn kind(place: &Place<'_>, method: &json::Method) -> Result<MethodKind> {
    let request = place.payload(method.maybe_request_payload.as_ref())?;
    Ok(match (method.has_request, method.has_response) {
        (true, false) => MethodKind::OneWay { request },
        (true, true) if has_result(method) => {
            let success = place.payload(method.maybe_response_success_type.as_ref())?;
            let error = method.maybe_response_err_type.as_ref().map(|type_| place.type_(type_)).transpose()?;
            if method.has_error && error.is_none() {
                return Err(place.error("expected `maybe_response_err_type`"));
            }
            MethodKind::TwoWay { request, response: Response::Result { success, error } }
        }
        (true, true) => {
            let response = Response::Plain(place.payload(method.maybe_response_payload.as_ref())?);
            MethodKind::TwoWay { request, response }
        }
        (false, true) => MethodKind::Event { payload: place.payload(method.maybe_response_payload.as_ref())? },
        (false, false) => return Err(place.error("expected a request, a response or both")),
    })
}

/// Returns the category of `@trace("CATEGORY")`.
fn trace(place: &Place<'_>, notes: &json::Notes) -> Result<Option<String>> {
    let Some(attribute) = notes.attribute("trace") else { return Ok(None) };
    let category = attribute.arguments.first().map(|argument| argument.value.value.as_str());
    let category = category.ok_or_else(|| place.error("expected `@trace(\"CATEGORY\")`"))?;
    if category.contains(',') || category.chars().any(char::is_control) {
        return Err(place.error("a category is one name, without commas and control characters"));
    }
    Ok(Some(category.to_owned()))
}

/// Adds the methods of composed protocols, which must be those that the files list.
pub(super) fn compose(roots: &[(&str, json::Library)], libraries: &mut BTreeMap<String, Library>) -> Result<()> {
    let mut composed: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
    for (file, root) in roots {
        for protocol in &root.protocol_declarations {
            let names = protocol.composed_protocols.iter().map(|part| parse(file, &part.name));
            composed.insert(parse(file, &protocol.name)?, names.collect::<Result<_>>()?);
        }
    }
    let mut all = Vec::new();
    for (file, root) in roots {
        for json in &root.protocol_declarations {
            let name = parse(file, &json.name)?;
            let mut methods = BTreeMap::new();
            let mut seen = BTreeSet::new();
            collect(file, &name, &composed, libraries, 0, &mut seen, &mut methods)?;
            let fail = |method: &str, message: &str| Err(super::error(file, format!("{name}.{method}: {message}")));
            for method in &json.methods {
                match methods.get(&method.name) {
                    None => return fail(&method.name, "no composed protocol has this method"),
                    Some(own) if own.ordinal != method.ordinal => {
                        let message = format!("the ordinal is {}, but ours is {}", method.ordinal, own.ordinal);
                        return fail(&method.name, &message);
                    }
                    Some(_) => {}
                }
            }
            if let Some(missing) = methods.keys().find(|own| !json.methods.iter().any(|method| method.name == **own)) {
                return fail(missing, "the method is in a composed protocol, but not in this one");
            }
            let mut ordinals = BTreeMap::new();
            for method in methods.values() {
                if let Some(other) = ordinals.insert(method.ordinal, &method.name) {
                    return fail(&method.name, &format!("`{other}` has the same ordinal"));
                }
            }
            all.push((name, methods.into_values().collect::<Vec<Method>>()));
        }
    }
    for (name, methods) in all {
        let declaration = libraries.get_mut(&name.library).and_then(|library| find(library, &name));
        if let Some(DeclarationKind::Protocol(protocol)) = declaration.map(|declaration| &mut declaration.kind) {
            protocol.methods = methods;
        }
    }
    Ok(())
}

fn collect(
    file: &str,
    name: &Name,
    composed: &BTreeMap<Name, Vec<Name>>,
    libraries: &BTreeMap<String, Library>,
    depth: usize,
    seen: &mut BTreeSet<Name>,
    methods: &mut BTreeMap<String, Method>,
) -> Result<()> {
    if !seen.insert(name.clone()) {
        return Ok(());
    }
    if depth > MAX_COMPOSED {
        return Err(super::error(file, format!("{name}: more than {MAX_COMPOSED} protocols compose each other")));
    }
    let found = libraries.get(&name.library).and_then(|library| {
        library.declarations.iter().find(|declaration| declaration.name == *name).map(|declaration| &declaration.kind)
    });
    let Some(DeclarationKind::Protocol(protocol)) = found else {
        return Err(super::error(file, format!("{name}: no such protocol: add the file of its library")));
    };
    for method in &protocol.methods {
        let other = methods.insert(method.name.clone(), method.clone());
        if other.is_some_and(|other| other.ordinal != method.ordinal) {
            return Err(super::error(file, format!("{name}: two methods called `{}` are composed", method.name)));
        }
    }
    for part in composed.get(name).into_iter().flatten() {
        collect(file, part, composed, libraries, depth + 1, seen, methods)?;
    }
    Ok(())
}
