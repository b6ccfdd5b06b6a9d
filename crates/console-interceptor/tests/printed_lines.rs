//! The printed lines: row 38 of `docs/spec/client-library.md` §20.

use std::io::{Read, Seek};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use esatto::{Backend, Session, Tracing};

esatto::categories! {
    static APP = "app";
    static LONG = "longer than five";
}

static TRACING: LazyLock<Tracing> = LazyLock::new(|| Tracing::builder().in_process().start().expect("connects"));

/// Tests take turns, because there is one output.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    LazyLock::force(&TRACING);
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the printed text, without the times.
fn print(colors: bool, act: impl FnOnce() + Send) -> String {
    static OUTPUT: LazyLock<Mutex<std::fs::File>> = LazyLock::new(|| {
        let path = std::env::temp_dir().join(format!("esatto-console-{}", std::process::id()));
        let file =
            std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path).expect("opens");
        std::fs::remove_file(path).expect("can be removed");
        esatto_console::print_to(file.try_clone().expect("can be duplicated"));
        Mutex::new(file)
    });
    let mut output = OUTPUT.lock().unwrap();
    esatto_console::register().expect("may be called this");
    let mut config = esatto::track_events(64);
    let source = config.data_sources[0].config.as_mut().expect("is there");
    let interceptor = source.interceptor_config.get_or_insert_default();
    interceptor.name = Some("console".into());
    if colors {
        interceptor.console_config.get_or_insert_default().enable_colors = Some(true);
    }
    let begin = output.stream_position().expect("is a file");
    let session = Session::start(Backend::InProcess, config).expect("starts");
    std::thread::scope(|scope| {
        std::thread::Builder::new().name("worker".into()).spawn_scoped(scope, act).expect("starts");
    });
    session.stop().expect("stops");
    output.seek(std::io::SeekFrom::Start(begin)).expect("is a file");
    let mut text = String::new();
    output.read_to_string(&mut text).expect("is text");
    text
}

#[test]
fn case_38_the_console_shows_events() {
    let _turn = turn();
    let track = esatto::Track::with_name("a track with a long name", 1);
    let text = print(false, || {
        esatto::instant!(APP, "instant");
        {
            let _outer =
                esatto::slice!(APP, "outer", number = 7_u32, signed = -1, text = "hello", yes = true, real = 0.5);
            let _inner = esatto::slice!(LONG, dynamic: String::from("inner"));
            esatto::instant!(LONG, "deep", list = [1_u32, 2]);
            std::thread::sleep(std::time::Duration::from_millis(11));
        }
        esatto::begin!(APP, track: &track, "elsewhere");
        esatto::end!(APP, track: &track);
        esatto::end!(APP);
    });
    let expected = "\
worker            app   instant
worker            app   outer {(number:7, signed:-1, text:hello, yes:true, real:0.500000)
worker            longe -  inner {
worker            longe -  -  deep(list:[1, 2])
worker            longe -  } inner +Nms
worker            app   } outer +Nms
a track with a    app   elsewhere {
a track with a    app   } elsewhere
worker                  } 
";
    let mut shown = String::new();
    for line in text.lines() {
        let (time, rest) = line.split_at("[  0.000] ".len());
        assert!(time.starts_with("[  ") && time.ends_with("] "), "{line}");
        time["[".len()..time.len() - "] ".len()].trim().parse::<f64>().expect("is a time");
        match rest.split_once(" +") {
            Some((rest, duration)) => {
                let milliseconds: u32 = duration.trim_end_matches("ms").parse().expect("is a duration");
                assert!(milliseconds >= 10, "{line}");
                shown += &format!("{rest} +Nms\n");
            }
            None => shown += &format!("{rest}\n"),
        }
    }
    assert_eq!(shown, expected);
}

#[test]
fn colors_can_be_asked_for() {
    let _turn = turn();
    let text = print(true, || esatto::instant!(APP, "colored", number = 1_u32));
    let line = text.lines().next().expect("there is a line");
    assert!(line.starts_with("\x1b[90m["), "{line:?}");
    assert!(line.contains("\x1b[0m\x1b[90m worker          app   "), "{line:?}");
    assert!(line.ends_with(")\x1b[0m"), "{line:?}");
}

#[test]
fn texts_do_not_control_the_terminal() {
    let _turn = turn();
    let text = print(false, || {
        let track = esatto::Track::with_name("a\x1b[2Jb", 2);
        esatto::instant!(APP, track: &track, dynamic: String::from("red\x1b[31m\nfaked"), b = "x\r\u{9b}1mé");
    });
    let expected = "a\\u{1b}[2Jb       app   red\\u{1b}[31m\\nfaked(b:x\\r\\u{9b}1mé)\n";
    assert!(text.ends_with(expected), "{text:?}");
}
