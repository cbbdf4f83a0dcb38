//! Taking times on a machine that others use as well: many short samples, of which a quarter were
//! quicker than the one that is reported.

use std::hint::black_box;
use std::time::{Duration, Instant};

use recto_core::{Conversation, Error, Outcome, Rollback};

type Applied = Result<(Conversation, Outcome), Error>;

/// How patient a run is.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// How many samples are taken of something short.
    pub(crate) samples: usize,
    /// How long the samples of something long may take together.
    pub(crate) budget: Duration,
}

impl Patience {
    /// The time of one step along a chain of requests, in seconds. Every step goes on from what the
    /// step before returned, as a program does; all values stay alive until the clock has stopped.
    pub(crate) fn chain(
        self,
        start: &Conversation,
        steps: usize,
        mut step: impl FnMut(&Conversation, usize) -> Applied,
    ) -> f64 {
        let mut kept = Vec::with_capacity(steps);
        let mut number = 0;
        self.samples(|| {
            let mut current = start.clone();
            let clock = Instant::now();
            for _ in 0..steps {
                let (next, outcome) = step(&current, number).expect("the request is right");
                kept.push((std::mem::replace(&mut current, next), outcome));
                number += 1;
            }
            let time = clock.elapsed().as_secs_f64() / steps as f64;
            kept.clear();
            time
        })
    }

    /// The time of one request that cannot be repeated on its own result: before each, and off the
    /// clock, the conversation rolls back to where it started.
    pub(crate) fn each(
        self,
        start: &Conversation,
        mut step: impl FnMut(&Conversation, usize) -> Applied,
    ) -> f64 {
        let home = start.version();
        let mut current = start.clone();
        let mut number = 0;
        self.samples(|| {
            current = current.apply(Rollback::ToVersion(home), 0).expect("it exists").0;
            let clock = Instant::now();
            let applied = black_box(step(&current, number).expect("the request is right"));
            let time = clock.elapsed().as_secs_f64();
            current = applied.0;
            number += 1;
            time
        })
    }

    /// The time of one call, out of `calls` in a row. What it returns is dropped on the clock.
    pub(crate) fn calls<T>(self, calls: usize, mut call: impl FnMut(usize) -> T) -> f64 {
        let mut number = 0;
        self.samples(|| {
            let clock = Instant::now();
            for _ in 0..calls {
                black_box(call(number));
                number += 1;
            }
            clock.elapsed().as_secs_f64() / calls as f64
        })
    }

    /// The time of one call that changes `subject`; `tidy` follows off the clock.
    pub(crate) fn tidied<S>(
        self,
        subject: &mut S,
        mut call: impl FnMut(&mut S, usize),
        mut tidy: impl FnMut(&mut S),
    ) -> f64 {
        let mut number = 0;
        self.samples(|| {
            let clock = Instant::now();
            call(subject, number);
            let time = clock.elapsed().as_secs_f64();
            tidy(subject);
            number += 1;
            time
        })
    }

    /// The first quartile of as many samples as the budget allows: three, or fewer if even they
    /// take several times too long.
    pub(crate) fn samples(self, mut sample: impl FnMut() -> f64) -> f64 {
        let begin = Instant::now();
        let mut times = Vec::with_capacity(self.samples);
        while times.len() < self.samples {
            times.push(sample());
            let enough = if times.len() < 3 { self.budget * 4 } else { self.budget };
            if begin.elapsed() > enough {
                break;
            }
        }
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 4]
    }
}
