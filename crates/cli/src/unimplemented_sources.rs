//! Data sources that only programs of Perfetto offer.

/// Data sources that Esatto does not implement, and the program of Perfetto that offers each on
/// Linux, also to Esatto's service.
const OF_PERFETTO: [(&str, &str); 2] = [("android.heapprofd", "heapprofd"), ("linux.perf", "traced_perf")];

/// Tells that Esatto does not implement a data source, and which program offers it. `None` if that
/// is not so.
pub(crate) fn not_implemented(name: &str) -> Option<String> {
    let (_, program) = OF_PERFETTO.iter().find(|(source, _)| *source == name)?;
    Some(format!("not implemented in Esatto; Perfetto's {program} offers it, also to Esatto's service"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_data_sources_are_implemented_or_unknown() {
        assert!(not_implemented("linux.perf").is_some_and(|why| why.contains("traced_perf")));
        assert_eq!((not_implemented("linux.ftrace"), not_implemented("linux.per")), (None, None));
    }
}
