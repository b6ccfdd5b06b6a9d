//! The trace filter of a session: an allow-list of fields for every packet that is read
//! (`docs/spec/service.md §21`).
//!
//! The feature `regex` contains the interpreter and the regular expressions of the string rules.
//! Without it the type has no values, so that reading needs no other code.

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

    /// Steps of the string rules that cost one unit of work.
    const STEPS_PER_WORK: u64 = 16;

    /// Field `packet` of `Trace`, with which the bytecode begins.
    const TRACE_PACKET: u32 = 1;

    /// Bytes of memory that the filter keeps between packets. It frees the memory of a longer
    /// packet.
    const MAX_KEPT_BYTES: usize = 256 * 1024;

    /// A loaded filter and its counters.
    #[derive(Debug)]
    pub(crate) struct TraceFilter {
        filter: Filter,
        counts: Counts,
        input: Vec<u8>,
        output: Vec<u8>,
    }

    /// Counters for [`FilterStats`].
    #[derive(Debug, Default)]
    struct Counts {
        input_packets: u64,
        input_bytes: u64,
        output_bytes: u64,
        errors: u64,
        bytes_discarded_per_buffer: Vec<u64>,
    }

    impl TraceFilter {
        /// Loads the filter of a config.
        ///
        /// # Errors
        ///
        /// A text for the consumer. The service never records an unfiltered trace because its
        /// filter is invalid.
        pub(crate) fn load(config: &Config, quota: &Quota) -> Result<Self, String> {
            let some = |bytes: &Option<Vec<u8>>| bytes.as_deref().unwrap_or_default().to_vec();
            let (old, new) = (some(&config.bytecode), some(&config.bytecode_v2));
            let (name, bytecode) = if new.is_empty() { ("bytecode", old) } else { ("bytecode_v2", new) };
            let program = Program::load_with_overlay(&bytecode, &some(&config.bytecode_overlay_v54));
            let program = program.map_err(|error| format!("trace_filter.{name}: {error}"))?;
            let filter = Filter::new(program).with_root(&[TRACE_PACKET]);
            let filter = filter
                .map_err(|error| format!("trace_filter.{name} has no nested message for Trace.packet: {error}"))?;
            Ok(Self::of(filter.with_strings(strings(config, quota)?)))
        }

        fn of(filter: Filter) -> Self {
            Self { filter, counts: Counts::default(), input: Vec::new(), output: Vec::new() }
        }

        /// Filters a packet, which comes from the session's buffer of this index or from the
        /// service. Returns an empty packet if it cannot be filtered.
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
            // The filter overwrites strings that cost too much. The packet then counts as one with
            // an error.
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

        /// Returns the work of the string rules so far, in units of
        /// [`Service::work`](crate::Service::work).
        pub(crate) fn work(&self) -> u64 {
            self.filter.steps() / STEPS_PER_WORK
        }

        /// Counts a packet that leaves unchanged.
        pub(crate) fn pass(&mut self, bytes: usize) {
            self.count(bytes as u64, bytes as u64);
        }

        fn count(&mut self, input_bytes: u64, output_bytes: u64) {
            self.counts.input_packets += 1;
            self.counts.input_bytes += input_bytes;
            self.counts.output_bytes += output_bytes;
        }

        /// Returns the statistics so far, without times, because there is no clock here.
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

    /// Creates the filter of a clone, with its counters at 0.
    impl Clone for TraceFilter {
        fn clone(&self) -> Self {
            Self::of(self.filter.clone())
        }
    }

    /// Loads the rules of both chains. A rule of the second chain replaces a rule of the same name.
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

    #[expect(clippy::cast_sign_loss, reason = "a negative number becomes an unknown one")]
    fn rule(config: &StringFilterRule, quota: &Quota) -> Result<Rule, Error> {
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

    /// A type without values, because no filter is built in.
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
