//! The index: it asks the store for the articles that contain a word.

use std::path::PathBuf;
use std::thread;

use esatto_ipc::server::{Context, Server};
use esatto_ipc::{Address, CallError, Channel, Code, Listener, Status};

use crate::protos::shop::{Articles, Query, index, store};
use crate::{APP, Outcome, PATIENCE, serve_until_told};

struct Index {
    store: store::Client,
}

impl index::Server for Index {
    async fn find(&self, _: &Context, query: Query) -> Result<Articles, Status> {
        let unavailable = |error: CallError| Status::new(Code::Unavailable, error.to_string());
        let mut articles = Articles::default();
        for article in self.store.scan(&query) {
            articles.articles.push(article.map_err(unavailable)?);
        }
        {
            let _rank = esatto::slice!(APP, "rank");
            articles.articles.sort_by(|one, other| one.text.cmp(&other.text));
        }
        if let Some(best) = articles.articles.first_mut() {
            let name = Query { word: best.name.clone(), ..Query::default() };
            *best = self.store.read(&name).timeout(PATIENCE).wait().map_err(unavailable)?;
            self.store.count(&name).send().map_err(unavailable)?;
        }
        Ok(articles)
    }
}

pub(crate) fn run(folder: PathBuf) -> Outcome {
    let channel = Channel::connect(&Address::Path(folder.join("store")), PATIENCE)?;
    let server = Server::new(index::ServeAsync::new(Index { store: store::Client::new(&channel) }));
    let listener = Listener::bind(&Address::Path(folder.join("index")))?;
    thread::spawn(move || server.serve_blocking(&listener).map_err(|error| eprintln!("{error}")));
    serve_until_told()
}
