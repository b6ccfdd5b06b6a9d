//! The front end: clicks.

use std::path::PathBuf;

use esatto_ipc::{Address, Channel};

use crate::grpc::Orders;
use crate::protos::shop::{Order, Query, index};
use crate::{APP, Outcome, PATIENCE};

pub(crate) fn run(folder: PathBuf) -> Outcome {
    println!("ready");
    let channel = Channel::connect(&Address::Path(folder.join("index")), PATIENCE)?;
    let index = index::Client::new(&channel);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut orders = runtime.block_on(Orders::connect(folder.join("orders")))?;
    for word in ["tea", "coffee", "milk"] {
        let _click = esatto::slice!(APP, "click", word);
        let query = Query { word: Some(word.into()), ..Query::default() };
        let found = index.find(&query).timeout(PATIENCE).wait()?;
        if let Some(article) = found.articles.first() {
            let _order = esatto::slice!(APP, "order");
            let order = Order { article: article.name.clone(), ..Order::default() };
            runtime.block_on(orders.place(&order))?;
        }
    }
    Ok(())
}
