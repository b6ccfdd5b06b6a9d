//! The store of the answers. It is traced with Esatto's own attribute, which can draw on tracks and
//! counters.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use esatto::CounterTrack;
use tokio::sync::RwLock;

esatto::categories! {
    pub(crate) static STORE = "store", "Look-ups, and what waits for them";
}

static ENTRIES: CounterTrack = CounterTrack::new("entries of the cache");

/// A slow store with a cache in front.
#[derive(Clone, Default)]
pub(crate) struct Store {
    cache: Arc<RwLock<HashMap<u64, String>>>,
}

#[esatto::trace(STORE)]
impl Store {
    /// Returns the value of a number.
    #[esatto::trace(STORE, name = "Store::read", args(number, shard = number % 4))]
    pub(crate) async fn read(&self, number: u64) -> Option<String> {
        if let Some(value) = self.cache.read().await.get(&number) {
            esatto::instant!(STORE, "hit", number = number);
            return Some(value.clone());
        }
        // Both calls run at the same time; each has a lane.
        let (value, allowed) = tokio::join!(self.load(number), self.check(number));
        let mut cache = self.cache.write().await;
        cache.insert(number, value.clone());
        esatto::counter!(STORE, &ENTRIES, cache.len());
        allowed.then_some(value)
    }

    async fn load(&self, number: u64) -> String {
        tokio::time::sleep(Duration::from_millis(number % 12)).await;
        checksum(number).to_string()
    }

    async fn check(&self, number: u64) -> bool {
        tokio::time::sleep(Duration::from_millis(1)).await;
        number % 97 != 13
    }
}

/// Some work for the processor.
#[esatto::trace(STORE, args(seed), ret)]
fn checksum(seed: u64) -> u64 {
    (0..20_000).fold(seed, |sum: u64, number| sum.rotate_left(5) ^ number)
}
