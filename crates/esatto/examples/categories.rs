//! Categories can be switched on and off: with tags, in groups, and with names that are known only
//! at run time.
//!
//! `cargo run -p esatto --example categories` shows what three sessions record.

use std::error::Error;

use esatto::schema::{DataSourceConfig, TraceConfig, TrackEventConfig, trace_config};
use esatto::{Backend, Category, Session, Tracing};

esatto::categories! {
    static NET = "net", "Connections and what goes over them";
    static NET_RAW = "net.raw", "Every single packet", tags: ["debug"];
    static DISK = "disk", tags: ["slow"];
    static IO = [NET, DISK];
}

fn config(enabled: &[&str], disabled: &[&str]) -> TraceConfig {
    let strings = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.into()).collect();
    let events = TrackEventConfig {
        enabled_categories: strings(enabled),
        disabled_categories: strings(disabled),
        ..Default::default()
    };
    let source = DataSourceConfig {
        name: Some("track_event".into()),
        track_event_config: Some(Box::new(events)),
        ..Default::default()
    };
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(1024), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(source)), ..Default::default() }],
        ..Default::default()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
    let plugin = Category::dynamic(&format!("plugin.{}", "sepia"));
    let sessions = [
        ("nothing said: all but slow and debug", config(&[], &[])),
        ("what begins with `net`", config(&["net*"], &["*"])),
        ("exactly `disk`, and plugins", config(&["disk", "plugin.*"], &["*"])),
    ];
    for (what, config) in sessions {
        let session = Session::start(Backend::InProcess, config)?;
        println!("{what}:");
        for category in [&NET, &NET_RAW, &DISK, &IO, plugin] {
            let name = if category.name().is_empty() { "net or disk" } else { category.name() };
            println!("  {name}: {}", category.is_enabled());
        }
        esatto::instant!(IO, "copied");
        esatto::instant!(category: plugin, "applied");
        session.stop()?;
    }
    Ok(())
}
