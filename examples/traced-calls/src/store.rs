//! The store: articles as files, and orders.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;

use esatto_ipc::server::{Context, Replies, Server};
use esatto_ipc::{Address, Code, Listener, Status};

use crate::protos::shop::{Article, Order, Query, store};
use crate::{DISK, Outcome, grpc, serve_until_told, text_of};

const ARTICLES: [(&str, &str); 4] = [
    ("green tea", "tea from Uji"),
    ("black tea", "tea from Assam, good with milk"),
    ("coffee", "coffee from Jimma"),
    ("milk", "milk of oats"),
];

struct Store {
    articles: PathBuf,
}

impl store::Server for Store {
    async fn read(&self, _: &Context, query: Query) -> Result<Article, Status> {
        let name = text_of(query.word);
        if !ARTICLES.iter().any(|(known, _)| *known == name) {
            return Err(Status::new(Code::NotFound, format!("no article {name:?}")));
        }
        self.read_file(&name).map_err(|error| failed(&error))
    }

    async fn scan(&self, _: &Context, query: Query, mut replies: Replies<Article>) -> Result<(), Status> {
        let word = text_of(query.word);
        for (name, _) in ARTICLES {
            let article = self.read_file(name).map_err(|error| failed(&error))?;
            if article.text.as_ref().is_some_and(|text| text.to_str_lossy().contains(&word)) {
                replies.send(&article).await?;
            }
        }
        Ok(())
    }

    async fn count(&self, _: &Context, query: Query) {
        let file = self.articles.join("hits");
        if let Err(error) = append(&file, "count hit", &text_of(query.word)) {
            eprintln!("cannot count a hit in {}: {error}", file.display());
        }
    }
}

impl Store {
    fn read_file(&self, name: &str) -> io::Result<Article> {
        let _read = esatto::slice!(DISK, "read file", name);
        let mut text = String::new();
        File::open(self.articles.join(name))?.read_to_string(&mut text)?;
        Ok(Article { name: Some(name.into()), text: Some(text.into()), ..Article::default() })
    }
}

/// Appends a line to a file on disk.
fn append(file: &Path, reason: &'static str, line: &str) -> io::Result<()> {
    let _write = esatto::slice!(DISK, "write file", reason);
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

fn failed(error: &io::Error) -> Status {
    Status::new(Code::Internal, error.to_string())
}

pub(crate) fn run(folder: PathBuf) -> Outcome {
    let articles = folder.join("articles");
    fs::create_dir(&articles)?;
    for (name, text) in ARTICLES {
        fs::write(articles.join(name), text)?;
    }
    let orders = articles.join("orders");
    let server = Server::new(store::ServeAsync::new(Store { articles }));
    let listener = Listener::bind(&Address::Path(folder.join("store")))?;
    thread::spawn(move || server.serve_blocking(&listener).map_err(|error| eprintln!("{error}")));

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let place = move |order: Order| append(&orders, "order", &text_of(order.article));
    let socket = folder.join("orders");
    runtime.spawn(async move {
        if let Err(error) = grpc::serve(&socket, place).await {
            eprintln!("cannot serve orders: {error}");
        }
    });
    let outcome = serve_until_told();
    runtime.shutdown_background();
    outcome
}
