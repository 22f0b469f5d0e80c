//! Files for taking away, made in the page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capo_core::ids::CandidateId;
use capo_core::journal::{in_report, without_conversations};
use gloo_net::http::Request;
use gloo_timers::callback::Timeout;
use js_sys::{Array, Uint8Array};
use leptos::prelude::{document, untrack};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, BlobPropertyBag, HtmlAnchorElement, HtmlImageElement, OffscreenCanvas,
    OffscreenCanvasRenderingContext2d, Url,
};

use crate::charts::measure::Size;
use crate::live::{Run, document_meta};
use crate::storage::{Lines, Storage};
use crate::{format, gzip};

/// A browser has begun to read a file it was offered after so long, in milliseconds.
const READ: u32 = 60_000;

const SVG: &str = "image/svg+xml";

/// Pixels of a picture to one of the drawing.
const SHARPNESS: f64 = 2.0;

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Plain text.
    Text,
    /// One JSON value.
    Json,
    /// A report with headings and tables.
    Markdown,
    /// A journal, one JSON object on each line.
    Journal,
    /// A drawing.
    Svg,
    /// A program, and how names of such files end.
    Code(&'static str),
}

impl Kind {
    /// The ending of its files' names.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Json => "json",
            Self::Markdown => "md",
            Self::Journal => "jsonl",
            Self::Svg => "svg",
            Self::Code(ending) => ending,
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Text | Self::Code(_) => "text/plain;charset=utf-8",
            Self::Json => "application/json",
            Self::Markdown => "text/markdown;charset=utf-8",
            Self::Journal => "application/x-ndjson",
            Self::Svg => SVG,
        }
    }
}

/// A name for files about a study or a run of it, without an ending, from the study's name and the
/// returned prompt:
/// "help-desk-3c4434".
///
/// ```
/// use capo_core::ids::CandidateId;
/// use capo_web::download::file_name;
///
/// assert_eq!(file_name("Help desk, λ = 1!", None), "help-desk-1");
/// assert_eq!(file_name("Help desk", Some(CandidateId::of("abc"))), "help-desk-ba7816");
/// assert_eq!(file_name("…", None), "run");
/// ```
pub fn file_name(study: &str, best: Option<CandidateId>) -> String {
    let plain: String = study
        .to_lowercase()
        .chars()
        .map(|character| {
            if character.is_ascii_alphanumeric() {
                character
            } else {
                ' '
            }
        })
        .collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let study = if words.is_empty() {
        "run".to_owned()
    } else {
        words.join("-")
    };
    match best {
        Some(best) => format!("{study}-{}", format::id(&best)),
        None => study,
    }
}

/// Offers a file made of `parts`, one after another, under `name` without its ending.
///
/// # Errors
/// When the browser makes no file of it, in words.
pub fn offer(name: &str, kind: Kind, parts: impl IntoIterator<Item = String>) -> Result<(), String> {
    let whole = format!("{name}.{}", kind.ending());
    offer_as(&whole, kind.media_type(), parts)
}

/// Offers a text as a file of this whole name.
///
/// # Errors
/// As [`offer`].
pub fn offer_text(name: &str, text: String) -> Result<(), String> {
    offer_as(name, Kind::Text.media_type(), [text])
}

fn offer_as(name: &str, media_type: &str, parts: impl IntoIterator<Item = String>) -> Result<(), String> {
    offer_blob(name, &blob(media_type, parts)?)
}

fn blob(media_type: &str, parts: impl IntoIterator<Item = String>) -> Result<Blob, String> {
    let parts: Array = parts.into_iter().map(JsValue::from).collect();
    let options = BlobPropertyBag::new();
    options.set_type(media_type);
    Blob::new_with_str_sequence_and_options(&parts, &options).map_err(failed)
}

fn failed(_: JsValue) -> String {
    "This browser did not make a file of it. Its memory may be short.".to_owned()
}

fn offer_blob(name: &str, blob: &Blob) -> Result<(), String> {
    let address = Url::create_object_url_with_blob(blob).map_err(failed)?;
    let link = document().create_element("a").map_err(failed)?;
    let link: HtmlAnchorElement = link.dyn_into().map_err(|link| failed(link.into()))?;
    link.set_href(&address);
    link.set_download(name);
    link.click();
    Timeout::new(READ, move || {
        // Fails for no address that was made above.
        let _ = Url::revoke_object_url(&address);
    })
    .forget();
    Ok(())
}

/// Offers a drawing of this size as a picture (PNG).
///
/// # Errors
/// When the browser makes none of it, in words.
pub async fn offer_picture(name: &str, drawing: &str, size: Size) -> Result<(), String> {
    let picture = rasterised(drawing, size).await.map_err(failed)?;
    offer_blob(&format!("{name}.png"), &picture)
}

async fn rasterised(drawing: &str, size: Size) -> Result<Blob, JsValue> {
    let image = HtmlImageElement::new()?;
    image.set_src(&format!("data:{SVG};base64,{}", STANDARD.encode(drawing)));
    JsFuture::from(image.decode()).await?;
    let [width, height] = [size.width, size.height].map(|side| SHARPNESS * side);
    let canvas = OffscreenCanvas::new(width as u32, height as u32)?;
    let context = canvas.get_context("2d")?.ok_or(JsValue::NULL)?;
    let context: OffscreenCanvasRenderingContext2d = context.unchecked_into();
    context.draw_image_with_html_image_element_and_dw_and_dh(&image, 0.0, 0.0, width, height)?;
    JsFuture::from(canvas.convert_to_blob()?).await?.dyn_into()
}

/// Offers the whole journal of a run as a file: that of the server, or else what this browser has of it.
///
/// # Errors
/// As [`journal`], and when the browser makes no file, in words.
pub async fn offer_journal(run: Run, name: &str) -> Result<(), String> {
    offer_blob(&journal_name(name), &whole(run).await?)
}

/// The same packed by gzip, without traces unless they are wanted.
///
/// # Errors
/// As [`offer_journal`].
pub async fn offer_packed_journal(run: Run, name: &str, with_traces: bool) -> Result<(), String> {
    let packed = packed(run, with_traces).await?;
    offer_blob(&format!("{}.gz", journal_name(name)), &packed)
}

/// Offers this page as one file that shows the run and nothing else, without traces unless they are wanted.
///
/// # Errors
/// As [`offer_journal`], and when the host of the page does not give what it is made of.
pub async fn offer_report(run: Run, name: &str, with_traces: bool) -> Result<(), String> {
    let journal = STANDARD.encode(content(&packed(run, with_traces).await?).await?);
    let missing = || "The host of this page did not give the page in one file. Try again when it is reached.";
    let page = report_page().await.ok_or_else(missing)?;
    let report = in_report(&page, &[(journal_name(name), journal)]).ok_or_else(missing)?;
    offer_as(&format!("{name}.html"), "text/html;charset=utf-8", [report])
}

async fn content(blob: &Blob) -> Result<Vec<u8>, String> {
    let bytes = JsFuture::from(blob.array_buffer()).await.map_err(failed)?;
    Ok(Uint8Array::new(&bytes).to_vec())
}

/// What reports of this page are made of.
async fn report_page() -> Option<String> {
    let response = Request::get(&document_meta("capo-report")?).send().await.ok()?;
    if !response.ok() {
        return None;
    }
    response.text().await.ok()
}

fn journal_name(name: &str) -> String {
    format!("{name}.{}", Kind::Journal.ending())
}

async fn whole(run: Run) -> Result<Blob, String> {
    let not_told = match run.journal_on_server().await {
        Some(Ok(journal)) => return Ok(journal),
        Some(Err(why)) => Some(why),
        None => None,
    };
    blob(Kind::Journal.media_type(), kept(run, not_told, true).await?)
}

/// Without traces: of a run of this browser they lie apart, and are not read for it.
async fn slimmed(run: Run) -> Result<Blob, String> {
    let parts = match run.journal_on_server().await {
        Some(Ok(journal)) => {
            let text = JsFuture::from(journal.text()).await.map_err(failed)?;
            vec![text.as_string().unwrap_or_default()]
        }
        Some(Err(why)) => kept(run, Some(why), false).await?,
        None => kept(run, None, false).await?,
    };
    without_traces(&parts)
}

fn without_traces(parts: &[String]) -> Result<Blob, String> {
    let lines = parts.iter().flat_map(|part| part.lines());
    blob(
        Kind::Journal.media_type(),
        lines.map(|line| without_conversations(line).into_owned() + "\n"),
    )
}

async fn packed(run: Run, with_traces: bool) -> Result<Blob, String> {
    let journal = if with_traces {
        whole(run).await?
    } else {
        slimmed(run).await?
    };
    gzip::packed(&journal).await.map_err(failed)
}

/// The whole journal of a run of this browser, in parts: what it keeps, and what only the memory of its worker holds.
///
/// # Errors
/// When lines are missing or the browser does not give them back, in words.
pub async fn journal(run: Run) -> Result<Vec<String>, String> {
    kept(run, None, true).await
}

/// The same without traces.
///
/// # Errors
/// As [`journal`].
pub async fn slim_journal(run: Run) -> Result<Vec<String>, String> {
    kept(run, None, false).await
}

/// The same packed by gzip.
///
/// # Errors
/// As [`journal`], and when the browser does not pack it.
pub async fn packed_slim_journal(run: Run) -> Result<Vec<u8>, String> {
    let lines = without_traces(&slim_journal(run).await?)?;
    content(&gzip::packed(&lines).await.map_err(failed)?).await
}

/// The same of a run whose server does not tell it, and why, unless all of it is kept here. Without traces, lines that only a
/// worker holds have theirs.
async fn kept(run: Run, not_told: Option<String>, with_traces: bool) -> Result<Vec<String>, String> {
    // Asked first: a line that is stored in between is then in both.
    let unsaved = run.unsaved().await?;
    let stored = match Storage::open().await {
        Ok(storage) => {
            let stored = if with_traces {
                storage.whole_lines(&run.id()).await
            } else {
                storage.slim_lines(&run.id(), 0).await
            };
            stored.map_err(|error| error.to_string())?
        }
        Err(_) if !unsaved.is_empty() => Lines::default(),
        Err(error) => return Err(error.to_string()),
    };
    let is_behind = untrack(|| run.server()).is_none_or(|server| stored.end < server.lines);
    if let Some(why) = not_told.filter(|_| is_behind) {
        return Err(why);
    }
    let (mut chunks, mut next) = (stored.chunks, stored.end);
    for (first, lines) in unsaved {
        let end = first + lines.len() as u64;
        if end <= next {
            continue;
        }
        if first != next {
            return Err(format!(
                "The journal in this browser ends with line {next} and this tab goes on with line {}, so no whole \
                 journal can be made.",
                first + 1
            ));
        }
        chunks.push(lines.join("\n"));
        next = end;
    }
    if next == 0 {
        return Err("This browser keeps no line of this journal.".into());
    }
    Ok(chunks.into_iter().map(|chunk| chunk + "\n").collect())
}
