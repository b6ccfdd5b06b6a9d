//! Random values, extremes more often than not.

use crate::Pair;
use crate::rng::Rng;

/// Messages in one value, at most; how deep they nest follows.
const MAX_MESSAGES: u32 = 60;
/// Elements of a repeated field or a map, at most.
const MAX_ELEMENTS: usize = 5;

/// Makes up the parts of one value.
#[derive(Clone, Debug)]
pub struct Random {
    rng: Rng,
    messages: u32,
}

impl Random {
    /// The value of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed), messages: MAX_MESSAGES }
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.rng.below(n)
    }

    /// A value, or none.
    pub fn optional<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (!self.rng.one_in(3)).then(|| make(self))
    }

    /// A few values, or none at all.
    pub fn many<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = if self.rng.one_in(60) { 200 } else { self.rng.below(MAX_ELEMENTS) };
        (0..count).map(|_| make(self)).collect()
    }

    /// A message, or its default if there have been enough.
    pub fn message<P: Pair>(&mut self) -> P {
        match self.messages.checked_sub(1) {
            Some(left) => {
                self.messages = left;
                P::random(self)
            }
            None => P::default(),
        }
    }

    /// A few messages, or none at all.
    pub fn messages<P: Pair>(&mut self) -> Vec<P> {
        (0..self.rng.below(MAX_ELEMENTS)).map(|_| self.message()).collect()
    }

    /// The number of a value that has a name, or of one that has none.
    pub fn number_of(&mut self, known: &[i32]) -> i32 {
        if self.rng.one_in(4) { self.int32() } else { *self.rng.pick(known) }
    }

    /// Any `i32`.
    pub fn int32(&mut self) -> i32 {
        self.int64() as i32
    }

    /// Any `u32`.
    pub fn uint32(&mut self) -> u32 {
        self.int64() as u32
    }

    /// Any `u64`.
    pub fn uint64(&mut self) -> u64 {
        self.int64() as u64
    }

    /// Any `i64`: a border of some width of integers or of varints, or something in between.
    pub fn int64(&mut self) -> i64 {
        let power = 1i64 << self.rng.below(63);
        let random = self.rng.bits() as i64;
        let choices = [
            0,
            1,
            -1,
            i64::MIN,
            i64::MAX,
            i64::from(i32::MIN),
            i64::from(i32::MAX),
            i64::from(u32::MAX),
            power,
            power - 1,
            -power,
            random,
            random >> self.rng.below(63),
        ];
        *self.rng.pick(&choices)
    }

    /// Any `f64`, and any NaN.
    pub fn double(&mut self) -> f64 {
        let choices =
            [0.0, -0.0, 1.5, f64::MIN, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        if self.rng.one_in(3) { *self.rng.pick(&choices) } else { f64::from_bits(self.rng.bits()) }
    }

    /// Any `f32`, and any NaN.
    pub fn float(&mut self) -> f32 {
        let choices =
            [0.0, -0.0, 1.5, f32::MIN, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        if self.rng.one_in(3) { *self.rng.pick(&choices) } else { f32::from_bits(self.rng.bits() as u32) }
    }

    /// Either.
    pub fn bool(&mut self) -> bool {
        self.rng.one_in(2)
    }

    /// Text of letters that take one to four bytes.
    pub fn string(&mut self) -> String {
        let mut text = String::new();
        let len = self.len();
        while text.len() < len {
            text.push(*self.rng.pick(&['a', 'z', '\0', '\u{7f}', 'é', '→', '🦀']));
        }
        text
    }

    /// Any bytes.
    pub fn bytes(&mut self) -> Vec<u8> {
        (0..self.len()).map(|_| self.rng.bits() as u8).collect()
    }

    /// None, few, more than a byte of length can tell, more than two bytes can.
    fn len(&mut self) -> usize {
        match self.rng.below(100) {
            0..20 => 0,
            20..90 => self.rng.below(20),
            90..98 => 120 + self.rng.below(20),
            98 => 300,
            _ => (1 << 14) - 10 + self.rng.below(20),
        }
    }
}
