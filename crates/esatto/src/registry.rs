//! The categories of the process and the configurations that switch them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use esatto_schema::TrackEventConfig;

use crate::category::Category;
use crate::control::{self, Command};
use crate::filter;
use crate::instance::MAX_INSTANCES;

#[derive(Debug)]
struct Registry {
    categories: Vec<&'static Category>,
    /// The configuration of each instance that records.
    configs: [Option<Arc<TrackEventConfig>>; MAX_INSTANCES],
    /// Counts additions, so that the advertised list can be renewed.
    version: u64,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { categories: Vec::new(), configs: [const { None }; MAX_INSTANCES], version: 0 });

/// Notified when categories were switched.
static CHANGED: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// Which instances record a category.
    fn instances(&self, category: &Category) -> u32 {
        let mut mask = 0;
        for (i, config) in self.configs.iter().enumerate() {
            if let Some(config) = config {
                mask |= u32::from(filter::enables(config, category.name(), category.tags())) << i;
            }
        }
        mask
    }

    fn evaluate(&self) {
        for category in &self.categories {
            category.set_instances(self.instances(category));
        }
        CHANGED.notify_all();
    }
}

/// Adds categories and evaluates them against the active configurations. Those that are known stay as they are.
pub(crate) fn register(categories: &[&'static Category]) {
    let mut registry = lock();
    let before = registry.version;
    for &category in categories {
        if !registry.categories.iter().any(|&known| core::ptr::eq(known, category)) {
            registry.categories.push(category);
            registry.version += 1;
        }
        category.set_instances(registry.instances(category));
    }
    let changed = registry.version != before;
    drop(registry);
    if let (true, Some(control)) = (changed, control::handle()) {
        control.send(Command::CategoriesChanged);
    }
}

/// Lets an instance record what its configuration enables.
pub(crate) fn enable(instance: usize, config: Arc<TrackEventConfig>) {
    let mut registry = lock();
    registry.configs[instance] = Some(config);
    registry.evaluate();
}

/// Ends the recording of an instance.
pub(crate) fn disable(instance: usize) {
    let mut registry = lock();
    if registry.configs[instance].take().is_some() {
        registry.evaluate();
    }
}

/// Number of changes of the list of categories so far.
pub(crate) fn version() -> u64 {
    lock().version
}

/// Calls `f` for each category, in the order of registration. `f` must not register categories.
pub(crate) fn for_each(mut f: impl FnMut(&'static Category)) {
    let categories = lock().categories.clone();
    for category in categories {
        f(category);
    }
}

/// Waits until `condition`, which depends on which categories are on, holds. `false`: not in time.
pub(crate) fn wait_until(timeout: Duration, condition: impl Fn() -> bool, category: &'static Category) -> bool {
    register(&[category]);
    let waited = CHANGED.wait_timeout_while(lock(), timeout, |_| !condition());
    !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
}
