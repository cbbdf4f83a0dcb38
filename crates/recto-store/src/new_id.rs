//! New ids.

use uuid::{NoContext, Timestamp, Uuid};

/// A new random id that starts with a time, in milliseconds since 1970. A time before 1970 counts as 1970: the
/// form of the id has no room for it, and the random part alone makes ids unique.
pub fn new_id(now: i64) -> Uuid {
    let millis = u64::try_from(now).unwrap_or(0);
    // The time in an id has 48 bits.
    let millis = millis.min((1 << 48) - 1);
    let nanos = (millis % 1_000) as u32 * 1_000_000;
    Uuid::new_v7(Timestamp::from_unix(NoContext, millis / 1_000, nanos))
}

/// [`new_id`] at the time of the system's clock.
#[cfg(feature = "postgres")]
pub(crate) fn new_id_now() -> Uuid {
    use std::time::{SystemTime, UNIX_EPOCH};
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    new_id(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_clock_makes_different_ids() {
        for now in [i64::MIN, -1, 0, 1, 1_731_715_200_123, 1 << 48, i64::MAX] {
            let ids = [new_id(now), new_id(now)];
            assert_ne!(ids[0], ids[1]);
            assert_eq!(ids[0].get_version_num(), 7);
        }
        let (early, late) = (new_id(1_731_715_200_123), new_id(1_731_715_200_124));
        assert!(early < late);
        assert_eq!(new_id(-1).as_u128() >> 80, 0);
    }
}
