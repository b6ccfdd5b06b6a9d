//! Programs on the C library record nothing if a config names no categories. So all configs that
//! the documentation shows name some.

use esatto_protozero::Owned as _;
use esatto_schema::TraceConfig;
use std::fs;
use std::path::{Path, PathBuf};

/// All Markdown files of the repository that show configs to users.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md")];
    let mut folders: Vec<PathBuf> = ["docs", "packaging", "examples", "crates"].map(|name| root.join(name)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            // The specification also shows what is wrong.
            if entry.is_dir() && !entry.ends_with("docs/spec") {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "md") {
                pages.push(entry);
            }
        }
    }
    pages
}

/// The fenced blocks of a page that are configs with track events.
fn configs(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    blocks.map(|(_, block)| block).filter(|block| block.contains("data_sources {") && block.contains("\"track_event\""))
}

#[test]
fn in_all_pages() {
    let pool = prost_reflect::DescriptorPool::decode(esatto_schema::FILE_DESCRIPTOR_SET).expect("our own schema");
    let message = pool.get_message_by_name("perfetto.protos.TraceConfig").expect("a message of it");
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("text");
        for block in configs(&text) {
            count += 1;
            let place = format!("{}:\n{block}", page.display());
            let encoded =
                esatto_text_format::parse(&message, block).unwrap_or_else(|error| panic!("{error} in {place}"));
            let config = TraceConfig::decode(&encoded).expect("a config");
            for source in config.data_sources.iter().filter_map(|source| source.config.as_deref()) {
                let names_some = source.track_event_config.as_deref().is_some_and(|c| !c.enabled_categories.is_empty());
                assert!(names_some || source.name.as_deref() != Some(b"track_event"), "no categories in {place}");
            }
        }
    }
    assert!(count >= 4, "the pages have only {count} configs");
}
