//! Quantities: what kind of number a metric is, and how its values are written.

use capo_core::estimate::Estimate;
use capo_core::metric::{MetricSpec, PROMPT_LENGTH};
use capo_workloads::KINDS;

use super::number::{NOTHING, decimals, signed};

/// A kind of number, chosen from a metric's unit and name, so that the metrics of anybody's own
/// table or agent are shown as sensibly as the built-in ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// A share in [0, 1], shown in percent.
    Rate,
    /// Thousands of something, shown with a k.
    Thousands,
    /// Seconds.
    Seconds,
    /// US dollars.
    Dollars,
    /// Things that come by the hundreds, such as characters and tokens: no decimals.
    Many,
    /// Things that come by the dozen, such as words and lines: one decimal.
    Several,
    /// Ratios, counts of rare things, and whatever else: two decimals.
    Ratio,
}

/// Digits enough to tell any two values apart that differ.
const MOST_DIGITS: usize = 17;

impl Quantity {
    /// The quantity of a metric.
    ///
    /// ```
    /// use capo_core::metric::MetricSpec;
    /// use capo_web::format::Quantity;
    ///
    /// assert_eq!(Quantity::of(&MetricSpec::prompt_length()), Quantity::Thousands);
    /// assert_eq!(Quantity::of(&MetricSpec::event("refusals", "rate", "")), Quantity::Rate);
    /// assert_eq!(Quantity::of(&MetricSpec::cost("latency", "seconds", "")), Quantity::Seconds);
    /// ```
    pub fn of(spec: &MetricSpec) -> Self {
        Self::known(spec).unwrap_or(Self::Ratio)
    }

    /// The same; none of a unit that is known of nothing but somebody's own metric.
    fn known(spec: &MetricSpec) -> Option<Self> {
        let unit = spec.unit.trim().to_lowercase();
        if is_shown_as_share(spec) {
            return Some(Self::Rate);
        }
        // An agent of somebody's own may call "rate" what has no bound.
        let within_one = spec.max.is_some_and(|max| max <= 1.0);
        let quantity = match unit.as_str() {
            "rate" | "share" | "fraction" if within_one => Self::Rate,
            "seconds" | "second" | "s" => Self::Seconds,
            "us dollars" | "dollars" | "usd" | "$" => Self::Dollars,
            "characters" | "graphemes" | "bytes" | "tokens" => Self::Many,
            "words" | "lines" => Self::Several,
            _ if spec.name == PROMPT_LENGTH || unit.starts_with("thousand ") => Self::Thousands,
            "hundred characters" => Self::Ratio,
            unit if unit.starts_with("share of ") || unit.ends_with(" per dialogue") => Self::Ratio,
            _ => return None,
        };
        Some(quantity)
    }

    /// Decimals of a value as shown.
    fn digits(self, value: f64) -> usize {
        match self {
            Self::Rate | Self::Seconds | Self::Several => 1,
            Self::Dollars if value != 0.0 && value.abs() < 0.01 => 4,
            Self::Thousands | Self::Dollars | Self::Ratio => 2,
            Self::Many => 0,
        }
    }

    /// The number that stands on screen: percent for a share.
    fn on_screen(self, value: f64) -> f64 {
        if self == Self::Rate { 100.0 * value } else { value }
    }

    /// What stands directly behind the number.
    fn suffix(self) -> &'static str {
        match self {
            Self::Rate => "%",
            Self::Thousands => "k",
            Self::Seconds => " s",
            Self::Dollars | Self::Many | Self::Several | Self::Ratio => "",
        }
    }

    fn dressed(self, number: &str) -> String {
        if number == NOTHING {
            return number.to_owned();
        }
        match (self, number.strip_prefix('−')) {
            (Self::Dollars, Some(amount)) => format!("−${amount}"),
            (Self::Dollars, None) => format!("${number}"),
            _ => format!("{number}{}", self.suffix()),
        }
    }

    /// A value: "32.4%", "0.94", "1.70k".
    pub fn value(self, value: f64) -> String {
        self.dressed(&self.bare(value))
    }

    /// [`Quantity::value`], or an en dash for none.
    pub fn optional(self, value: Option<f64>) -> String {
        value.map_or_else(|| NOTHING.to_owned(), |value| self.value(value))
    }

    /// A value without its unit, for columns that name it in their header: "32.4".
    pub fn bare(self, value: f64) -> String {
        decimals(self.on_screen(value), self.digits(value))
    }

    /// A standard error, without its unit: "6.1".
    pub fn error(self, standard_error: f64) -> String {
        decimals(self.on_screen(standard_error), self.digits(standard_error))
    }

    /// A mean with its standard error: "32.4% ± 6.1". The error of a value that does not vary is
    /// left out.
    pub fn estimate(self, estimate: &Estimate) -> String {
        self.with_error(self.value(estimate.mean), estimate)
    }

    fn with_error(self, mean: String, estimate: &Estimate) -> String {
        // Equal values differ from their mean by a rounding error.
        let certain = estimate.standard_error <= 1e-12 * estimate.mean.abs();
        if estimate.n < 2 || certain {
            mean
        } else {
            format!("{mean} ± {}", self.error(estimate.standard_error))
        }
    }

    /// A difference of two values with its sign: "−9.5 pts", "−0.82k", "+$0.0021".
    pub fn difference(self, difference: f64) -> String {
        let number = self.bare_difference(difference);
        match self {
            _ if number == NOTHING => number,
            Self::Rate => format!("{number} pts"),
            Self::Dollars => match number.chars().next() {
                Some(sign @ ('+' | '−')) => format!("{sign}${}", &number[sign.len_utf8()..]),
                _ => format!("${number}"),
            },
            _ => format!("{number}{}", self.suffix()),
        }
    }

    /// [`Quantity::difference`] without its unit: "−9.5", for the ends of an interval.
    pub fn bare_difference(self, difference: f64) -> String {
        signed(self.on_screen(difference), self.digits(difference))
    }

    /// A distance without sign, such as slack: "2.6 pts", "0.83k".
    pub fn distance(self, distance: f64) -> String {
        let distance = distance.abs();
        match self {
            Self::Rate => match self.bare(distance) {
                number if number == NOTHING => number,
                number => format!("{number} pts"),
            },
            _ => self.value(distance),
        }
    }

    /// A threshold as it was typed, with at least the digits that its kind has: "35%", "1.05",
    /// "5.0k". What was computed is rounded to two digits more than a value has.
    pub fn threshold(self, threshold: f64) -> String {
        let least = match self {
            Self::Rate | Self::Many | Self::Several | Self::Seconds => 0,
            Self::Thousands => 1,
            Self::Dollars | Self::Ratio => 2,
        };
        let shown = self.on_screen(threshold);
        let most = self.digits(threshold) + 2;
        let digits = (least..most).find(|digits| {
            // Multiplying by a hundred may leave a last digit that nobody typed.
            let rounded = format!("{shown:.digits$}").parse::<f64>();
            rounded.is_ok_and(|rounded| (rounded - shown).abs() <= 1e-9 * shown.abs().max(1e-3))
        });
        self.dressed(&decimals(shown, digits.unwrap_or(most)))
    }

    /// A threshold with its sign: "≤ 35%".
    pub fn limit(self, threshold: f64) -> String {
        format!("≤ {}", self.threshold(threshold))
    }

    /// A cost held against its threshold. Comparisons use full precision, so both may round to the
    /// same text although the cost is above: it then shows as many digits more as tell them apart.
    ///
    /// ```
    /// use capo_web::format::Quantity;
    ///
    /// assert_eq!(Quantity::Rate.against(0.3504, 0.35), "35.04%");
    /// assert_eq!(Quantity::Rate.against(0.3496, 0.35), "35.0%");
    /// ```
    pub fn against(self, value: f64, threshold: f64) -> String {
        self.dressed(&self.bare_against(value, threshold))
    }

    /// [`Quantity::estimate`] of a cost held against its threshold.
    pub fn estimate_against(self, estimate: &Estimate, threshold: f64) -> String {
        self.with_error(self.against(estimate.mean, threshold), estimate)
    }

    /// [`Quantity::against`] without the unit.
    pub fn bare_against(self, value: f64, threshold: f64) -> String {
        let (shown, limit) = (self.on_screen(value), self.on_screen(threshold));
        let least = self.digits(value);
        if value <= threshold || !value.is_finite() {
            return decimals(shown, least);
        }
        let apart = |digits: &usize| decimals(shown, *digits) != decimals(limit, *digits);
        let digits = (least..MOST_DIGITS).find(apart).unwrap_or(MOST_DIGITS);
        decimals(shown, digits)
    }

    /// The unit as a column's header or an axis names it; the metric's own where there is nothing
    /// shorter.
    pub fn unit(self, spec: &MetricSpec) -> String {
        match self {
            Self::Rate => "%".into(),
            Self::Thousands if spec.name == PROMPT_LENGTH => "k chars".into(),
            Self::Seconds => "s".into(),
            Self::Dollars => "$".into(),
            Self::Ratio if spec.unit.starts_with("share of ") => "ratio".into(),
            _ => spec.unit.clone(),
        }
    }

    /// What one example measured, before averaging: "yes" and "no" for what either is or is not,
    /// a plain number for what was counted, else the value.
    pub fn measurement(self, spec: &MetricSpec, value: f64) -> String {
        match (self, value) {
            (Self::Rate, _) if is_shown_as_share(spec) => {
                decimals(value, if value.fract() == 0.0 { 0 } else { 2 })
            }
            (Self::Rate, 1.0) => "yes".into(),
            (Self::Rate, 0.0) => "no".into(),
            _ => self.value(value),
        }
    }
}

/// Whether a kind of workload wants the mean of a metric that counts shown as a share.
fn is_shown_as_share(spec: &MetricSpec) -> bool {
    let name = (spec.name.as_str(), spec.unit.as_str());
    KINDS.iter().any(|kind| kind.shown_as_share.contains(&name))
}

#[cfg(test)]
mod tests {
    use capo_core::study::{Format, Study, Table};
    use capo_workloads::files::MemoryFiles;
    use capo_workloads::{Declared, Kind};
    use serde_json::{Value, json};

    use super::*;
    use crate::schemas;

    fn of(name: &str, unit: &str, max: Option<f64>) -> Quantity {
        Quantity::of(&MetricSpec {
            max,
            ..MetricSpec::cost(name, unit, "")
        })
    }

    #[test]
    fn units_decide_how_a_metric_is_shown() {
        for (name, unit, max, expected) in [
            ("success", "rate", Some(1.0), Quantity::Rate),
            ("anything", "rate", None, Quantity::Ratio),
            ("human_requests", "calls per dialogue", None, Quantity::Rate),
            ("human_requests", "minutes", None, Quantity::Ratio),
            ("tool_errors", "calls per dialogue", None, Quantity::Ratio),
            ("excess_tools", "share of reference calls", None, Quantity::Ratio),
            ("prompt_length", "thousand characters", None, Quantity::Thousands),
            ("verbosity", "hundred characters", None, Quantity::Ratio),
            ("cost", "US dollars", None, Quantity::Dollars),
            ("length", "tokens", None, Quantity::Many),
            ("length", "words", None, Quantity::Several),
        ] {
            assert_eq!(of(name, unit, max), expected, "{name} in {unit}");
        }
    }

    /// Settings of each type and unit of metric that a table can declare.
    fn declarable() -> Vec<Value> {
        let types = &schemas::workload("table")["properties"]["metric"]["items"]["oneOf"];
        let of_type = |of: &Value| {
            let keys = of["required"].as_array().unwrap().iter();
            let value = |key: &str| match &of["properties"][key] {
                text if text["type"] == "string" => json!(text["const"].as_str().unwrap_or("a")),
                truth if truth["type"] == "boolean" => json!(true),
                _ => json!({}),
            };
            let least: Value = keys
                .map(|key| (key.as_str().unwrap(), value(key.as_str().unwrap())))
                .collect();
            let units = of["properties"]["unit"]["oneOf"].as_array();
            let mut metrics = vec![least.clone()];
            for unit in units.into_iter().flatten() {
                metrics.push(least.clone());
                metrics.last_mut().unwrap()["unit"] = unit["const"].clone();
            }
            metrics
        };
        types.as_array().unwrap().iter().flat_map(of_type).collect()
    }

    #[test]
    fn every_unit_that_comes_with_capo_is_known() {
        let beginning = |kind: &Kind| Study::parse(kind.beginning, Format::Toml).unwrap().workload;
        let table = |metric: Value| {
            json!({ "kind": "table", "metric": [metric] })
                .as_object()
                .unwrap()
                .clone()
        };
        let tables: Vec<Table> = declarable().into_iter().map(table).collect();
        assert!(tables.len() > 20, "{tables:?}");
        for workload in KINDS.iter().map(beginning).chain(tables) {
            let built = || capo_workloads::build(&workload, &MemoryFiles::new(), 0).unwrap();
            let declared = capo_workloads::declared(&workload).unwrap_or_else(|| Declared::of(&built()));
            for spec in declared.metrics {
                assert!(Quantity::known(&spec).is_some(), "{} in {}", spec.name, spec.unit);
            }
        }
    }

    #[test]
    fn values_are_written_as_their_kind() {
        for (quantity, value, text) in [
            (Quantity::Rate, 0.324_3, "32.4%"),
            (Quantity::Ratio, 0.94, "0.94"),
            (Quantity::Thousands, 1.703, "1.70k"),
            (Quantity::Seconds, 10.42, "10.4 s"),
            (Quantity::Dollars, 0.0021, "$0.0021"),
            (Quantity::Dollars, 0.25, "$0.25"),
            (Quantity::Many, 1204.4, "1,204"),
            (Quantity::Several, 87.25, "87.2"),
            (Quantity::Ratio, -0.13, "−0.13"),
            (Quantity::Rate, f64::NAN, NOTHING),
        ] {
            assert_eq!(quantity.value(value), text);
        }
        assert_eq!(Quantity::Rate.optional(None), NOTHING);
    }

    #[test]
    fn errors_have_no_unit_and_certain_values_no_error() {
        let estimate = |mean, standard_error| Estimate {
            mean,
            standard_error,
            n: 74,
        };
        assert_eq!(Quantity::Rate.estimate(&estimate(0.324, 0.061)), "32.4% ± 6.1");
        assert_eq!(Quantity::Ratio.estimate(&estimate(0.94, 0.09)), "0.94 ± 0.09");
        assert_eq!(Quantity::Thousands.estimate(&estimate(1.7, 0.0)), "1.70k");
    }

    #[test]
    fn differences_have_signs_and_slack_has_none() {
        assert_eq!(Quantity::Rate.difference(-0.0949), "−9.5 pts");
        assert_eq!(Quantity::Rate.difference(0.25), "+25.0 pts");
        assert_eq!(Quantity::Thousands.difference(-0.816), "−0.82k");
        assert_eq!(Quantity::Ratio.difference(0.0), "0.00");
        assert_eq!(Quantity::Dollars.difference(-0.0021), "−$0.0021");
        assert_eq!(Quantity::Dollars.difference(0.0), "$0.00");
        assert_eq!(Quantity::Rate.distance(-0.026), "2.6 pts");
        assert_eq!(Quantity::Thousands.distance(0.83), "0.83k");
    }

    #[test]
    fn thresholds_stand_as_typed() {
        for (quantity, threshold, text) in [
            (Quantity::Rate, 0.35, "≤ 35%"),
            (Quantity::Rate, 0.07, "≤ 7%"),
            (Quantity::Rate, 0.355, "≤ 35.5%"),
            (Quantity::Ratio, 1.05, "≤ 1.05"),
            (Quantity::Ratio, 0.6, "≤ 0.60"),
            (Quantity::Thousands, 5.0, "≤ 5.0k"),
            (Quantity::Thousands, 2.75, "≤ 2.75k"),
            (Quantity::Seconds, 10.0, "≤ 10 s"),
            (Quantity::Rate, 0.605_405_405_4, "≤ 60.541%"),
            (Quantity::Rate, 0.0, "≤ 0%"),
            (Quantity::Dollars, 0.0021, "≤ $0.0021"),
        ] {
            assert_eq!(quantity.limit(threshold), text);
        }
    }

    #[test]
    fn one_example_either_succeeded_or_did_not() {
        let success = MetricSpec::objective("success", "");
        let requests = MetricSpec::cost("human_requests", "calls per dialogue", "");
        assert_eq!(Quantity::Rate.measurement(&success, 1.0), "yes");
        assert_eq!(Quantity::Rate.measurement(&success, 0.5), "50.0%");
        assert_eq!(Quantity::Rate.measurement(&requests, 0.0), "0");
        assert_eq!(Quantity::Ratio.measurement(&requests, 0.333), "0.33");
    }

    #[test]
    fn what_is_over_never_looks_equal() {
        assert_eq!(Quantity::Rate.against(0.35, 0.35), "35.0%");
        assert_eq!(Quantity::Rate.against(0.351_4, 0.35), "35.1%");
        assert_eq!(Quantity::Rate.against(0.350_000_1, 0.35), "35.00001%");
        assert_eq!(Quantity::Ratio.against(1.0541, 1.05), "1.054");
        assert_eq!(Quantity::Ratio.against(1.051, 1.05), "1.051");
        assert_eq!(Quantity::Rate.against(0.350_412, 0.3504), "35.041%");
        let next = f64::from_bits(1.05_f64.to_bits() + 1);
        assert_ne!(Quantity::Ratio.against(next, 1.05), "1.05");
    }
}
