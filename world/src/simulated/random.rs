//! Named random draws without any state.
//!
//! A draw is a pure function of its name: the seed, what is being decided, and where in the
//! conversation. Two conversations that reach the same decision under the same seed therefore
//! share their draws whatever happened before (common random numbers), and no order of calls can
//! change a result.

/// A point in the tree of named random draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Draw(u64);

impl Draw {
    /// The root of the tree of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    /// The point of a [`Draw::key`].
    pub(super) fn of_key(key: u64) -> Self {
        Self(key)
    }

    /// The branch called `name`.
    pub(super) fn named(self, name: &str) -> Self {
        Self(mix(self.0 ^ hash_text(name)))
    }

    /// The `index`-th branch.
    pub(super) fn at(self, index: usize) -> Self {
        Self(mix(self.0.wrapping_add(
            (index as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03),
        )))
    }

    /// The branch of a 64-bit key.
    pub(super) fn keyed(self, key: u64) -> Self {
        Self(mix(self.0 ^ mix(key)))
    }

    /// This point as a number, for use as a key.
    pub(super) fn key(self) -> u64 {
        self.0
    }

    /// A number spread evenly over [0, 1).
    pub(super) fn uniform(self) -> f64 {
        (mix(self.0) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with the given probability.
    pub(super) fn chance(self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// A number around 0 with a standard deviation of 1, between −3√2 and 3√2 (about ±4.24): the sum
    /// of six uniform draws, moved and scaled, which is close to a normal draw.
    pub(super) fn bell(self) -> f64 {
        let sum: f64 = (0..6).map(|index| self.at(index).uniform()).sum();
        (sum - 3.0) * std::f64::consts::SQRT_2
    }

    /// One of `count` indices; 0 when there is none.
    pub(super) fn pick(self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// An index drawn in proportion to its weight; `None` when no weight is positive.
    pub(super) fn weighted(self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().filter(|weight| **weight > 0.0).sum();
        if total <= 0.0 {
            return None;
        }
        let mut rest = self.uniform() * total;
        let mut last = None;
        for (index, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            last = Some(index);
            if rest < weight {
                break;
            }
            rest -= weight;
        }
        last
    }
}

/// The finaliser of the splitmix64 generator (Steele, Lea and Flood 2014): a bijection of 64-bit
/// numbers that spreads every input bit over every output bit.
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Four lanes as one number.
const fn join(lanes: [u64; 4]) -> u64 {
    let hash = mix(lanes[0] ^ lanes[1].rotate_left(17));
    let hash = mix(hash ^ lanes[2].rotate_left(17));
    mix(hash ^ lanes[3].rotate_left(17))
}

/// Texts below this length, as names of draws are, go through no lane.
const SHORTER: usize = 32;

/// What the lanes join to for a text that goes through none, by its length.
const SHORT: [u64; SHORTER] = {
    let mut joined = [0; SHORTER];
    let mut length = 0;
    while length < SHORTER {
        joined[length] = join([length as u64, 1, 2, 3]);
        length += 1;
    }
    joined
};

/// A hash of a text that is the same on every platform. Long texts are taken in four lanes at once,
/// which a processor works on side by side.
pub(super) fn hash_text(text: &str) -> u64 {
    let step = |hash: u64, block: &[u8; 8]| {
        (hash.rotate_left(5) ^ u64::from_le_bytes(*block)).wrapping_mul(0x517c_c1b7_2722_0a95)
    };
    let (blocks, rest) = text.as_bytes().as_chunks::<8>();
    let (groups, blocks) = blocks.as_chunks::<4>();
    let mut hash = if groups.is_empty() {
        SHORT[text.len()]
    } else {
        let mut lanes = [text.len() as u64, 1, 2, 3];
        for group in groups {
            for (lane, block) in lanes.iter_mut().zip(group) {
                *lane = step(*lane, block);
            }
        }
        join(lanes)
    };
    for block in blocks {
        hash = step(hash, block);
    }
    let mut last = [0_u8; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(step(hash, &last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_gives_the_same_draw_and_another_name_another() {
        let draw = Draw::new(7);
        assert_eq!(
            draw.named("a").at(3).uniform(),
            Draw::new(7).named("a").at(3).uniform()
        );
        assert_ne!(draw.named("a"), draw.named("b"));
        assert_ne!(draw.at(0), draw.at(1));
        assert_ne!(hash_text("12345678"), hash_text("12345678\0"));
    }

    #[test]
    fn draws_are_spread_evenly() {
        let draw = Draw::new(1).named("spread");
        let count = 20_000;
        let (mut sum, mut square, mut bell_square) = (0.0, 0.0, 0.0);
        for index in 0..count {
            let number = draw.at(index).uniform();
            assert!((0.0..1.0).contains(&number));
            sum += number;
            square += number * number;
            bell_square += draw.named("bell").at(index).bell().powi(2);
        }
        let count = count as f64;
        assert!((sum / count - 0.5).abs() < 0.01);
        assert!((square / count - 1.0 / 3.0).abs() < 0.01);
        assert!((bell_square / count - 1.0).abs() < 0.05);
    }

    #[test]
    fn weighted_choice_follows_the_weights() {
        let draw = Draw::new(3);
        let mut counts = [0_usize; 3];
        for index in 0..10_000 {
            counts[draw.at(index).weighted(&[1.0, 0.0, 3.0]).unwrap()] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((counts[2] as f64 / 10_000.0 - 0.75).abs() < 0.02);
        assert_eq!(draw.weighted(&[0.0, -1.0]), None);
    }
}
