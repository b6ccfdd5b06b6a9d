//! The category that stands for all categories (`perfetto_te_any_categories`).

use esatto::raw::{self, Role, StaticMutex};

use super::category_impl::CategoryImpl;
use super::descriptor::Key;
use crate::data_symbols;

/// Returns the category. When this returns, its flag is right and it is published.
pub(super) fn any() -> &'static CategoryImpl {
    static ANY: StaticMutex<Option<&'static CategoryImpl>> = StaticMutex::new(None);
    let any = *ANY.lock().get_or_insert_with(|| CategoryImpl::make(Role::Any, Key::default()));
    // Also if another thread has made it, which may not have published it yet.
    if !data_symbols::is_any_category_published() {
        raw::register(any.category());
        data_symbols::publish_any_category(any.as_abi(), any.is_enabled());
    }
    any
}
