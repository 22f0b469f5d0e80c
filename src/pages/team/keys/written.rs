//! What an administrator writes of a key, read and written.

use capo_api::{AllowedModel, DailyLimits, ProjectName, TokenPrice};
use capo_models::ProviderName;
use capo_models::providers::Provider;

use super::super::form::named;
use crate::format::{self, typed};

/// Providers that take keys: all but models in the page or the program itself.
pub(super) fn providers() -> impl Iterator<Item = &'static Provider> {
    capo_models::providers::PROVIDERS
        .iter()
        .filter(|provider| !provider.in_process)
}

/// What a provider is called on screen.
pub(super) fn title(provider: &str) -> &str {
    ProviderName::find(provider).map_or(provider, |provider| provider.get().title)
}

/// Where the API is, if that is not the provider's own place.
pub(super) fn base_url(provider: &str, text: &str) -> Result<Option<String>, String> {
    let usual = ProviderName::find(provider).and_then(|provider| provider.get().base_url);
    match text.trim() {
        "" if usual.is_none() => Err("Write where its API is, as https://gpu.example.org/v1.".into()),
        "" => Ok(None),
        address => Ok(Some(address.to_owned())),
    }
}

/// Names of projects, parted by commas or spaces.
pub(super) fn projects(text: &str) -> Result<Vec<String>, String> {
    let names = text
        .split(|letter: char| letter == ',' || letter.is_whitespace())
        .filter(|name| !name.is_empty());
    names
        .map(|name| named::<ProjectName>(name).map(|name| name.as_str().to_owned()))
        .collect()
}

/// Models, one a line: a name, then prices per million tokens read and written, then whatever else is said of it.
pub(super) fn models(text: &str) -> Result<Vec<AllowedModel>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let models: Vec<AllowedModel> = lines.map(model).collect::<Result<_, _>>()?;
    if models.is_empty() {
        return Err("Name the models that may be asked; any other is refused.".into());
    }
    Ok(models)
}

fn model(line: &str) -> Result<AllowedModel, String> {
    let wrong = || {
        format!(
            "“{line}”: write a name, or a name and dollars per million tokens read and written, as m 0.25 2."
        )
    };
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    let (mut plain, mut cached_input, mut cache_write, mut most) = (Vec::new(), None, None, None);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or(("", word));
        let number = value
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0);
        let number = number.ok_or_else(wrong)?;
        match key {
            "" => plain.push(number),
            CACHED => cached_input = Some(number),
            WRITE => cache_write = Some(number),
            MOST => most = Some(value.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        }
    }
    let price = match plain[..] {
        [] if cached_input.or(cache_write).is_none() => None,
        [input, output] => Some(TokenPrice {
            input,
            output,
            cached_input,
            cache_write,
        }),
        _ => return Err(wrong()),
    };
    Ok(AllowedModel {
        name,
        price,
        default_max_output: most,
    })
}

const CACHED: &str = "cached_input";
const WRITE: &str = "cache_write";
const MOST: &str = "default_max_output";

/// Models as they stand in the field.
pub(super) fn models_text(models: &[AllowedModel]) -> String {
    let line = |model: &AllowedModel| {
        let mut words = vec![model.name.clone()];
        if let Some(price) = &model.price {
            words.extend([price.input, price.output].map(|number| number.to_string()));
            words.extend(price.cached_input.map(|number| format!("{CACHED}={number}")));
            words.extend(price.cache_write.map(|number| format!("{WRITE}={number}")));
        }
        words.extend(model.default_max_output.map(|tokens| format!("{MOST}={tokens}")));
        words.join(" ")
    };
    models.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The provider's key; empty only where nothing says why one is wanted.
pub(super) fn secret(text: &str, wanted: Option<&'static str>) -> Result<String, String> {
    match (text.trim(), wanted) {
        ("", Some(why)) => Err(why.into()),
        (secret, _) => Ok(secret.to_owned()),
    }
}

/// Dollars a day; no limit where nothing is written.
pub(super) fn dollars(text: &str) -> Result<Option<f64>, String> {
    match typed::number(text.trim().trim_start_matches('$'))? {
        Some(usd) if usd < 0.0 => Err("Write 0 dollars or more, or nothing for no limit.".into()),
        usd => Ok(usd),
    }
}

/// Requests a day; no limit where nothing is written.
pub(super) fn requests(text: &str) -> Result<Option<u64>, String> {
    Ok(typed::whole(text)?.map(|requests| requests as u64))
}

/// Limits in words.
pub(super) fn limits(limits: DailyLimits) -> String {
    let usd = limits.usd.map(|usd| format::dollars(Some(usd)));
    let requests = limits.requests.map(asked);
    let words: Vec<String> = usd.into_iter().chain(requests).collect();
    if words.is_empty() {
        "none".into()
    } else {
        words.join(", ")
    }
}

/// How many requests, in words.
pub(super) fn asked(requests: u64) -> String {
    let noun = if requests == 1 { "request" } else { "requests" };
    format!("{} {noun}", format::count(requests))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_as_they_are_written() {
        let text =
            "gpt-5-mini\ngpt-* 0.25 2 cached_input=0.025 cache_write=0.3 default_max_output=4096\nm 0 0";
        let read = models(&format!("\n {text} \n")).unwrap();
        assert_eq!(models_text(&read), text);
        assert_eq!(read[0].price, None);
        assert_eq!(read[1].default_max_output, Some(4096));
        for wrong in [
            "",
            "m 1",
            "m 1 2 3",
            "m 1 -2",
            "m 1 inf",
            "m cached_input=1",
            "m 1 2 other=3",
            "m 1 2 default_max_output=1.5",
        ] {
            assert!(models(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_provider_without_a_place_of_its_own_wants_one() {
        assert_eq!(base_url("openai", " "), Ok(None));
        assert!(base_url("openai-compatible", "").is_err());
        assert_eq!(
            base_url("openai-compatible", " http://a/v1 "),
            Ok(Some("http://a/v1".into()))
        );
        assert!(providers().all(|provider| !["simulated", "local"].contains(&provider.name)));
    }

    #[test]
    fn projects_are_parted_by_commas_or_spaces() {
        assert_eq!(
            projects("help-desk, search  more").unwrap(),
            ["help-desk", "search", "more"]
        );
        assert_eq!(projects("").unwrap(), Vec::<String>::new());
        assert!(projects("Help desk").is_err());
    }

    #[test]
    fn what_is_left_empty_has_no_limit() {
        assert_eq!((dollars(""), requests(" ")), (Ok(None), Ok(None)));
        assert_eq!(
            (dollars("$2.50"), requests("1,000")),
            (Ok(Some(2.5)), Ok(Some(1000)))
        );
        assert!(dollars("-1").is_err() && requests("1.5").is_err());
        assert_eq!(limits(DailyLimits::default()), "none");
        let both = DailyLimits {
            usd: Some(2.5),
            requests: Some(1),
        };
        assert_eq!(limits(both), "$2.50, 1 request");
    }
}
