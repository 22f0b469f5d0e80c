//! Both settings as the page's address holds them: the values of the controls, by their ids, that differ from the first scene.

use super::knobs::{KNOBS, MOST_AVERAGED, STEPS};
use super::setting::{SCENES, Setting};

/// The names of the two sides.
pub(super) const LETTERS: [&str; 2] = ["A", "B"];

/// The settings of an address, of which `query` gives each value by its key; what cannot be set here is as in the first scene.
pub(super) fn read(query: impl Fn(&str) -> Option<String>) -> [Setting; 2] {
    let mut settings = SCENES[0].settings;
    for (letter, setting) in LETTERS.iter().zip(&mut settings) {
        let said = |key: &str| query(&format!("{letter}-{key}"));
        for knob in &KNOBS {
            let [least, most, step] = knob.range;
            let is_on_slider = |value: &f64| {
                let steps = (value - least) / step;
                (least..=most).contains(value) && (steps - steps.round()).abs() < 1e-6
            };
            let value = said(knob.key).and_then(|value| value.parse().ok());
            if let Some(value) = value.filter(is_on_slider) {
                (knob.write)(setting, value);
            }
        }
        let best = said("best").and_then(|best| best.parse().ok());
        if let Some(best) = best.filter(|best| (1..=MOST_AVERAGED).contains(best)) {
            setting.best = best;
        }
        let step = said("step").and_then(|step| STEPS.into_iter().find(|name| name.to_string() == step));
        setting.step = step.unwrap_or(setting.step);
    }
    settings
}

/// The address of settings.
pub(super) fn href(settings: [Setting; 2]) -> String {
    let values = |setting: &Setting| {
        let turned = KNOBS
            .iter()
            .map(|knob| (knob.key, (knob.read)(setting).to_string()));
        let chosen = [
            ("best", setting.best.to_string()),
            ("step", setting.step.to_string()),
        ];
        turned.chain(chosen).collect::<Vec<_>>()
    };
    let mut turned = Vec::new();
    for ((letter, setting), usual) in LETTERS.iter().zip(&settings).zip(&SCENES[0].settings) {
        let both = values(setting).into_iter().zip(values(usual));
        let others = both.filter(|(own, usual)| own != usual);
        turned.extend(others.map(|((key, value), _)| format!("{letter}-{key}={value}")));
    }
    if turned.is_empty() {
        "/dynamics".to_owned()
    } else {
        format!("/dynamics?{}", turned.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(href: &str) -> impl Fn(&str) -> Option<String> {
        let (_, query) = href.split_once('?').unwrap_or_default();
        move |wanted: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            Some(pairs.find(|(key, _)| *key == wanted)?.1.to_owned())
        }
    }

    #[test]
    fn an_address_brings_every_scene_back() {
        assert_eq!(href(SCENES[0].settings), "/dynamics");
        assert_eq!(href(SCENES[2].settings), "/dynamics?B-requests=0.37&B-step=fixed");
        for scene in &SCENES {
            assert_eq!(
                read(query(&href(scene.settings))),
                scene.settings,
                "{}",
                scene.name
            );
        }
        let [a, _] = SCENES[0].settings;
        let own = [
            Setting {
                best: 3,
                gains: [0.5, 10.0, 0.0],
                ..a
            },
            a,
        ];
        assert_eq!(read(query(&href(own))), own);
    }

    #[test]
    fn what_no_control_can_say_is_left_out() {
        let wrong = "?A-beta=1e9&A-tools=0.75&A-noise=NaN&A-best=0&B-step=none&B-cap=";
        assert_eq!(read(query(wrong)), SCENES[0].settings);
    }
}
