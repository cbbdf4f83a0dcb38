//! Finding any of many words at once, at the speed of memory.
//!
//! An automaton reads a text byte by byte, and each step waits for the one before. Here four to
//! eight bytes at a time (a *gram*) are looked up in a small set of bits, and nearly all places are
//! ruled out without waiting for anything. Of longer words not every place has to be looked at: with
//! a stride of four, four neighbouring grams of each word are in the set, and wherever the word
//! stands, one of them starts at a place that is a multiple of four.

/// Words shorter than this are not for this search.
const SHORTEST: usize = 4;

/// Words that are looked for together, of which at least one is sought.
pub(crate) struct GramSearch {
    words: Vec<Box<[u8]>>,
    shape: Shape,
    /// A bit for the hash of each gram that is in `grams`.
    bits: Vec<u64>,
    /// Takes a 64-bit hash to a place in `bits`.
    shift: u32,
    /// Grams, each with its word and where it stands in it; sorted.
    grams: Vec<(u64, u32, u32)>,
}

/// How words are looked for. The shortest of them has `width + stride - 1` bytes at least.
#[derive(Clone, Copy)]
struct Shape {
    /// How many bytes a gram has. Long grams are rarely hit by chance.
    width: usize,
    /// How far apart the places are that are looked at.
    stride: usize,
}

impl Shape {
    /// From words of few bytes to words of many.
    const ALL: [Shape; 4] = [
        Shape { width: 4, stride: 1 },
        Shape { width: 5, stride: 2 },
        Shape { width: 6, stride: 3 },
        Shape { width: 8, stride: 4 },
    ];

    fn shortest_word(self) -> usize {
        self.width + self.stride - 1
    }

    /// How a word of this length is looked for best.
    fn of(len: usize) -> usize {
        Shape::ALL.iter().rposition(|shape| shape.shortest_word() <= len).unwrap_or(0)
    }
}

impl GramSearch {
    /// A search for those words that are long enough, if there are any, and the others. All are
    /// looked for in one pass, in the shape that the shortest allows.
    pub(crate) fn split(words: &[String]) -> (Option<GramSearch>, Vec<String>) {
        let (long, short): (Vec<&String>, Vec<&String>) =
            words.iter().partition(|word| word.len() >= SHORTEST);
        let shape = long.iter().map(|word| Shape::of(word.len())).min();
        let words = long.iter().map(|word| word.as_bytes().into()).collect();
        let search = shape.map(|shape| GramSearch::new(words, Shape::ALL[shape]));
        (search, short.into_iter().cloned().collect())
    }

    fn new(words: Vec<Box<[u8]>>, shape: Shape) -> GramSearch {
        let Shape { width, stride } = shape;
        let mut grams = Vec::with_capacity(words.len() * stride);
        for (number, word) in words.iter().enumerate() {
            let first = rarest_grams(word, shape.shortest_word());
            for at in first..first + stride {
                grams.push((padded_gram(&word[at..at + width]), number as u32, at as u32));
            }
        }
        grams.sort_unstable();
        // Few enough bits for the nearest cache, enough that a hit by chance is rare.
        let size = (grams.len() * 64).next_power_of_two().clamp(1 << 13, 1 << 22);
        let shift = 64 - size.trailing_zeros();
        let mut bits = vec![0; size / 64];
        for &(gram, _, _) in &grams {
            let hash = hash(gram, shift);
            bits[hash / 64] |= 1 << (hash % 64);
        }
        GramSearch { words, shape, bits, shift, grams }
    }

    /// Whether one of the words is in the text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self.shape.stride {
            1 => self.scan::<1>(text.as_bytes()),
            2 => self.scan::<2>(text.as_bytes()),
            3 => self.scan::<3>(text.as_bytes()),
            _ => self.scan::<4>(text.as_bytes()),
        }
    }

    fn scan<const STRIDE: usize>(&self, text: &[u8]) -> bool {
        let mask = u64::MAX >> (64 - 8 * self.shape.width);
        let mut place = 0;
        for window in text.windows(8).step_by(STRIDE) {
            let bytes = <[u8; 8]>::try_from(window).expect("the window has eight bytes");
            let gram = u64::from_le_bytes(bytes) & mask;
            if self.may_hold(gram) && self.is_word_around(text, place, gram) {
                return true;
            }
            place += STRIDE;
        }
        // The last bytes do not fill a window.
        while let Some(window) = text.get(place..place + self.shape.width) {
            let gram = padded_gram(window);
            if self.may_hold(gram) && self.is_word_around(text, place, gram) {
                return true;
            }
            place += STRIDE;
        }
        false
    }

    fn may_hold(&self, gram: u64) -> bool {
        let hash = hash(gram, self.shift);
        self.bits[hash / 64] & (1 << (hash % 64)) != 0
    }

    /// Whether the gram at this place belongs to a word that stands there.
    #[cold]
    fn is_word_around(&self, text: &[u8], place: usize, gram: u64) -> bool {
        let first = self.grams.partition_point(|entry| entry.0 < gram);
        self.grams[first..].iter().take_while(|entry| entry.0 == gram).any(|&(_, word, at)| {
            let word = &self.words[word as usize];
            let start = place.checked_sub(at as usize);
            start.and_then(|start| text.get(start..start + word.len())) == Some(word)
        })
    }
}

/// Up to eight bytes as a number.
fn padded_gram(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(padded)
}

fn hash(gram: u64, shift: u32) -> usize {
    (gram.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize
}

/// Where the `len` bytes of a word start that ordinary text is least likely to hold.
fn rarest_grams(word: &[u8], len: usize) -> usize {
    let common = |byte: &u8| match byte {
        b' ' | b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 4_usize,
        b'h' | b'l' | b'd' | b'c' | b'u' | b'm' | b'p' | b'f' | b'g' => 3,
        b'a'..=b'z' | b'\n' | b'.' | b',' => 2,
        // Chinese and its neighbours begin with these.
        0xE3..=0xE9 => 2,
        _ => 0,
    };
    let starts = word.windows(len).map(|window| window.iter().map(common).sum::<usize>());
    starts.enumerate().min_by_key(|&(_, commonness)| commonness).map_or(0, |(start, _)| start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn words_are_found_wherever_they_stand(
            words in prop::collection::vec("[ab]{1,14}|[ab计]{2,5}", 1..6),
            text in "[abc计]{0,40}",
            planted in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            plants in any::<bool>(),
        ) {
            let mut text = text;
            if plants {
                let place = at.index(text.chars().count() + 1);
                let place = text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
                text.insert_str(place, &words[planted.index(words.len())]);
            }
            let (long, short) = GramSearch::split(&words);
            let found = long.is_some_and(|long| long.is_match(&text))
                || short.iter().any(|word| text.contains(&**word));
            prop_assert_eq!(found, words.iter().any(|word| text.contains(&**word)));
        }
    }
}
