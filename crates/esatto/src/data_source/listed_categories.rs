//! The categories in the descriptor of track events, for programs that show them.
//!
//! A service ends the connection of a program whose message is too long. So a program with very
//! many categories lists them without descriptions, or not all of them. Configs choose from all
//! categories nevertheless, because programs compare the names themselves.

use esatto_schema::TrackEventCategory;

use super::MAX_DESCRIPTOR_BYTES;
use crate::category::{Category, registry};
use crate::diagnostics;

/// Bytes of the descriptor beside the categories.
const OTHER_BYTES: usize = 256;
/// Bytes of a category, and of each of its texts, beside the text itself.
const OVERHEAD: usize = 6;

/// Returns the categories of the program, as far as a descriptor has room for them.
pub(super) fn listed() -> Vec<TrackEventCategory> {
    let mut categories: Vec<&'static Category> = Vec::new();
    registry::for_each(|category| categories.push(category));
    let (number, has_descriptions) = fitting(&categories, MAX_DESCRIPTOR_BYTES - OTHER_BYTES);
    if !has_descriptions {
        // A text without numbers: a program that registers more categories says it once.
        let which = if number == categories.len() { "all" } else { "only some" };
        diagnostics::say_once(format!(
            "the categories need more than the {MAX_DESCRIPTOR_BYTES} bytes that a service takes: {which} are listed, \
             without descriptions. All are recorded nevertheless"
        ));
    }
    let text = |text: &'static str| (!text.is_empty() && has_descriptions).then(|| text.into());
    let listed = categories.iter().take(number).map(|category| TrackEventCategory {
        name: Some(category.name().into()),
        description: text(category.description()),
        tags: category.tags().iter().map(|&tag| tag.into()).collect(),
        ..Default::default()
    });
    listed.collect()
}

/// Returns how many categories fit into so many bytes, and whether they do with their descriptions.
fn fitting(categories: &[&'static Category], bytes: usize) -> (usize, bool) {
    let size = |category: &Category, with_description: bool| {
        let tags: usize = category.tags().iter().map(|tag| tag.len() + OVERHEAD).sum();
        let description = if with_description { category.description().len() + OVERHEAD } else { 0 };
        category.name().len() + 2 * OVERHEAD + tags + description
    };
    let count = |with_description: bool| {
        let mut left = bytes;
        let fits = |category: &&&'static Category| {
            let rest = left.checked_sub(size(category, with_description));
            rest.inspect(|rest| left = *rest).is_some()
        };
        categories.iter().take_while(fits).count()
    };
    match count(true) {
        all if all == categories.len() => (all, true),
        _ => (count(false), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_left_out_before_categories() {
        static LONG: Category = Category::new("a name").with_description("a description that is longer than the name");
        static SHORT: Category = Category::new("b").with_tags(&["slow", "debug"]);
        let categories = [&LONG, &SHORT, &LONG];
        let fitting = |bytes| fitting(&categories, bytes);
        assert_eq!(fitting(10_000), (3, true));
        // Names, tags and descriptions have 6 + 42, 1 + 9 and 6 + 42 bytes.
        assert_eq!(fitting(66 + 40 + 66), (3, true));
        assert_eq!(fitting(66 + 40 + 65), (3, false));
        assert_eq!(fitting(18 + 34 + 18), (3, false));
        assert_eq!(fitting(18 + 34 + 17), (2, false));
        assert_eq!(fitting(17), (0, false));
    }
}
