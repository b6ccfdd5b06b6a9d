//! The filter of a session: an allow-list that every packet passes on its way out (`docs/spec/service.md §21`).
//!
//! Its interpreter and the regular expressions of its string rules come with the feature `regex`. Without it there is a type
//! that has no values, so that what reads a session is the same in both cases.

#[cfg(feature = "regex")]
pub(crate) use loaded::TraceFilter;
#[cfg(not(feature = "regex"))]
pub(crate) use missing::TraceFilter;

#[cfg(feature = "regex")]
mod loaded {
    use esatto_filter::{Error, Filter, Policy, Program, Rule, SemanticTypes, StringFilter};
    use esatto_schema::trace_config::TraceFilter as Config;
    use esatto_schema::trace_config::trace_filter::StringFilterRule;
    use esatto_schema::trace_stats::FilterStats;

    use crate::name_pattern::Quota;

    /// Steps of the string rules that count as one entry visited.
    const STEPS_PER_WORK: u64 = 16;

    /// Field `packet` of `Trace`, with which the bytecode begins.
    const TRACE_PACKET: u32 = 1;

    /// Bytes that are kept between packets; a longer packet takes its memory with it.
    const MAX_KEPT_BYTES: usize = 256 * 1024;

    /// A loaded filter, and what it did.
    #[derive(Debug)]
    pub(crate) struct TraceFilter {
        filter: Filter,
        counts: Counts,
        input: Vec<u8>,
        output: Vec<u8>,
    }

    /// What [`FilterStats`] tells.
    #[derive(Debug, Default)]
    struct Counts {
        input_packets: u64,
        input_bytes: u64,
        output_bytes: u64,
        errors: u64,
        bytes_discarded_per_buffer: Vec<u64>,
    }

    impl TraceFilter {
        /// Loads what a config says.
        ///
        /// # Errors
        ///
        /// A text for the consumer: a trace is never recorded unfiltered because its filter is bad.
        pub(crate) fn load(config: &Config, quota: &Quota) -> Result<Self, String> {
            let some = |bytes: &Option<Vec<u8>>| bytes.as_deref().unwrap_or_default().to_vec();
            let (old, new) = (some(&config.bytecode), some(&config.bytecode_v2));
            let (name, bytecode) = if new.is_empty() { ("bytecode", old) } else { ("bytecode_v2", new) };
            let program = Program::load_with_overlay(&bytecode, &some(&config.bytecode_overlay_v54));
            let program = program.map_err(|error| format!("trace_filter.{name}: {error}"))?;
            let filter = Filter::new(program).with_root(&[TRACE_PACKET]);
            let filter =
                filter.map_err(|error| format!("trace_filter.{name} says nothing of Trace.packet: {error}"))?;
            Ok(Self::of(filter.with_strings(strings(config, quota)?)))
        }

        fn of(filter: Filter) -> Self {
            Self { filter, counts: Counts::default(), input: Vec::new(), output: Vec::new() }
        }

        /// What is left of a packet, which came from the session's buffer of this index or from the service. Nothing, if it cannot
        /// be filtered.
        pub(crate) fn apply<'a>(
            &mut self,
            buffer: Option<usize>,
            slices: impl Iterator<Item = &'a [u8]>,
            trailer: &[u8],
        ) -> &[u8] {
            self.input.clear();
            slices.for_each(|slice| self.input.extend_from_slice(slice));
            self.input.extend_from_slice(trailer);
            self.output.shrink_to(MAX_KEPT_BYTES);
            let given_up = self.filter.strings_given_up();
            let result = self.filter.filter(&[&self.input], &mut self.output);
            let (input_bytes, output_bytes) = (self.input.len() as u64, self.output.len() as u64);
            self.input.shrink_to(MAX_KEPT_BYTES);
            self.count(input_bytes, output_bytes);
            // Strings that cost too much are overwritten: the packet goes out, and counts as one
            // with an error.
            self.counts.errors += u64::from(result.is_err() || self.filter.strings_given_up() > given_up);
            if result.is_err() {
                return &[];
            }
            if let Some(buffer) = buffer {
                let discarded = &mut self.counts.bytes_discarded_per_buffer;
                if discarded.len() <= buffer {
                    discarded.resize(buffer + 1, 0);
                }
                discarded[buffer] += input_bytes - output_bytes;
            }
            &self.output
        }

        /// What the string rules have cost so far, as [`Service::work`](crate::Service::work) counts.
        pub(crate) fn work(&self) -> u64 {
            self.filter.steps() / STEPS_PER_WORK
        }

        /// Counts a packet that goes out as it is.
        pub(crate) fn pass(&mut self, bytes: usize) {
            self.count(bytes as u64, bytes as u64);
        }

        fn count(&mut self, input_bytes: u64, output_bytes: u64) {
            self.counts.input_packets += 1;
            self.counts.input_bytes += input_bytes;
            self.counts.output_bytes += output_bytes;
        }

        /// What it did so far. Not how long it took: there is no clock here.
        pub(crate) fn stats(&self) -> FilterStats {
            FilterStats {
                input_packets: Some(self.counts.input_packets),
                input_bytes: Some(self.counts.input_bytes),
                output_bytes: Some(self.counts.output_bytes),
                errors: Some(self.counts.errors),
                bytes_discarded_per_buffer: self.counts.bytes_discarded_per_buffer.clone(),
                ..FilterStats::default()
            }
        }
    }

    /// The filter of a clone, which has done nothing yet.
    impl Clone for TraceFilter {
        fn clone(&self) -> Self {
            Self::of(self.filter.clone())
        }
    }

    /// The rules of both chains; those of the second replace ones of the same name.
    fn strings(config: &Config, quota: &Quota) -> Result<StringFilter, String> {
        let chains = [
            ("string_filter_chain", &config.string_filter_chain),
            ("string_filter_chain_v54", &config.string_filter_chain_v54),
        ];
        let mut strings = StringFilter::new();
        for (name, chain) in chains {
            let rules = chain.as_ref().map_or(&[][..], |chain| &chain.rules);
            for (i, config) in rules.iter().enumerate() {
                let added = rule(config, quota).and_then(|rule| strings.add(rule));
                added.map_err(|error| format!("trace_filter.{name}.rules[{i}]: {error}"))?;
            }
        }
        Ok(strings)
    }

    fn rule(config: &StringFilterRule, quota: &Quota) -> Result<Rule, Error> {
        // A number below 0 is one beyond those that are known.
        let policy = Policy::from_number(config.policy.map_or(0, |policy| policy.0 as u32))?;
        let types = SemanticTypes::from_numbers(config.semantic_type.iter().map(|number| number.0 as u32))?;
        let rule = Rule::new(&quota.patterns, policy, config.regex_pattern.as_deref().unwrap_or_default())?;
        let prefix = config.atrace_payload_starts_with.as_deref().unwrap_or_default();
        let name = config.name.as_deref().unwrap_or_default();
        Ok(rule.atrace_payload_starts_with(prefix).name(name).semantic_types(types))
    }
}

#[cfg(not(feature = "regex"))]
mod missing {
    use esatto_schema::trace_config::TraceFilter as Config;
    use esatto_schema::trace_stats::FilterStats;

    /// There is none.
    #[derive(Clone, Debug)]
    pub(crate) enum TraceFilter {}

    impl TraceFilter {
        pub(crate) fn load(_: &Config, _: &crate::name_pattern::Quota) -> Result<Self, String> {
            Err("trace_filter is not supported by this service (it was built without `regex`)".to_owned())
        }

        pub(crate) fn apply<'a>(&mut self, _: Option<usize>, _: impl Iterator<Item = &'a [u8]>, _: &[u8]) -> &[u8] {
            match *self {}
        }

        pub(crate) fn pass(&mut self, _: usize) {
            match *self {}
        }

        pub(crate) fn work(&self) -> u64 {
            match *self {}
        }

        pub(crate) fn stats(&self) -> FilterStats {
            match *self {}
        }
    }
}
