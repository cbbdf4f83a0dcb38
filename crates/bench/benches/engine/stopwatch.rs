//! Time measurements. Each reports the first quartile of many short samples, because the machine may run other
//! work at the same time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use recto_core::{Conversation, Error, Outcome, Rollback};

type Applied = Result<(Conversation, Outcome), Error>;

/// Limits of the samples of one measurement.
#[derive(Clone, Copy)]
pub(crate) struct Sampling {
    /// Maximum number of samples.
    pub(crate) samples: usize,
    /// Maximum time of all samples together.
    pub(crate) budget: Duration,
}

impl Sampling {
    /// The time of one request of a chain, in seconds. Each request is applied to the conversation that
    /// the previous one returned, as in a program. No value is dropped while the time is measured.
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

    /// The time of one request that cannot be applied to its own result. Before each request the
    /// conversation is rolled back to the version of `start`. The rollback is not measured.
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

    /// The average time of `calls` consecutive calls. Dropping their results is measured too.
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

    /// The time of one call that changes `subject`. `tidy` runs after each call and is not measured.
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

    /// The first quartile of the samples. Sampling ends after the maximum number of samples, or after the
    /// sample with which the budget is exceeded. Before the third sample it ends only if four times the
    /// budget is exceeded.
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
