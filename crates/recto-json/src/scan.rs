//! Finds the ends of JSON strings, 64 bytes at a time.
//!
//! Each block of bytes becomes bit masks: one bit per byte for quotes, backslashes and control
//! characters. Arithmetic on these masks finds the quote that ends a string. Its cost does not depend on
//! the number of escapes; code and JSON inside strings have one every few bytes.

use wide::u8x16;

/// Bit masks of a block; the first byte is the lowest bit.
struct Bits {
    quotes: u64,
    backslashes: u64,
    controls: u64,
}

const BLOCK: usize = 64;
const EVEN: u64 = 0x5555_5555_5555_5555;
const ODD: u64 = !EVEN;

/// The offset after the closing quote of the string whose opening quote is right before `at`. `None` if the
/// string does not end.
#[inline(always)]
pub(crate) fn end_of_string(bytes: &[u8], at: usize) -> Option<usize> {
    end_of_short_string(bytes, at).or_else(|| end_of_long_string(bytes, at))
}

fn end_of_long_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut escapes = Escapes::default();
    walk(bytes, at, |bits, offset| {
        let ends = bits.quotes & !escapes.next(bits.backslashes);
        match ends {
            0 => Scanned::Continue,
            _ => Scanned::End(offset + ends.trailing_zeros() as usize + 1),
        }
    })
}

/// [`end_of_string`] for a text that has not been checked: `None` also if the string contains an invalid
/// escape or a control character.
#[inline(always)]
pub(crate) fn end_of_checked_string(bytes: &[u8], at: usize) -> Option<usize> {
    end_of_short_string(bytes, at).or_else(|| end_of_long_checked_string(bytes, at))
}

fn end_of_long_checked_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut escapes = Escapes::default();
    walk(bytes, at, |bits, offset| {
        let escaped = escapes.next(bits.backslashes);
        let ends = bits.quotes & !escaped;
        // Only the bytes before the end belong to the string.
        let inside = (ends & ends.wrapping_neg()).wrapping_sub(1);
        if bits.controls & inside != 0
            || !are_valid_escapes(bytes, offset, escaped & inside & !bits.quotes)
        {
            return Scanned::Invalid;
        }
        match ends {
            0 => Scanned::Continue,
            _ => Scanned::End(offset + ends.trailing_zeros() as usize + 1),
        }
    })
}

/// [`end_of_string`] for a string of less than 16 bytes without escapes, such as most keys; `None` for other
/// strings.
#[inline(always)]
fn end_of_short_string(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let Some(lane) = rest.first_chunk::<16>() else {
        let is_mark = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        let mark = rest.iter().position(is_mark)?;
        return (rest[mark] == b'"').then_some(at + mark + 1);
    };
    let lane = u8x16::new(*lane);
    let last_control = u8x16::splat(0x1f);
    let quotes = lane.simd_eq(u8x16::splat(b'"'));
    let backslashes = lane.simd_eq(u8x16::splat(b'\\'));
    let controls = lane.max(last_control).simd_eq(last_control);
    let marks = (quotes | backslashes | controls).to_bitmask();
    let first = marks & marks.wrapping_neg();
    (quotes.to_bitmask() & first != 0).then(|| at + marks.trailing_zeros() as usize + 1)
}

/// The result of one block.
enum Scanned {
    Continue,
    End(usize),
    Invalid,
}

/// Calls `each` with every block and its offset, until the result is not [`Scanned::Continue`].
#[inline(always)]
fn walk(bytes: &[u8], at: usize, mut each: impl FnMut(Bits, usize) -> Scanned) -> Option<usize> {
    let mut offset = at;
    let mut rest = bytes.get(at..)?;
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK>() {
        match each(bits_of(block), offset) {
            Scanned::Continue => {}
            Scanned::End(end) => return Some(end),
            Scanned::Invalid => return None,
        }
        (rest, offset) = (after, offset + BLOCK);
    }
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    match each(bits_of(&block), offset) {
        Scanned::End(end) => Some(end),
        Scanned::Continue | Scanned::Invalid => None,
    }
}

/// Finds the bytes that a backslash escapes, across blocks.
#[derive(Default)]
struct Escapes {
    /// Whether the previous block ended with a backslash that escapes the next byte.
    is_open: bool,
}

impl Escapes {
    /// The bytes that follow an odd number of backslashes and are not backslashes. If the previous block
    /// ended with a backslash that escapes the first byte, also the first byte, whatever it is.
    #[inline(always)]
    fn next(&mut self, backslashes: u64) -> u64 {
        let first = u64::from(std::mem::take(&mut self.is_open));
        let backslashes = backslashes & !first;
        if backslashes == 0 {
            return first;
        }
        // Adding the start of a run of ones carries through the run and sets the bit after its end.
        let starts = backslashes & !(backslashes << 1);
        let after_even = backslashes.wrapping_add(starts & EVEN);
        let (after_odd, is_open) = backslashes.overflowing_add(starts & ODD);
        self.is_open = is_open;
        // A run that starts at an even offset and ends at an odd one, or vice versa, has odd length.
        ((after_even & ODD) | (after_odd & EVEN)) & !backslashes | first
    }
}

/// Whether the escaped bytes of the block at `offset` are valid escapes. `escaped` contains no quotes.
#[inline(always)]
fn are_valid_escapes(bytes: &[u8], offset: usize, mut escaped: u64) -> bool {
    while escaped != 0 {
        let at = offset + escaped.trailing_zeros() as usize;
        match bytes.get(at) {
            // `escaped` contains a backslash only if the backslash that escapes it is in the previous block.
            Some(b'n' | b't' | b'r' | b'b' | b'f' | b'/' | b'\\') => {}
            Some(b'u') => {
                let digits = bytes.get(at + 1..at + 5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return false;
                }
            }
            _ => return false,
        }
        escaped &= escaped - 1;
    }
    true
}

#[inline(always)]
fn bits_of(block: &[u8; BLOCK]) -> Bits {
    let mut bits = Bits { quotes: 0, backslashes: 0, controls: 0 };
    let last_control = u8x16::splat(0x1f);
    for (number, lane) in block.as_chunks::<16>().0.iter().enumerate() {
        let lane = u8x16::new(*lane);
        let bits_where = |found: u8x16| u64::from(found.to_bitmask()) << (number * 16);
        bits.quotes |= bits_where(lane.simd_eq(u8x16::splat(b'"')));
        bits.backslashes |= bits_where(lane.simd_eq(u8x16::splat(b'\\')));
        bits.controls |= bits_where(lane.max(last_control).simd_eq(last_control));
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`end_of_string`], byte by byte.
    fn bytewise_end(bytes: &[u8], at: usize) -> Option<usize> {
        let mut at = at;
        loop {
            match bytes.get(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    #[test]
    fn the_end_equals_that_of_a_bytewise_search() {
        // Runs of backslashes of several lengths at every offset of a block.
        for before in 0..140 {
            for run in 0..5 {
                for after in ["\"", "n\"", "x\"y\"", ""] {
                    let text = format!("{}{}{after}", "a".repeat(before), "\\".repeat(run));
                    let bytes = text.as_bytes();
                    assert_eq!(end_of_string(bytes, 0), bytewise_end(bytes, 0), "{text}");
                }
            }
        }
    }

    #[test]
    fn every_byte_is_classified_at_every_offset() {
        for offset in 0..BLOCK {
            for byte in 0..=255 {
                let mut block = [b'a'; BLOCK];
                block[offset] = byte;
                let bits = bits_of(&block);
                let bit = |is: bool| u64::from(is) << offset;
                assert_eq!(bits.quotes, bit(byte == b'"'), "{byte}");
                assert_eq!(bits.backslashes, bit(byte == b'\\'), "{byte}");
                assert_eq!(bits.controls, bit(byte < 0x20), "{byte}");
            }
        }
    }
}
