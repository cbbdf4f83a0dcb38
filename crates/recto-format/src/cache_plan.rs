//! The cost of an edit in the provider's prompt cache, and the number of turns until it pays off.
//!
//! A provider caches the prefix of a prompt and bills cached tokens at a fraction of the price. An edit
//! saves tokens in every later turn, but everything after the first changed byte is billed once at the
//! price of tokens that are written to the cache. Rendering is stable, so both can be computed before the
//! edit.
//!
//! Tokens are counted over the rendered JSON including its punctuation, so the counts are slightly too high
//! on both sides of the comparison.

use std::fmt;

use recto_core::Counter;

use crate::json::{self, Str};
use crate::prices::{CacheTime, Price};

/// The point at which an edit has saved more than it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PaysOff {
    /// With the next turn, which costs no more than without the edit.
    Now,
    /// After this number of turns.
    AfterTurns(u64),
    /// Never: later turns are not cheaper.
    Never,
}

impl PaysOff {
    /// Number of turns after which the edit has paid off: 0 for [`Now`](PaysOff::Now), `None` for
    /// [`Never`](PaysOff::Never).
    pub fn turns(self) -> Option<u64> {
        match self {
            PaysOff::Now => Some(0),
            PaysOff::AfterTurns(turns) => Some(turns),
            PaysOff::Never => None,
        }
    }
}

/// The effect of an edit on the prompt cache.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CachePlan {
    /// Offset of the first byte of the request that differs, rounded down to the start of a character.
    pub first_difference: usize,
    /// Tokens before that byte, which stay cached; 0 if there are fewer than `Price::minimum`.
    pub cached_tokens: u64,
    /// All other tokens of the edited request. They are billed again.
    pub new_tokens: u64,
    /// Tokens of the request without the edit.
    pub old_tokens: u64,
    /// Additional cost of the next turn, in dollars; negative if it costs less.
    pub cost_now: f64,
    /// Savings of every later turn, in dollars; negative if it costs more.
    pub saved_per_turn: f64,
    /// The point at which the edit pays off.
    pub pays_off: PaysOff,
    /// Number of thinking blocks that the request before the edit has after the first byte that differs.
    /// Models that [bind thinking](crate::binds_thinking) to everything before it no longer accept them.
    pub thinking_blocks: u64,
    /// Tokens of these blocks.
    pub thinking_tokens: u64,
}

impl CachePlan {
    /// Compares the rendered requests before and after an edit.
    ///
    /// ```
    /// use recto_core::{Approx, Message};
    /// use recto_format::{CachePlan, PaysOff, PriceTable, RenderOptions, Target, render};
    ///
    /// let long = "The log says nothing new. ".repeat(2_000);
    /// let view = [Message::user(&"Be brief. ".repeat(500)), Message::assistant(&long), Message::user("So?")];
    /// let options = RenderOptions::default();
    /// let before = render(&view, Target::Anthropic, &options)?;
    /// // The view without the long answer.
    /// let after = render([&view[0], &view[2]], Target::Anthropic, &options)?;
    ///
    /// let prices = PriceTable::default();
    /// let price = prices.of("claude-sonnet-4-5").unwrap();
    /// let plan = CachePlan::of(&before.body, &after.body, &Approx, price);
    /// assert!(plan.cached_tokens > 1_000 && plan.new_tokens < 20);
    /// assert_eq!(plan.pays_off, PaysOff::Now);
    /// # Ok::<(), recto_format::Error>(())
    /// ```
    pub fn of(before: &str, after: &str, counter: &dyn Counter, price: &Price) -> CachePlan {
        let first_difference = shared_len(before, after);
        let shared = counter.count(&after[..first_difference]);
        let new_tokens = counter.count(&after[first_difference..]);
        let old_tokens = shared + counter.count(&before[first_difference..]);
        let total = shared + new_tokens;
        // A prompt that is too short is not cached at all.
        let kept = |tokens: u64| if tokens >= price.minimum { tokens } else { 0 };
        let time = cache_time(after);
        let cost = |cached: u64, all: u64| {
            let new = all - cached;
            let tier = price.at(all);
            let rate = if all >= price.minimum { tier.write(time) } else { tier.input };
            (cached as f64 * tier.cached + new as f64 * rate) / 1e6
        };
        let cached_tokens = kept(shared);
        let thinking = thinking_after(before, first_difference);
        let unedited = cost(kept(old_tokens), old_tokens);
        let cost_now = cost(cached_tokens, total) - unedited;
        let saved_per_turn = unedited - cost(kept(total), total);
        CachePlan {
            first_difference,
            cached_tokens,
            new_tokens: total - cached_tokens,
            old_tokens,
            cost_now,
            saved_per_turn,
            pays_off: pays_off(cost_now, saved_per_turn),
            thinking_blocks: thinking.len() as u64,
            thinking_tokens: thinking.iter().map(|block| counter.count(block)).sum(),
        }
    }
}

impl fmt::Display for PaysOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PaysOff::Now => f.write_str("pays off at once"),
            PaysOff::AfterTurns(1) => f.write_str("pays off after 1 turn"),
            PaysOff::AfterTurns(turns) => write!(f, "pays off after {turns} turns"),
            PaysOff::Never => f.write_str("never pays off"),
        }
    }
}

impl fmt::Display for CachePlan {
    /// One line: cached and new tokens, cost, savings, and when the edit pays off.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = |dollars: f64| {
            let sign = if dollars < 0.0 { "−" } else { "" };
            format!("{sign}${:.4}", dollars.abs())
        };
        write!(
            f,
            "{} tokens stay cached, {} are billed again (before: {}); costs {} now, saves {} per turn: {}",
            self.cached_tokens,
            self.new_tokens,
            self.old_tokens,
            signed(self.cost_now),
            signed(self.saved_per_turn),
            self.pays_off
        )?;
        if self.thinking_blocks == 0 {
            return Ok(());
        }
        let (blocks, tokens) = (self.thinking_blocks, self.thinking_tokens);
        match blocks {
            1 => write!(f, "; 1 thinking block ({tokens} tokens) loses its prefix"),
            _ => write!(f, "; {blocks} thinking blocks ({tokens} tokens) lose their prefix"),
        }
    }
}

fn pays_off(cost_now: f64, saved_per_turn: f64) -> PaysOff {
    if cost_now <= 0.0 {
        PaysOff::Now
    } else if saved_per_turn > 0.0 {
        PaysOff::AfterTurns((cost_now / saved_per_turn).ceil() as u64)
    } else {
        PaysOff::Never
    }
}

/// The cache time of a request: that of its last `cache_control`. In a valid request, entries of one hour
/// precede entries of five minutes.
fn cache_time(request: &str) -> CacheTime {
    // Quotes in a text are escaped, so this finds no text.
    let key = "\"cache_control\"";
    let mut marks = memchr::memmem::rfind_iter(request.as_bytes(), key).filter_map(|at| {
        let value = request[at + key.len()..].trim_start().strip_prefix(':')?.trim_start();
        json::is_object(value).then_some(value)
    });
    let ttl = marks.next().and_then(|mark| json::get_str(mark, "ttl"));
    match ttl.is_some_and(|ttl| ttl.is("1h")) {
        true => CacheTime::OneHour,
        false => CacheTime::FiveMinutes,
    }
}

/// The thinking blocks of a request to Anthropic that end after a byte.
fn thinking_after(request: &str, first_difference: usize) -> Vec<&str> {
    // Fast path: the type of every thinking block ends with these bytes.
    if memchr::memmem::find(request.as_bytes(), b"thinking\"").is_none() {
        return Vec::new();
    }
    let start = request.as_ptr() as usize + first_difference;
    let is_thinking = |block: &&str| {
        let kind = json::get_str(block, "type").map(Str::escaped);
        matches!(kind, Some("thinking" | "redacted_thinking"))
            && block.as_ptr() as usize + block.len() > start
    };
    let messages = json::get(request, "messages").filter(|list| json::is_list(list));
    let contents = messages.map(json::items).into_iter().flatten();
    let contents = contents.filter_map(|message| json::get(message, "content"));
    let blocks = contents.filter(|content| json::is_list(content)).flat_map(json::items);
    blocks.filter(is_thinking).collect()
}

/// Length in bytes of the common prefix of two texts, rounded down to a character boundary.
fn shared_len(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    let mut len = pairs.take_while(|(a, b)| a == b).count();
    while !one.is_char_boundary(len) || !other.is_char_boundary(len) {
        len -= 1;
    }
    len
}

#[cfg(test)]
mod tests {
    use recto_core::Approx;

    use super::*;

    fn price() -> Price {
        let (model, cache_write) = ("m".into(), Some(12.5));
        Price { model, input: 10.0, cached: 1.0, cache_write, ..Price::default() }
    }

    /// `tokens` tokens, as [`Approx`] counts.
    fn text(letter: &str, tokens: usize) -> String {
        letter.repeat(tokens * 4)
    }

    #[test]
    fn an_edit_near_the_front_pays_off_after_many_turns() {
        let before = text("a", 1_000) + &text("b", 9_000);
        let after = text("a", 1_000) + &text("c", 8_000);
        let plan = CachePlan::of(&before, &after, &Approx, &price());
        assert_eq!(plan.first_difference, 4_000);
        assert_eq!((plan.cached_tokens, plan.new_tokens, plan.old_tokens), (1_000, 8_000, 10_000));
        // 1,000 × 1 + 8,000 × 12.5 − 10,000 × 1, in millionths
        assert!((plan.cost_now - 0.091).abs() < 1e-9, "{plan:?}");
        assert!((plan.saved_per_turn - 0.001).abs() < 1e-9, "{plan:?}");
        assert_eq!(plan.pays_off, PaysOff::AfterTurns(91));
    }

    #[test]
    fn cutting_the_end_off_pays_at_once_and_growing_never_does() {
        let (long, short) = (text("a", 100), text("a", 50));
        assert_eq!(CachePlan::of(&long, &short, &Approx, &price()).pays_off, PaysOff::Now);
        let other = text("b", 100);
        assert_eq!(CachePlan::of(&long, &other, &Approx, &price()).pays_off, PaysOff::Never);
    }

    #[test]
    fn a_front_that_is_too_short_is_not_cached() {
        let price = Price { minimum: 60, ..price() };
        let before = text("a", 50) + &text("b", 50);
        let after = text("a", 50) + &text("c", 20);
        let plan = CachePlan::of(&before, &after, &Approx, &price);
        assert_eq!((plan.cached_tokens, plan.new_tokens), (0, 70));
    }

    #[test]
    fn a_character_that_differs_in_its_last_byte_is_not_cut() {
        assert_eq!(shared_len("aé", "aè"), 1);
        assert_eq!(shared_len("same", "same"), 4);
    }

    #[test]
    fn thinking_after_an_edit_is_counted() {
        let thinking = r#"{"type":"thinking","thinking":"I look.","signature":"AAAA"}"#;
        let request = |text: &str| {
            format!(
                r#"{{"messages":[{{"role":"user","content":"{text}"}},{{"role":"assistant","content":[{thinking},{{"type":"text","text":"thinking"}}]}}]}}"#
            )
        };
        let plan = CachePlan::of(&request("a"), &request("b"), &Approx, &price());
        assert_eq!((plan.thinking_blocks, plan.thinking_tokens), (1, Approx.count(thinking)));
        let end = format!("; 1 thinking block ({} tokens) loses its prefix", plan.thinking_tokens);
        assert!(plan.to_string().ends_with(&end), "{plan}");
        // Nothing before the thinking has changed.
        let longer = request("a").replace("}]}]}", "}]},{}]}");
        let plan = CachePlan::of(&request("a"), &longer, &Approx, &price());
        assert_eq!(plan.thinking_blocks, 0);
    }

    #[test]
    fn a_plan_is_displayed_in_one_line() {
        let before = text("a", 1_000) + &text("b", 9_000);
        let after = text("a", 1_000) + &text("c", 8_000);
        let plan = CachePlan::of(&before, &after, &Approx, &price());
        assert_eq!(
            plan.to_string(),
            "1000 tokens stay cached, 8000 are billed again (before: 10000); \
             costs $0.0910 now, saves $0.0010 per turn: pays off after 91 turns"
        );
        let plan = CachePlan::of(&before, &text("a", 1_000), &Approx, &price());
        assert!(plan.to_string().contains("costs −$0.0090 now"), "{plan}");
        assert!(plan.to_string().ends_with("pays off at once"), "{plan}");
    }

    #[test]
    fn entries_of_one_hour_have_their_own_price() {
        let price = Price { cache_write_1h: Some(20.0), ..price() };
        let request = |mark: &str, letter: &str| {
            let text = text(letter, 1_000);
            format!(
                r#"{{"messages":[{{"content":[{{"text":"{text}"{mark}}}]}}],"n":["cache_control"]}}"#
            )
        };
        let cost = |mark: &str| {
            let plan = CachePlan::of(&request(mark, "a"), &request(mark, "b"), &Approx, &price);
            (plan.cost_now + plan.old_tokens as f64 / 1e6) / plan.new_tokens as f64 * 1e6
        };
        let hour = cost(r#","cache_control": {"type":"ephemeral","ttl":"1h"}"#);
        let minutes = cost(r#","cache_control":{"type":"ephemeral"}"#);
        // The unchanged front costs little.
        assert!((hour - 20.0).abs() < 0.1 && (minutes - 12.5).abs() < 0.1, "{hour} {minutes}");
        assert!((cost("") - 12.5).abs() < 0.1, "{}", cost(""));
    }

    #[test]
    fn long_prompts_have_the_prices_of_their_tier() {
        let tier =
            crate::PriceTier { above: 5_000, input: 20.0, cached: 2.0, ..Default::default() };
        let price = Price { tiers: vec![tier], ..price() };
        let before = text("a", 1_000) + &text("b", 9_000);
        let after = text("a", 1_000) + &text("c", 2_000);
        let plan = CachePlan::of(&before, &after, &Approx, &price);
        // 1,000 × 1 + 2,000 × 12.5 − 10,000 × 2, in millionths
        assert!((plan.cost_now - 0.006).abs() < 1e-9, "{plan:?}");
    }
}
