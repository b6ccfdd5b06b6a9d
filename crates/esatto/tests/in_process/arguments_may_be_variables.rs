use esatto_trace::AnnotationValue;

use super::{read, record};

esatto::categories! { static SHORT = "short"; }

static COUNTER: esatto::CounterTrack = esatto::CounterTrack::new("counter");

#[derive(Debug)]
struct Job {
    id: u32,
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "job {}", self.id)
    }
}

fn annotations(event: &esatto_trace::Event) -> Vec<String> {
    let show = |value: &AnnotationValue| match value {
        AnnotationValue::String(text) => text.clone(),
        AnnotationValue::Uint(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    event.annotations.iter().map(|a| format!("{}={}", a.name, show(&a.value))).collect()
}

#[test]
fn a_variable_is_recorded_under_its_name() {
    let (name, job, number) = ("a name", Job { id: 7 }, 3_u32);
    let session = record(&SHORT);
    esatto::instant!(SHORT, "instant", name, ?job, %job, job.id, ?job.id);
    esatto::instant!(SHORT, "instant", a = ?job, "b c" = %job, number, user.id = 4_u32,);
    esatto::counter!(SHORT, &COUNTER, 1, number, %name);
    drop(esatto::slice!(SHORT, "slice", number, |event| event.annotate("more", 1_u32)));
    drop(esatto::async_slice!(SHORT, "async", %job));
    // Words of other arguments are also names of variables.
    let (flow, at, track) = (1_u32, 2_u32, 3_u32);
    esatto::instant!(SHORT, "words", flow, at, ?track, flow: esatto::Flow::process(1));
    let trace = read(session);
    let recorded: Vec<_> = trace.events.iter().map(annotations).filter(|found| !found.is_empty()).collect();
    assert_eq!(
        recorded,
        [
            &["name=a name", "job=Job { id: 7 }", "job=job 7", "job.id=7", "job.id=7"][..],
            &["a=Job { id: 7 }", "b c=job 7", "number=3", "user.id=4"],
            &["number=3", "name=a name"],
            &["number=3", "more=1"],
            &["job=job 7"],
            &["flow=1", "at=2", "track=3"],
        ]
    );
}

#[test]
fn raw_identifiers_are_recorded_without_their_prefix() {
    struct Token {
        r#type: u32,
        r: Place,
    }
    struct Place {
        r#in: u32,
    }
    let (r#type, token) = (1_u32, Token { r#type: 2, r: Place { r#in: 3 } });
    let session = record(&SHORT);
    esatto::instant!(SHORT, "raw", r#type, ?r#type, r#fn = 4_u32, r = 5_u32, "r#plain" = 6_u32);
    esatto::instant!(SHORT, "raw", token.r#type, %token.r.r#in, r#a.r#b = 7_u32);
    let trace = read(session);
    let recorded: Vec<_> = trace.events.iter().map(annotations).filter(|found| !found.is_empty()).collect();
    assert_eq!(
        recorded,
        [&["type=1", "type=1", "fn=4", "r=5", "r#plain=6"][..], &["token.type=2", "token.r.in=3", "a.b=7"]]
    );
}
