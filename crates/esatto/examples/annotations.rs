//! Everything that an event can contain: values of all types, nested values, structs, texts made at
//! run time.
//!
//! `cargo run -p esatto --example annotations` writes `annotations.pftrace` for
//! <https://ui.perfetto.dev>.

use std::collections::BTreeMap;
use std::error::Error;

use esatto::{AnnotationWriter, Backend, DictWriter, Session, TraceArgs, Tracing, Value};

esatto::categories! { static SHOP = "shop"; }

struct Order {
    number: u64,
    items: Vec<&'static str>,
    paid: Option<f64>,
}

// `#[derive(TraceArgs)]` (feature `macros`) writes these two.
impl TraceArgs for Order {
    fn write_args(&self, out: &mut DictWriter<'_>) {
        out.add("number", self.number).add("items", &self.items).add("paid", self.paid);
    }
}

impl Value for Order {
    fn write(&self, out: AnnotationWriter<'_>) {
        self.write_args(&mut out.dict());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
    let session = Session::start(Backend::InProcess, esatto::track_events(1024))?;

    let stock = BTreeMap::from([("tea", 12), ("cups", 4)]);
    let order = Order { number: 17, items: vec!["tea", "cups"], paid: Some(9.5) };
    let buffer = [0_u8; 16];
    {
        let _slice = esatto::slice!(
            SHOP,
            "sell",
            till = 3,
            open = true,
            customer = "Ada",
            stock = &stock,
            buffer = buffer.as_ptr(),
            order = &order,
            "as text" = esatto::debug(&order.items),
        );
        esatto::instant!(
            SHOP,
            "printed",
            receipt = esatto::dict(|receipt| {
                receipt.add("lines", order.items.len());
                receipt.dict("sum").add("net", 8.0).add("tax", 1.5);
                receipt.list("codes").push(4711).push("A-1");
            })
        );
        // Each part of a struct as an annotation; and a text that repeats, written once.
        esatto::instant!(SHOP, "packed", by = esatto::interned("Grace"), |event| event.args(&order));
    }

    std::fs::write("annotations.pftrace", session.stop()?)?;
    Ok(())
}
