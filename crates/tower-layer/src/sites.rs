//! Trace points of calls, and the names that calls get in the trace.

use core::hash::BuildHasher;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::hash::RandomState;
use std::sync::OnceLock;

use esatto::{Category, Kind, Name, Site};

use crate::append_list::AppendList;

/// The most names of a category that are kept and written once per thread. They are never freed.
/// Other names are written in full with each call.
const MAX_METHODS: usize = 1024;

/// The longest name of a call, in bytes. A longer route is cut off.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// Number of lists in the table of names.
const LISTS: usize = 128;

static BEGIN: [Name; 1] = [Name::new("role")];
static MESSAGE: [Name; 2] = [Name::new("number"), Name::new("bytes")];
static END: [Name; 1] = [Name::new("status")];
static END_SENT: [Name; 2] = [Name::new("status"), Name::new("messages_sent")];
static END_RECEIVED: [Name; 2] = [Name::new("status"), Name::new("messages_received")];
static END_BOTH: [Name; 3] = [Name::new("status"), Name::new("messages_sent"), Name::new("messages_received")];
static END_HTTP: [Name; 2] = [Name::new("status"), Name::new("http_status")];

/// The trace points of one category.
#[derive(Debug)]
pub(crate) struct Sites {
    pub(crate) category: &'static Category,
    /// Calls whose name is passed with the event.
    unnamed: Begin,
    pub(crate) reply: Site,
    pub(crate) sent: Site,
    pub(crate) received: Site,
    pub(crate) end: Site,
    pub(crate) end_sent: Site,
    pub(crate) end_received: Site,
    pub(crate) end_both: Site,
    pub(crate) end_http: Site,
    methods: Methods,
}

/// The trace points with which a call begins.
#[derive(Debug)]
pub(crate) struct Begin {
    /// A slice for the whole call.
    pub(crate) slice: Site,
    /// An instant in its place.
    pub(crate) instant: Site,
}

impl Begin {
    fn new(category: &'static Category, name: Option<&'static str>) -> Self {
        Self {
            slice: Site::new(category, Kind::SliceBegin, name, &BEGIN),
            instant: Site::new(category, Kind::Instant, name, &BEGIN),
        }
    }
}

impl Sites {
    /// Returns the trace points of a category, the same ones for each call. They are never freed.
    pub(crate) fn of(category: &'static Category) -> &'static Self {
        static ALL: AppendList<Sites> = AppendList::new();
        ALL.find_or_add(|sites| core::ptr::eq(sites.category, category), || Self::new(category))
    }

    fn new(category: &'static Category) -> Self {
        let instant = |name, arguments| Site::new(category, Kind::Instant, Some(name), arguments);
        let end = |arguments| Site::new(category, Kind::SliceEnd, None, arguments);
        Self {
            category,
            unnamed: Begin::new(category, None),
            reply: instant("reply", &[]),
            sent: instant("message sent", &MESSAGE),
            received: instant("message received", &MESSAGE),
            end: end(&END),
            end_sent: end(&END_SENT),
            end_received: end(&END_RECEIVED),
            end_both: end(&END_BOTH),
            end_http: end(&END_HTTP),
            methods: Methods::new(),
        }
    }

    /// Returns the trace points with which a call begins. `Err`: those for the name in full.
    pub(crate) fn begin(&'static self, name: &str) -> Result<&'static Begin, &'static Begin> {
        self.methods.find(name).ok_or(&self.unnamed)
    }

    /// Keeps the name of a call that has succeeded. A stranger can invent names, but calls of
    /// methods that do not exist fail.
    pub(crate) fn learn(&'static self, name: &str) {
        self.methods.learn(name, self.category);
    }
}

/// The names that are known.
#[derive(Debug)]
struct Methods {
    lists: [AppendList<Method>; LISTS],
    count: AtomicUsize,
}

#[derive(Debug)]
struct Method {
    name: &'static str,
    begin: Begin,
}

impl Methods {
    const fn new() -> Self {
        Self { lists: [const { AppendList::new() }; LISTS], count: AtomicUsize::new(0) }
    }

    fn find(&self, name: &str) -> Option<&'static Begin> {
        self.list(name).find(|method| method.name == name).map(|method| &method.begin)
    }

    fn learn(&self, name: &str, category: &'static Category) {
        let one_more = |count: usize| (count < MAX_METHODS).then_some(count + 1);
        if self.find(name).is_some() || self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err()
        {
            return;
        }
        let method = || {
            let name: &'static str = String::from(name).leak();
            Method { name, begin: Begin::new(category, Some(name)) }
        };
        self.list(name).find_or_add(|method| method.name == name, method);
    }

    /// Strangers choose names, so they must not know which ones share a list.
    fn list(&self, name: &str) -> &AppendList<Method> {
        static KEYS: OnceLock<RandomState> = OnceLock::new();
        &self.lists[KEYS.get_or_init(RandomState::new).hash_one(name) as usize % LISTS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static CATEGORY: Category = Category::new("sites");
    static FULL: Category = Category::new("sites.full");

    #[test]
    fn a_category_has_one_set_of_sites() {
        assert!(core::ptr::eq(Sites::of(&CATEGORY), Sites::of(&CATEGORY)));
        assert!(!core::ptr::eq(Sites::of(&CATEGORY), Sites::of(&FULL)));
    }

    #[test]
    fn a_learnt_name_is_a_site_of_its_own() {
        let sites = Sites::of(&CATEGORY);
        let unnamed = sites.begin("shop.Shop/Buy").expect_err("is unknown");
        assert_eq!(unnamed.slice.name(), None);
        sites.learn("shop.Shop/Buy");
        let begin = sites.begin("shop.Shop/Buy").expect("is known");
        assert_eq!((begin.slice.name(), begin.instant.name()), (Some("shop.Shop/Buy"), Some("shop.Shop/Buy")));
        sites.learn("shop.Shop/Buy");
        assert!(core::ptr::eq(begin, sites.begin("shop.Shop/Buy").expect("is known")));
    }

    #[test]
    fn names_that_strangers_invent_are_bounded() {
        let sites = Sites::of(&FULL);
        for number in 0..2 * MAX_METHODS {
            sites.learn(&format!("method {number}"));
        }
        assert!(sites.begin("method 0").is_ok());
        assert!(sites.begin(&format!("method {}", MAX_METHODS - 1)).is_ok());
        assert!(sites.begin(&format!("method {MAX_METHODS}")).is_err());
    }
}
