//! Colours of tracks and names, spread over a rainbow so that neighbours differ.

/// Red, green, blue.
pub(crate) type Color = [u8; 3];

/// The corners of the rainbow, dark blue to dark red: every 17th colour of the map "Turbo".
const RAINBOW: [Color; 16] = [
    [0x30, 0x12, 0x3b],
    [0x40, 0x40, 0xa1],
    [0x46, 0x6b, 0xe3],
    [0x41, 0x93, 0xfe],
    [0x28, 0xbb, 0xeb],
    [0x17, 0xdc, 0xc2],
    [0x32, 0xf1, 0x97],
    [0x6d, 0xfd, 0x62],
    [0xa4, 0xfc, 0x3b],
    [0xcd, 0xeb, 0x34],
    [0xed, 0xcf, 0x39],
    [0xfd, 0xab, 0x33],
    [0xfa, 0x7d, 0x20],
    [0xea, 0x50, 0x0d],
    [0xd0, 0x2f, 0x04],
    [0xa9, 0x15, 0x01],
];

/// Steps between two corners.
const STEPS: u64 = 16;

/// Returns the colour of the track with this number.
pub(crate) fn of_track(number: u32) -> Color {
    // Consecutive numbers get distant colours.
    let eighth = u64::from((number & 1) << 2 | number & 3 | (number & 7) >> 2);
    hue(eighth * RAINBOW.len() as u64 * STEPS / 8)
}

/// Returns the colour of a name.
pub(crate) fn of_name(name: &[u8]) -> Color {
    hue(hash(name) % (RAINBOW.len() as u64 * STEPS))
}

/// Returns the colour half way to white.
pub(crate) fn lighter(color: Color) -> Color {
    mix(color, [0xff; 3], 128)
}

fn hue(hue: u64) -> Color {
    let corner = (hue / STEPS) as usize % RAINBOW.len();
    let next = (corner + 1).min(RAINBOW.len() - 1);
    let step = (hue % STEPS) as u8;
    mix(RAINBOW[corner], RAINBOW[next], step << 4 | step)
}

/// Returns the 64-bit FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Mixes two colours, with `ratio` 256ths of the second one.
fn mix(one: Color, other: Color, ratio: u8) -> Color {
    core::array::from_fn(|i| {
        let (one, other) = (i32::from(one[i]), i32::from(other[i]));
        (one + (((other - one) * i32::from(ratio)) >> 8)) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ() {
        let colors: std::collections::BTreeSet<_> = (0..4).map(of_track).collect();
        assert_eq!(colors.len(), 4);
        assert_ne!(of_name(b"draw"), of_name(b"frame"));
        assert_eq!(hue(0), RAINBOW[0]);
        assert_eq!(lighter([0, 0, 0]), [127, 127, 127]);
    }

    #[test]
    fn a_name_keeps_its_color() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"mytrack"), 0x8182_0cb4_e204_bfb2);
        assert_eq!(of_name(b"mytrack"), hue(0xb2));
    }
}
