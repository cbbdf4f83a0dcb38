//! Finding any of many words at once, at the speed of memory.
//!
//! An automaton reads a text byte by byte, and each step waits for the one before. Here four to six
//! bytes at a time (a *gram*) are looked up in a small set of bits, and nearly all places are ruled
//! out without waiting for anything. Of longer words not every place has to be looked at: with a
//! stride of four, four neighbouring grams of each word are in the set, and wherever the word
//! stands, one of them starts at a place that is a multiple of four.

/// Words shorter than this are not for this search.
const SHORTEST: usize = 4;

/// Words that are looked for together, of which at least one is sought.
pub(crate) struct GramSearch {
    words: Vec<Box<[u8]>>,
    shape: Shape,
    /// A bit for the hash of each gram that is in `grams`; as many as one of the sizes below says.
    bits: Vec<u64>,
    /// Makes a hash of eight bytes of text, of which only the first `width` count.
    multiplier: u64,
    /// The grams, sorted by their hashes.
    grams: Vec<Gram>,
    /// Where in `grams` those start whose hashes begin with the same bits.
    buckets: Vec<u32>,
    /// Takes a 64-bit hash to a place in `buckets`.
    bucket_shift: u32,
}

/// A few bytes of a word, and where they stand in it.
#[derive(Clone, Copy)]
struct Gram {
    bytes: u64,
    word: u32,
    at: u32,
}

/// How grams are taken. The shortest word has `width + stride - 1` bytes at least.
#[derive(Clone, Copy)]
struct Shape {
    /// How many bytes a gram has. Long grams are rarely met by chance.
    width: usize,
    /// How far apart the places are that are looked at.
    stride: usize,
}

/// How many places are looked at before the search asks whether one of them may be a word's.
const AT_ONCE: usize = 4;

/// How many numbers the set of bits has: few enough for a near cache, enough that a hit by chance is
/// rare. The compiler knows these sizes, so that a look needs no test of its bounds.
const SMALL: usize = 1 << 9;
const MEDIUM: usize = 1 << 12;
const LARGE: usize = 1 << 16;

impl GramSearch {
    /// A search for those words that are long enough, if there are any, and the others. All are
    /// looked for in one pass.
    pub(crate) fn split(words: &[String]) -> (Option<GramSearch>, Vec<String>) {
        let (long, short): (Vec<&String>, Vec<&String>) =
            words.iter().partition(|word| word.len() >= SHORTEST);
        let words: Vec<Box<[u8]>> = long.iter().map(|word| word.as_bytes().into()).collect();
        let search = (!words.is_empty()).then(|| GramSearch::new(words));
        (search, short.into_iter().cloned().collect())
    }

    fn new(words: Vec<Box<[u8]>>) -> GramSearch {
        let Plan { shape, starts, .. } = Plan::for_words(&words);
        let Shape { width, stride } = shape;
        let mut grams = Vec::with_capacity(words.len() * stride);
        for (number, (word, &start)) in words.iter().zip(&starts).enumerate() {
            for at in start..start + stride {
                let bytes = bytes_at(&word[at..at + width], 0);
                grams.push(Gram { bytes, word: number as u32, at: at as u32 });
            }
        }
        let multiplier = multiplier(width);
        let hash = |gram: &Gram| gram.bytes.wrapping_mul(multiplier);
        grams.sort_unstable_by_key(hash);
        let size = match grams.len() {
            0..512 => SMALL,
            512..4096 => MEDIUM,
            _ => LARGE,
        };
        let mut bits = vec![0; size];
        for gram in &grams {
            let (number, bit) = place_in(size, hash(gram));
            bits[number] |= 1 << bit;
        }
        let size = grams.len().next_power_of_two().clamp(1 << 4, 1 << 20);
        let bucket_shift = 64 - size.trailing_zeros();
        let mut buckets = vec![0; size + 1];
        for gram in &grams {
            buckets[(hash(gram) >> bucket_shift) as usize + 1] += 1;
        }
        for bucket in 0..size {
            buckets[bucket + 1] += buckets[bucket];
        }
        GramSearch { words, shape, bits, multiplier, grams, buckets, bucket_shift }
    }

    /// Whether one of the words is in the text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self.shape.stride {
            1 => self.scan::<1>(text.as_bytes()),
            2 => self.scan::<2>(text.as_bytes()),
            3 => self.scan::<3>(text.as_bytes()),
            4 => self.scan::<4>(text.as_bytes()),
            5 => self.scan::<5>(text.as_bytes()),
            6 => self.scan::<6>(text.as_bytes()),
            7 => self.scan::<7>(text.as_bytes()),
            _ => self.scan::<8>(text.as_bytes()),
        }
    }

    fn scan<const STRIDE: usize>(&self, text: &[u8]) -> bool {
        if let Ok(bits) = <&[u64; SMALL]>::try_from(&*self.bits) {
            self.scan_with::<STRIDE, SMALL>(bits, text)
        } else if let Ok(bits) = <&[u64; MEDIUM]>::try_from(&*self.bits) {
            self.scan_with::<STRIDE, MEDIUM>(bits, text)
        } else {
            let bits = <&[u64; LARGE]>::try_from(&*self.bits).expect("there is no other size");
            self.scan_with::<STRIDE, LARGE>(bits, text)
        }
    }

    fn scan_with<const STRIDE: usize, const SIZE: usize>(
        &self,
        bits: &[u64; SIZE],
        text: &[u8],
    ) -> bool {
        let multiplier = self.multiplier;
        let may_hold = |bytes: u64| {
            let (number, bit) = place_in(SIZE, bytes.wrapping_mul(multiplier));
            bits[number] & (1 << bit) != 0
        };
        let mut place = 0;
        // Several places in one go: none of them waits for another.
        while let Some(block) = text.get(place..place + (AT_ONCE - 1) * STRIDE + 8) {
            let bytes = |number: usize| bytes_at(block, number * STRIDE);
            let hit = (0..AT_ONCE).fold(false, |hit, number| hit | may_hold(bytes(number)));
            if hit && self.is_word_around_one(text, place, STRIDE) {
                return true;
            }
            place += AT_ONCE * STRIDE;
        }
        // The last bytes do not fill a block.
        while place + self.shape.width <= text.len() {
            if may_hold(bytes_at(text, place)) && self.is_word_around(text, place) {
                return true;
            }
            place += STRIDE;
        }
        false
    }

    /// Whether a word stands around one of the places of a block, one of which had a hit.
    #[cold]
    #[inline(never)]
    fn is_word_around_one(&self, text: &[u8], place: usize, stride: usize) -> bool {
        (0..AT_ONCE).map(|number| place + number * stride).any(|place| {
            let hash = bytes_at(text, place).wrapping_mul(self.multiplier);
            let (number, bit) = place_in(self.bits.len(), hash);
            self.bits[number] & (1 << bit) != 0 && self.is_word_around(text, place)
        })
    }

    /// Whether the gram at this place belongs to a word that stands there.
    fn is_word_around(&self, text: &[u8], place: usize) -> bool {
        let bytes = bytes_at(text, place);
        let gram = bytes & (u64::MAX >> (64 - 8 * self.shape.width));
        let bucket = (bytes.wrapping_mul(self.multiplier) >> self.bucket_shift) as usize;
        let (start, end) = (self.buckets[bucket] as usize, self.buckets[bucket + 1] as usize);
        self.grams[start..end].iter().any(|candidate| {
            candidate.bytes == gram && {
                let word = &self.words[candidate.word as usize];
                let start = place.checked_sub(candidate.at as usize);
                start.and_then(|start| text.get(start..start + word.len())) == Some(word)
            }
        })
    }
}

/// Where the bit of a hash stands in a set of `size` numbers.
fn place_in(size: usize, hash: u64) -> (usize, u32) {
    let place = hash >> (64 - 6 - size.trailing_zeros());
    (place as usize / 64, place as u32 % 64)
}

/// What takes eight bytes to a hash of the first `width`, whose upper bits are the good ones: the
/// other bytes overflow.
fn multiplier(width: usize) -> u64 {
    0x9E37_79B9_7F4A_7C15 << (64 - 8 * width)
}

/// The eight bytes from a place on as a number; zeros where the text has ended.
fn bytes_at(text: &[u8], place: usize) -> u64 {
    let rest = &text[place..];
    u64::from_le_bytes(rest.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded[..rest.len()].copy_from_slice(rest);
        padded
    }))
}

/// How a list of words is looked for.
struct Plan {
    shape: Shape,
    /// Where in each word its grams start.
    starts: Vec<usize>,
    /// What looking at a byte of text is likely to cost; 1 is a look at the set of bits.
    cost: f64,
}

impl Plan {
    /// What it costs to find out that a gram that is in the set belongs to no word here.
    const COST_OF_A_HIT: f64 = 16.0;

    /// The best plan for these words, all of which have at least [`SHORTEST`] bytes: wide grams are
    /// rarely met by chance, narrow ones allow long strides.
    fn for_words(words: &[Box<[u8]>]) -> Plan {
        let shortest = words.iter().map(|word| word.len()).min().unwrap_or(SHORTEST);
        let shapes = [4, 5, 6, 8].into_iter().filter(|&width| width <= shortest);
        let shapes = shapes.map(|width| Shape { width, stride: (shortest - width + 1).min(8) });
        let mut plans: Vec<Plan> = shapes.map(|shape| Plan::new(shape, words.len())).collect();
        let mut sums = Vec::new();
        for word in words {
            sums.clear();
            sums.push(0);
            sums.extend(word.iter().scan(0, |sum, &byte| {
                *sum += surprise(byte);
                Some(*sum)
            }));
            plans.iter_mut().for_each(|plan| plan.add(&sums));
        }
        let plans = plans.into_iter();
        plans
            .min_by(|a, b| a.cost.total_cmp(&b.cost))
            .expect("grams of four bytes are in all words")
    }

    /// A plan for no words yet.
    fn new(shape: Shape, words: usize) -> Plan {
        Plan { shape, starts: Vec::with_capacity(words), cost: 1.0 / shape.stride as f64 }
    }

    /// Adds a word, of which `sums` are the bits of information before each place: by those
    /// neighbouring grams that ordinary text is least likely to hold.
    fn add(&mut self, sums: &[u32]) {
        // How likely a gram is, in units of 2⁻⁶³.
        let Shape { width, stride } = self.shape;
        let chance = |at: usize| 1_u64 << (63 - (sums[at + width] - sums[at]));
        let mut stretch: u64 = (0..stride).map(chance).sum();
        let mut rarest = (stretch, 0);
        for start in 1..sums.len() - width - stride + 1 {
            stretch = stretch + chance(start + stride - 1) - chance(start - 1);
            rarest = rarest.min((stretch, start));
        }
        self.starts.push(rarest.1);
        let share = rarest.0 as f64 / (1_u64 << 63) as f64;
        self.cost += share * Plan::COST_OF_A_HIT / stride as f64;
    }
}

/// How many bits of information a byte of ordinary text has, given what stands before it.
fn surprise(byte: u8) -> u32 {
    match byte {
        b' ' | b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 2,
        b'a'..=b'z' => 3,
        b'0'..=b'9' | b'\n' | b'.' | b',' => 5,
        // Chinese and its neighbours begin with these.
        0xE3..=0xE9 => 2,
        0x80..=0xBF => 5,
        _ => 7,
    }
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

    #[test]
    fn each_of_many_words_is_found_at_any_place() {
        for (count, len) in [(20, 4), (300, 5), (300, 9), (2_000, 7), (2_000, 12), (5_000, 16)] {
            let word = |number: usize| format!("{number:0>len$}");
            let words: Vec<String> = (0..count).map(word).collect();
            let (search, short) = GramSearch::split(&words);
            let search = search.expect("the words are long");
            assert!(short.is_empty());
            for number in (0..count).step_by(7) {
                let text = format!("{}{}{}", "-".repeat(number % 41), word(number), "-".repeat(9));
                assert!(search.is_match(&text), "{text}");
                let text = text.replace(&word(number), &word(number)[1..]);
                assert!(!search.is_match(&text), "{text}");
            }
            assert!(!search.is_match(&"1-2-34-5678-9".repeat(50)));
        }
    }
}
