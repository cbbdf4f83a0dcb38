//! Where JSON strings end, found 64 bytes at a time.
//!
//! A block of bytes becomes one bit a byte for each kind of byte that matters. Which quotes end a
//! string is then arithmetic on these bits, and costs the same however many escapes a text has: code
//! and JSON inside strings have one every few bytes.

use wide::u8x16;

/// Which bytes of a block are what: the first byte is the lowest bit.
struct Bits {
    quotes: u64,
    backslashes: u64,
    controls: u64,
}

const BLOCK: usize = 64;
const EVEN: u64 = 0x5555_5555_5555_5555;
const ODD: u64 = !EVEN;

/// Where the string whose first quote is right before `at` ends, behind its quote; `None` if it does
/// not.
#[inline(always)]
pub(super) fn end_of_string(bytes: &[u8], at: usize) -> Option<usize> {
    end_of_word(bytes, at).or_else(|| end_of_long_string(bytes, at))
}

fn end_of_long_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut escapes = Escapes::default();
    walk(bytes, at, |bits, place| {
        let ends = bits.quotes & !escapes.next(bits.backslashes);
        match ends {
            0 => Step::On,
            _ => Step::End(place + ends.trailing_zeros() as usize + 1),
        }
    })
}

/// The same, for a text that was not checked: `None` also if the string has an escape that JSON does
/// not know, or a control character.
#[inline(always)]
pub(super) fn end_of_checked_string(bytes: &[u8], at: usize) -> Option<usize> {
    end_of_word(bytes, at).or_else(|| end_of_long_checked_string(bytes, at))
}

fn end_of_long_checked_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut escapes = Escapes::default();
    walk(bytes, at, |bits, place| {
        let escaped = escapes.next(bits.backslashes);
        let ends = bits.quotes & !escaped;
        // Only what stands in front of the end belongs to the string.
        let inside = (ends & ends.wrapping_neg()).wrapping_sub(1);
        if bits.controls & inside != 0
            || !are_escapes(bytes, place, escaped & inside & !bits.quotes)
        {
            return Step::Refused;
        }
        match ends {
            0 => Step::On,
            _ => Step::End(place + ends.trailing_zeros() as usize + 1),
        }
    })
}

/// The same, if the string is short and has no escapes, as keys are.
#[inline(always)]
fn end_of_word(bytes: &[u8], at: usize) -> Option<usize> {
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

enum Step {
    On,
    End(usize),
    Refused,
}

/// Hands over block by block, each with its place, until one says that it is the end.
#[inline(always)]
fn walk(bytes: &[u8], at: usize, mut each: impl FnMut(Bits, usize) -> Step) -> Option<usize> {
    let mut place = at;
    let mut rest = bytes.get(at..)?;
    while let Some((block, behind)) = rest.split_first_chunk::<BLOCK>() {
        match each(bits_of(block), place) {
            Step::On => {}
            Step::End(end) => return Some(end),
            Step::Refused => return None,
        }
        (rest, place) = (behind, place + BLOCK);
    }
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    match each(bits_of(&block), place) {
        Step::End(end) => Some(end),
        Step::On | Step::Refused => None,
    }
}

/// Finds the bytes right behind an escaping backslash, from one block to the next.
#[derive(Default)]
struct Escapes {
    /// Whether the last block ended with such a backslash.
    is_open: bool,
}

impl Escapes {
    /// Which bytes stand behind an odd number of backslashes and are none themselves.
    #[inline(always)]
    fn next(&mut self, backslashes: u64) -> u64 {
        let first = u64::from(std::mem::take(&mut self.is_open));
        let backslashes = backslashes & !first;
        if backslashes == 0 {
            return first;
        }
        // Adding the start of a run of ones carries through it and leaves a one behind its end.
        let starts = backslashes & !(backslashes << 1);
        let behind_even = backslashes.wrapping_add(starts & EVEN);
        let (behind_odd, is_open) = backslashes.overflowing_add(starts & ODD);
        self.is_open = is_open;
        // From an even place to an odd one, or the other way round: the run is of odd length.
        ((behind_even & ODD) | (behind_odd & EVEN)) & !backslashes | first
    }
}

/// Whether what stands at these places behind a backslash is an escape. Quotes are left out.
#[inline(always)]
fn are_escapes(bytes: &[u8], place: usize, mut escaped: u64) -> bool {
    while escaped != 0 {
        let at = place + escaped.trailing_zeros() as usize;
        match bytes.get(at) {
            // A backslash is here only if the block before ended with the one that escapes it.
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

    /// Byte by byte.
    fn slow(bytes: &[u8], at: usize) -> Option<usize> {
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
    fn the_end_is_where_a_slow_reader_finds_it() {
        // Runs of backslashes of every length across every place of a block.
        for before in 0..140 {
            for run in 0..5 {
                for behind in ["\"", "n\"", "x\"y\"", ""] {
                    let text = format!("{}{}{behind}", "a".repeat(before), "\\".repeat(run));
                    let bytes = text.as_bytes();
                    assert_eq!(end_of_string(bytes, 0), slow(bytes, 0), "{text}");
                }
            }
        }
    }

    #[test]
    fn every_byte_is_told_apart_in_every_place() {
        for place in 0..BLOCK {
            for byte in 0..=255 {
                let mut block = [b'a'; BLOCK];
                block[place] = byte;
                let bits = bits_of(&block);
                let bit = |is: bool| u64::from(is) << place;
                assert_eq!(bits.quotes, bit(byte == b'"'), "{byte}");
                assert_eq!(bits.backslashes, bit(byte == b'\\'), "{byte}");
                assert_eq!(bits.controls, bit(byte < 0x20), "{byte}");
            }
        }
    }
}
