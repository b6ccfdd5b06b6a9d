//! Content-Security-Policies, and the index of the UI with our script in it.

/// Policy of the UI: nothing but this server. The UI compiles WebAssembly and expressions of its
/// charts; its index has a script of its own, which `NONCE` admits.
pub(super) const PAGE_POLICY: &str = "default-src 'none'; script-src 'self' 'nonce-NONCE' 'unsafe-eval'; worker-src \
                                      'self' blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
                                      font-src 'self' data:; connect-src 'self' blob: data:; media-src 'self' blob:; \
                                      frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";
/// Policy of a page that needs nothing else. Its own policy admits only the scripts and styles in
/// it by their hashes.
pub(super) const REPORT_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                                        frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// Policy of the trace, in case that it is opened as a page.
pub(super) const TRACE_POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// Returns the index of the UI with our script as its first one. All its scripts get the nonce.
///
/// `trace` needs no escape.
pub(super) fn with_our_script(index: &str, nonce: &str, trace: &str) -> String {
    let ours = format!("<script src=\"esatto/page.js\" data-trace=\"trace/{trace}\"></script>");
    let begin = end_of_tag(index, "<head").or_else(|| end_of_tag(index, "<html")).unwrap_or(0);
    let (before, after) = index.split_at(begin);
    let mut page = String::with_capacity(index.len() + 256);
    for part in [before, &ours, after] {
        with_nonce(part, nonce, &mut page);
    }
    page
}

/// Returns the place after the first tag that begins like this.
fn end_of_tag(index: &str, begin: &str) -> Option<usize> {
    let lower = index.to_ascii_lowercase();
    let mut from = 0;
    loop {
        let at = from + lower[from..].find(begin)? + begin.len();
        // Not <header>.
        if lower[at..].starts_with(|next: char| next == '>' || next.is_ascii_whitespace()) {
            return Some(at + lower[at..].find('>')? + 1);
        }
        from = at;
    }
}

/// Adds the nonce to all tags of scripts.
fn with_nonce(mut index: &str, nonce: &str, page: &mut String) {
    const TAG: &str = "<script";
    while let Some(at) = index.to_ascii_lowercase().find(TAG) {
        let (before, after) = index.split_at(at + TAG.len());
        page.push_str(before);
        if after.starts_with(|next: char| next == '>' || next.is_ascii_whitespace()) {
            page.extend([" nonce=\"", nonce, "\""]);
        }
        index = after;
    }
    page.push_str(index);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_script_comes_first_and_all_have_the_nonce() {
        let index = "<!doctype html><html><header></header><HEAD lang=x><script src=a></script><scripty>\
                     <SCRIPT>b</SCRIPT></HEAD></html>";
        let wanted = "<!doctype html><html><header></header><HEAD lang=x>\
                      <script nonce=\"N\" src=\"esatto/page.js\" data-trace=\"trace/t.pb\"></script>\
                      <script nonce=\"N\" src=a></script><scripty><SCRIPT nonce=\"N\">b</SCRIPT></HEAD></html>";
        assert_eq!(with_our_script(index, "N", "t.pb"), wanted);
        assert!(with_our_script("", "N", "t").starts_with("<script nonce=\"N\" src="));
        assert!(with_our_script("<html>x", "N", "t").starts_with("<html><script"));
        assert!(with_our_script("<head", "N", "t").starts_with("<script"));
    }

    #[test]
    fn no_policy_names_another_place() {
        for policy in [PAGE_POLICY, REPORT_POLICY, TRACE_POLICY] {
            assert!(policy.starts_with("default-src 'none';"), "{policy}");
            assert!(!policy.contains("http") && !policy.contains("ws:") && !policy.contains('*'), "{policy}");
        }
    }
}
