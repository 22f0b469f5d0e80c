//! Random seeds of an experiment's runs.

use std::fmt;
use std::str::FromStr;

use indexmap::IndexSet;

/// The most seeds that are taken: more is a slip of the finger, and would not end in a lifetime.
const MOST: usize = 10_000;

/// Which seeds to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(IndexSet<u64>);

impl Seeds {
    /// So many, from 0 on.
    pub fn first(count: u64) -> Self {
        Self((0..count).collect())
    }

    /// The seeds, in the order given, without repeats.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().copied()
    }
}

impl Default for Seeds {
    fn default() -> Self {
        Self::first(5)
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.iter().map(|seed| seed.to_string()).collect();
        f.write_str(&texts.join(","))
    }
}

impl FromStr for Seeds {
    type Err = String;

    /// `5` is how many, from 0 on; `0,3,7` is which; a single one is written with a comma: `7,`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            part.trim().parse::<u64>().map_err(|_| {
                format!(
                    "`{}` is no seed; write how many (5) or which (0,3,7)",
                    part.trim()
                )
            })
        };
        let seeds: Box<dyn Iterator<Item = u64>> = if text.contains(',') {
            let parts = text.split(',').filter(|part| !part.trim().is_empty());
            let listed = parts.map(number).collect::<Result<Vec<u64>, String>>()?;
            Box::new(listed.into_iter())
        } else {
            Box::new(0..number(text)?)
        };
        let distinct: IndexSet<u64> = seeds.take(MOST + 1).collect();
        match distinct.len() {
            0 => Err("at least one seed is needed; write how many (5) or which (0,3,7)".into()),
            1..=MOST => Ok(Self(distinct)),
            _ => Err(format!(
                "at most {MOST} seeds are taken; write how many (5) or which (0,3,7)"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_list() {
        let seeds = |text: &str| {
            text.parse::<Seeds>()
                .map(|seeds| seeds.iter().collect::<Vec<_>>())
        };
        assert_eq!(seeds("3").unwrap(), [0, 1, 2]);
        assert_eq!(seeds("7,").unwrap(), [7]);
        assert_eq!(seeds("5, 1,5").unwrap(), [5, 1]);
        assert!(seeds("0").unwrap_err().contains("at least one seed"));
        assert!(seeds(",").unwrap_err().contains("at least one seed"));
        assert_eq!(seeds("10000").unwrap().len(), 10_000);
        for many in ["10001", "1000000000000", "18446744073709551615"] {
            assert!(seeds(many).unwrap_err().contains("at most 10000"), "{many}");
        }
        assert_eq!(
            seeds("a").unwrap_err(),
            "`a` is no seed; write how many (5) or which (0,3,7)"
        );
    }
}
