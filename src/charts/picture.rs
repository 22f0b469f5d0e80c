//! A chart as a file of its own: its marks as they stand on the page, in the light palette, with nothing of the page's sheet.

use leptos::prelude::{document, window};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, Node, XmlSerializer};

use super::measure::Size;

/// What is painted, and the properties by which a sheet paints it; text has more of them.
const PAINTED: &str = "line, rect, path, circle, text";
const PAINT: &str = "fill stroke stroke-width stroke-dasharray stroke-linecap stroke-linejoin opacity";
const OF_TEXT: &str = " paint-order font-family font-size font-style font-weight";

/// Room for ticks and titles at the left, above, at the right and below, in pixels.
const ROOM: [f64; 4] = [56.0, 32.0, 32.0, 48.0];

/// A line of the sentence below, and a letter of it on average, in pixels.
const LINE: f64 = 19.0;
const LETTER: f64 = 6.9;

/// The SVG of a plot over a sentence, and its size.
///
/// # Errors
/// What the browser says.
pub fn picture(plot: &Element, sentence: &str) -> Result<(String, Size), JsValue> {
    let serializer = XmlSerializer::new()?;
    let xml = |node: &Node| serializer.serialize_to_string(node);
    let text = |words: &str| xml(&document().create_text_node(&sayable(words)));
    let room = plot.get_bounding_client_rect();
    let [left, top, right, below] = ROOM;
    let (width, end) = (
        (room.width() + left + right).round(),
        (room.height() + top + below).round(),
    );
    let (marks, hatch) = in_light(|| {
        let hatch = document().query_selector("#hatch")?.ok_or(JsValue::NULL)?;
        Ok((painted(plot)?, painted(&hatch)?))
    })?;
    let places = [left, top, room.width(), room.height()].map(|place| place.to_string());
    for (name, place) in ["x", "y", "width", "height"].into_iter().zip(&places) {
        marks.set_attribute(name, place)?;
    }
    marks.set_attribute("overflow", "visible")?;
    let (marks, hatch, title) = (xml(&marks)?, xml(&hatch)?, text(sentence)?);
    let lines = wrapped(sentence, ((width - 32.0) / LETTER) as usize);
    let height = end + LINE * (lines.len() as f64 + 0.5).round();
    let line = |words: &String| Ok(format!(r#"<tspan x="16" dy="{LINE}">{}</tspan>"#, text(words)?));
    let lines: Vec<String> = lines.iter().map(line).collect::<Result<_, JsValue>>()?;
    let drawn = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img"><title>{title}</title><rect width="100%" height="100%" fill="#fbfcfb"/>{hatch}{marks}<text y="{end}" font-family="system-ui, sans-serif" font-size="13" fill="#141d1e">{}</text></svg>"##,
        lines.concat()
    );
    Ok((drawn, Size { width, height }))
}

/// Whatever the reader's theme, which is put back before anything is painted.
fn in_light<T>(draw: impl FnOnce() -> Result<T, JsValue>) -> Result<T, JsValue> {
    let root = document().document_element().ok_or(JsValue::NULL)?;
    let chosen = root.get_attribute("data-theme");
    root.set_attribute("data-theme", "light")?;
    let drawn = draw();
    match chosen {
        Some(chosen) => root.set_attribute("data-theme", &chosen)?,
        None => root.remove_attribute("data-theme")?,
    }
    drawn
}

/// A copy that says itself how it is painted.
fn painted(drawn: &Element) -> Result<Element, JsValue> {
    let copy: Element = drawn.clone_node_with_deep(true)?.unchecked_into();
    let (all, copies) = (drawn.query_selector_all("*")?, copy.query_selector_all("*")?);
    for (one, copied) in (0..all.length()).filter_map(|place| all.get(place).zip(copies.get(place))) {
        let (one, copied): (Element, Element) = (one.unchecked_into(), copied.unchecked_into());
        // An unseen disc is what a pointer hits.
        if one.matches(".c-hit")? {
            copied.remove();
            continue;
        }
        if one.matches(PAINTED)? {
            let style = window().get_computed_style(&one)?.ok_or(JsValue::NULL)?;
            let of_text = if one.matches("text")? { OF_TEXT } else { "" };
            for property in PAINT.split(' ').chain(of_text.split_whitespace()) {
                copied.set_attribute(property, &style.get_property_value(property)?)?;
            }
        }
        // Without the page there are no cards.
        if let Some(sentence) = copied.get_attribute("aria-label") {
            let title = document().create_element_ns(copied.namespace_uri().as_deref(), "title")?;
            title.set_text_content(Some(&sayable(&sentence)));
            copied.prepend_with_node_1(&title)?;
        }
        for of_page in ["class", "tabindex", "data-point", "data-id"] {
            copied.remove_attribute(of_page)?;
        }
    }
    Ok(copy)
}

/// Without what XML has no way to say.
fn sayable(text: &str) -> String {
    let unsayable = |letter: char| letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}');
    text.replace(unsayable, " ")
}

/// The lines of a sentence, of at most so many letters each where no word is longer.
fn wrapped(sentence: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_broken_between_words_into_what_xml_can_say() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable", 3), ["unbreakable"]);
        assert_eq!(sayable("a\u{8}b\u{ffff}ü"), "a b ü");
    }
}
