//! Message with fields of all kinds, declared as in generated code.

use esatto_protozero as pz;

pz::message! {
    /// Writes a sample.
    writer SampleWriter;
    /// Reads a sample.
    reader SampleReader;
    decoder SampleDecoder;
    fields 1, 2, 3, 4, 5, 6, 7, 100, 999, 1000, 536870911;
}

impl<'a, I: pz::Lookup> SampleReader<'a, I> {
    pub(crate) fn id(&self) -> Option<u64> {
        self.0.last::<pz::kind::Uint64>(1)
    }

    pub(crate) fn ids(&self) -> pz::Repeated<'a, pz::kind::Uint64> {
        self.0.repeated(1)
    }

    pub(crate) fn numbers(&self) -> pz::Repeated<'a, pz::kind::Int32> {
        self.0.repeated(2)
    }

    pub(crate) fn offsets(&self) -> pz::Repeated<'a, pz::kind::Sint64> {
        self.0.repeated(3)
    }

    pub(crate) fn words(&self) -> pz::Repeated<'a, pz::kind::Fixed32> {
        self.0.repeated(4)
    }

    pub(crate) fn longs(&self) -> pz::Repeated<'a, pz::kind::Sfixed64> {
        self.0.repeated(5)
    }

    pub(crate) fn text(&self) -> Option<&'a [u8]> {
        self.0.last::<pz::kind::Bytes>(6)
    }

    pub(crate) fn child(&self) -> Option<SampleReader<'a>> {
        self.0.message(7)
    }

    pub(crate) fn children(&self) -> pz::Messages<'a, SampleReader<'a>> {
        self.0.messages(7)
    }

    pub(crate) fn hundred(&self) -> Option<f32> {
        self.0.last::<pz::kind::Float>(100)
    }

    pub(crate) fn hundreds(&self) -> pz::Repeated<'a, pz::kind::Uint32> {
        self.0.repeated(100)
    }

    pub(crate) fn last_with_a_slot(&self) -> Option<i32> {
        self.0.last::<pz::kind::Sint32>(999)
    }

    pub(crate) fn first_without(&self) -> Option<bool> {
        self.0.last::<pz::kind::Bool>(1000)
    }

    pub(crate) fn without(&self) -> pz::Repeated<'a, pz::kind::Bool> {
        self.0.repeated(1000)
    }

    pub(crate) fn farthest(&self) -> Option<f64> {
        self.0.last::<pz::kind::Double>(536_870_911)
    }

    /// Oneof of fields with a slot.
    pub(crate) fn choice(&self) -> Option<pz::Field<'a>> {
        self.0.last_of(&[1, 6, 100])
    }

    /// Oneof with a field without a slot.
    pub(crate) fn far_choice(&self) -> Option<pz::Field<'a>> {
        self.0.last_of(&[1, 536_870_911])
    }
}
