//! The origins whose pages may use the bridge.

use crate::Error;

/// Perfetto's own UI, and the one that its developers run.
const USUAL: [&str; 3] = ["https://ui.perfetto.dev", "http://localhost:10000", "http://127.0.0.1:10000"];

/// A list of origins.
#[derive(Debug)]
pub(super) struct Origins(Vec<String>);

impl Origins {
    /// The usual ones, and these.
    pub(super) fn with(more: &[String]) -> Result<Self, Error> {
        for origin in more {
            if !is_origin(origin) {
                return Err(Error::Origin(origin.clone()));
            }
        }
        Ok(Self(USUAL.iter().map(|&origin| origin.to_owned()).chain(more.iter().cloned()).collect()))
    }

    /// Returns whether pages of this origin may connect.
    pub(super) fn allow(&self, origin: &str) -> bool {
        self.0.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Returns whether a browser could send this: scheme, host, perhaps a port, and nothing more.
fn is_origin(origin: &str) -> bool {
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    host.is_some_and(|host| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_origins_are_compared() {
        let origins = Origins::with(&["https://traces.example:8443".to_owned()]).unwrap();
        for origin in ["https://ui.perfetto.dev", "HTTPS://UI.perfetto.dev", "https://traces.example:8443"] {
            assert!(origins.allow(origin), "{origin}");
        }
        for origin in [
            "",
            "null",
            "*",
            "http://ui.perfetto.dev",
            "https://ui.perfetto.dev/",
            "https://ui.perfetto.dev:443",
            "https://ui.perfetto.dev.evil.example",
            "https://evil.example#https://ui.perfetto.dev",
            "https://traces.example",
            "http://localhost",
        ] {
            assert!(!origins.allow(origin), "{origin}");
        }
    }

    #[test]
    fn origins_that_no_browser_sends_are_refused() {
        for origin in
            ["", "*", "null", "ui.perfetto.dev", "https://", "https://a/", "https://a/b", "https://*.a", "a b"]
        {
            let error = Origins::with(&[origin.to_owned()]).unwrap_err().to_string();
            assert_eq!(error, format!("'{origin}' is not an origin such as https://ui.example.com"));
        }
    }
}
