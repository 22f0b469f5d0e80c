//! Which seeds an experiment runs.

use std::fmt;
use std::str::FromStr;

/// Which seeds to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl Seeds {
    /// The seeds, in the order given, without repeats.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().copied()
    }
}

impl Default for Seeds {
    fn default() -> Self {
        Self((0..5).collect())
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
        let seeds = if text.contains(',') {
            let parts = text.split(',').filter(|part| !part.trim().is_empty());
            parts.map(number).collect::<Result<Vec<u64>, String>>()?
        } else {
            (0..number(text)?).collect()
        };
        let mut distinct = Vec::new();
        for seed in seeds {
            if !distinct.contains(&seed) {
                distinct.push(seed);
            }
        }
        if distinct.is_empty() {
            return Err("at least one seed is needed; write how many (5) or which (0,3,7)".into());
        }
        Ok(Self(distinct))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_list() {
        let seeds = |text: &str| text.parse::<Seeds>().map(|seeds| seeds.0);
        assert_eq!(seeds("3").unwrap(), [0, 1, 2]);
        assert_eq!(seeds("7,").unwrap(), [7]);
        assert_eq!(seeds("5, 1,5").unwrap(), [5, 1]);
        assert!(seeds("0").unwrap_err().contains("at least one seed"));
        assert!(seeds(",").unwrap_err().contains("at least one seed"));
        assert_eq!(
            seeds("a").unwrap_err(),
            "`a` is no seed; write how many (5) or which (0,3,7)"
        );
    }
}
