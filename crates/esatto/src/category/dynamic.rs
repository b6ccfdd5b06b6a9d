//! Categories made at run time. They live as long as the process, so that trace points can keep
//! references.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use esatto_instances::Uncancelled;

use super::{Category, Form, MAX_GROUP};

/// The most categories that are made, because they are never freed.
pub(super) const MAX: usize = 4096;

/// The category that stands for those beyond [`MAX`].
static OTHER: Category = Category::with_form("esatto.other", Form::Dynamic);

/// Returns the category with this name and these tags, and makes it if there is none.
pub(super) fn find(name: &str, tags: &[&str]) -> &'static Category {
    let mut categories = lock();
    // A name with commas is a group. Its members are made first.
    if !name.contains(',') {
        return one(&mut categories, name, tags);
    }
    let key = Key::new(name, tags);
    if let Some(known) = categories.get(&key) {
        return known;
    }
    let members: Vec<_> =
        name.split(',').take(MAX_GROUP).map(|member| one(&mut categories, member.trim(), tags)).collect();
    insert(&mut categories, key, Category::group(members.leak()))
}

type Categories = HashMap<Key, &'static Category>;

fn lock() -> MutexGuard<'static, Categories> {
    static CATEGORIES: LazyLock<Mutex<Categories>> = LazyLock::new(|| {
        // The table asks the system for random bytes.
        let _uncancelled = Uncancelled::begin();
        Mutex::default()
    });
    CATEGORIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the categories while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    lock()
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: Box<str>,
    tags: Box<[Box<str>]>,
}

impl Key {
    fn new(name: &str, tags: &[&str]) -> Self {
        Self { name: name.into(), tags: tags.iter().map(|&tag| tag.into()).collect() }
    }
}

fn one(categories: &mut Categories, name: &str, tags: &[&str]) -> &'static Category {
    let key = Key::new(name, tags);
    if let Some(known) = categories.get(&key) {
        return known;
    }
    if categories.len() >= MAX {
        return &OTHER;
    }
    let leak = |text: &str| -> &'static str { String::from(text).leak() };
    let tags: Vec<_> = tags.iter().map(|tag| leak(tag)).collect();
    insert(categories, key, Category::with_form(leak(name), Form::Dynamic).with_tags(tags.leak()))
}

fn insert(categories: &mut Categories, key: Key, category: Category) -> &'static Category {
    if categories.len() >= MAX {
        return &OTHER;
    }
    let category: &'static Category = Box::leak(Box::new(category));
    categories.insert(key, category);
    category
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_category() {
        let category = find("dynamic::tests", &[]);
        assert!(core::ptr::eq(category, find("dynamic::tests", &[])));
        assert!(!core::ptr::eq(category, find("dynamic::tests", &["slow"])));
        assert_eq!((category.name(), category.is_dynamic()), ("dynamic::tests", true));
        let group = find("dynamic::tests,dynamic::other", &[]);
        assert!(group.is_group() && core::ptr::eq(group, find("dynamic::tests,dynamic::other", &[])));
        assert_eq!(group.members().map(Category::name).collect::<Vec<_>>(), ["dynamic::tests", "dynamic::other"]);
    }
}
